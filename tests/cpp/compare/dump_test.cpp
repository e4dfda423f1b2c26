#include "compare/dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "dump_folder.h"
#include "msprobe/error.h"

namespace msprobe {
namespace {

using test::ScratchFolder;
using test::write_npy;
using test::write_records;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> labels_of(const Dump& dump) {
  std::vector<std::string> labels;
  for (const RankFolder& folder : dump.folders) {
    labels.push_back((folder.step ? std::to_string(*folder.step) : "-") + "/" + folder.name);
  }
  return labels;
}

TEST(OpenDump, SortsStepsAndRanksByNumber) {
  const ScratchFolder scratch;
  for (const char* name : {"step10/rank0", "step2/rank10", "step2/rank9", "step2/proc7", "step2/other", "notes"}) {
    write_records(scratch / name, "");
  }
  const Dump dump = open_dump(scratch.path());
  EXPECT_EQ(dump.kind, PathKind::kDump);
  EXPECT_THAT(labels_of(dump), ElementsAre("2/rank9", "2/rank10", "2/proc7", "10/rank0"));
}

TEST(OpenDump, KnowsEveryLevel) {
  const ScratchFolder scratch;
  write_records(scratch / "step2/rank9", "");
  EXPECT_EQ(open_dump(scratch / "step2").kind, PathKind::kStep);
  EXPECT_THAT(labels_of(open_dump(scratch / "step2/")), ElementsAre("2/rank9"));
  EXPECT_EQ(open_dump(scratch / "step2/rank9").kind, PathKind::kRank);
  EXPECT_THAT(labels_of(open_dump(scratch / "step2/rank9/debug.json")), ElementsAre("2/rank9"));
  write_npy(scratch / "x.npy", {1});
  EXPECT_EQ(open_dump(scratch / "x.npy").kind, PathKind::kTensorFile);
  EXPECT_THROW(static_cast<void>(open_dump(scratch / "nowhere")), IoError);
  std::filesystem::create_directory(scratch / "empty");
  EXPECT_THROW(static_cast<void>(open_dump(scratch / "empty")), FormatError);
}

TEST(ReadFolder, AddsTheFilesOfAGraph) {
  const ScratchFolder scratch;
  write_npy(scratch / "loss_float32_0.npy", {1});
  write_npy(scratch / "w_grad_bfloat16_12.npy", {1});
  write_npy(scratch / "no_dtype_0.npy", {1});
  const FolderRecords folder = read_folder(scratch.path());
  ASSERT_EQ(folder.records.size(), 2U);
  const auto& gradient = folder.records[folder.records[0].is_gradient ? 0 : 1];
  EXPECT_EQ(gradient.key, "w_grad.12");
  EXPECT_EQ(gradient.name(), "w");
  EXPECT_EQ(gradient.count, 12);
  EXPECT_EQ(std::get<RecordedTensor>(gradient.leaves[0].content).form->dtype, "bfloat16");
}

TEST(ReadFolders, GivesThemInOrderAndTellsOfTheDamaged) {
  const ScratchFolder scratch;
  std::vector<std::string> folders;
  for (int i = 0; i < 600; ++i) {  // more than are read at once
    folders.push_back(scratch / ("rank" + std::to_string(i)));
    write_records(folders.back(), "\"x." + std::to_string(i) + ".debug\": null");
  }
  folders[5] = "";
  test::write_text(scratch / "rank7/debug.json", "{");
  ThreadTeam team(4);
  std::size_t next = 0;
  read_folders(folders, team, [&](std::size_t i, const FolderRecords& records, const std::string& problem) {
    EXPECT_EQ(i, next++);
    EXPECT_EQ(problem.empty(), i != 7) << problem;
    if (i == 5 || i == 7) {
      EXPECT_TRUE(records.records.empty());
    } else {
      EXPECT_EQ(records.records.at(0).count, static_cast<std::int64_t>(i));
    }
    return true;
  });
  EXPECT_EQ(next, folders.size());
  std::size_t taken = 0;
  read_folders(folders, team, [&](std::size_t, const FolderRecords&, const std::string&) { return ++taken < 3; });
  EXPECT_EQ(taken, 3U);
}

TEST(TensorPath, StaysInTheFolder) {
  RecordedTensor tensor;
  EXPECT_EQ(tensor_path("/d", tensor), std::nullopt);
  tensor.data_name = "x.0.pt";
  EXPECT_EQ(tensor_path("/d", tensor), "/d/dump_tensor_data/x.0.pt");
  for (const char* name : {"../x.pt", "/etc/passwd", "a/b.pt", "..", "."}) {
    tensor.data_name = name;
    EXPECT_THROW(static_cast<void>(tensor_path("/d", tensor)), FormatError) << name;
  }
}

TEST(RecordedDtype, KnowsTheSpellingsOfFrameworks) {
  EXPECT_EQ(recorded_dtype("torch.bfloat16"), DType::kBfloat16);
  EXPECT_EQ(recorded_dtype("BFloat16"), DType::kBfloat16);
  EXPECT_EQ(recorded_dtype("Float8E4M3FN"), DType::kFloat8E4m3fn);
  EXPECT_EQ(recorded_dtype("float32"), DType::kFloat32);
  EXPECT_EQ(recorded_dtype("torch.quint8"), std::nullopt);
}

TEST(NumberAfter, TakesWholeNumbersOnly) {
  EXPECT_EQ(number_after("step", "step12"), 12);
  for (const char* name : {"step", "step-1", "step1x", "rank1", "step99999999999999999999"}) {
    EXPECT_EQ(number_after("step", name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace msprobe
