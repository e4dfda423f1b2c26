#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../compare/dump_folder.h"
#include "../compare/records.h"
#include "command.h"
#include "msprobe/error.h"

namespace msprobe {
namespace {

using test::Ran;
using test::run;
using test::ScratchFolder;
using test::tensor_json;
using test::write_records;
using testing::HasSubstr;
using testing::Not;

std::string tensor(std::string_view key, const std::string& number, std::string_view more = "") {
  return "\"" + std::string(key) + "\": " + tensor_json("torch.float32", "[2]", {number, number, number, number}, more);
}

std::string path_of(const ScratchFolder& scratch, int step, int rank) {
  return scratch / ("step" + std::to_string(step) + "/rank" + std::to_string(rank));
}

ShowRequest request_of(const std::filesystem::path& path) {
  ShowRequest request;
  request.path = path;
  return request;
}

TEST(Show, PrintsATableOfEachFolder) {
  const ScratchFolder scratch;
  write_records(path_of(scratch, 0, 0), tensor("x.0.debug", "1.5") + R"(, "n.3.debug": {"a": [null, 7]})");
  const Ran ran = run(show, request_of(scratch.path()));
  EXPECT_EQ(ran.status, kExitFine);
  EXPECT_EQ(ran.out,
            "step 0, rank0: pytorch, task statistics, 2 records\n"
            "name  count  index  dtype          shape  Max  Min  Mean  Norm  also\n"
            "x         0         torch.float32  [2]    1.5  1.5   1.5   1.5\n"
            "n         3  a.0    null\n"
            "n         3  a.1    number                                      7\n");
}

TEST(Show, NamesTheFirstNaNOfAllRanks) {
  const ScratchFolder scratch;
  const std::string nan = R"(, "nan_count": 2)";
  for (int rank = 0; rank < 64; ++rank) {
    write_records(path_of(scratch, 2999, rank), tensor("early.0.debug", "1.0") + ", " + tensor("late.0.debug", "1.0"));
    write_records(path_of(scratch, 3000, rank),
                  (rank == 37 ? tensor("early.0.debug", "NaN", nan) : tensor("early.0.debug", "1.0")) + ", " +
                      tensor("late.0.debug", "NaN", nan));
  }
  ShowRequest request = request_of(scratch.path());
  const std::string first = "first NaN or infinity: step 3000, rank37, early.0.debug (2 NaN)\n";
  EXPECT_THAT(run(show, request).out, HasSubstr(first));
  EXPECT_THAT(run(show, request, true).out, HasSubstr("step 3000, rank37, early.0.debug (2 NaN)"));
  request.only_non_finite = true;
  EXPECT_THAT(run(show, request).out, HasSubstr(first));
  request.name = "late";
  EXPECT_THAT(run(show, request).out, HasSubstr("first NaN or infinity: step 3000, rank0-rank63, late.0.debug"));
}

TEST(Show, PutsForwardBeforeBackward) {
  const ScratchFolder scratch;
  write_records(path_of(scratch, 0, 0), tensor("x.0.debug", "1.0") + ", " + tensor("x_grad.0.debug", "NaN") + ", " +
                                            tensor("y.0.debug", "Infinity"));
  EXPECT_THAT(run(show, request_of(scratch.path())).out, HasSubstr("first NaN or infinity: step 0, rank0, y.0.debug"));
}

TEST(Show, TellsManyFoldersInALineAStepOnATerminal) {
  const ScratchFolder scratch;
  for (int step = 0; step < 30; ++step) {
    for (int rank = 0; rank < 2; ++rank) {
      write_records(path_of(scratch, step, rank), tensor("x.0.debug", step == 20 && rank == 1 ? "NaN" : "1.0"));
    }
  }
  ShowRequest request = request_of(scratch.path());
  const std::string summary = run(show, request, true).out;
  EXPECT_THAT(summary, HasSubstr(" 0-19  rank0, rank1     2\n"));
  EXPECT_THAT(summary, HasSubstr("   20  rank0, rank1     2  \x1b[31m1 on rank1\x1b[0m\n"));
  EXPECT_THAT(summary, HasSubstr("21-29  rank0, rank1     2\n"));
  EXPECT_THAT(summary, HasSubstr("--all"));
  EXPECT_THAT(summary, HasSubstr("step 20, rank1, x.0.debug"));
  EXPECT_THAT(summary, Not(HasSubstr("torch.float32")));
  EXPECT_THAT(run(show, request).out, HasSubstr("step 29, rank1"));  // in a pipe: everything
  request.all = true;
  EXPECT_THAT(run(show, request, true).out, HasSubstr("step 29, rank1"));
}

TEST(Show, GoesOnAfterADamagedRank) {
  const ScratchFolder scratch;
  write_records(path_of(scratch, 0, 0), tensor("x.0.debug", "1.0"));
  test::write_text(path_of(scratch, 0, 1) + "/debug.json", "{");
  const Ran ran = run(show, request_of(scratch.path()));
  EXPECT_EQ(ran.status, kExitUnusable);
  EXPECT_THAT(ran.out, HasSubstr("torch.float32"));
  EXPECT_THAT(ran.err, HasSubstr("rank1/debug.json"));
}

TEST(Show, DrawsNormsAlongTheSteps) {
  const ScratchFolder scratch;
  const std::vector<std::string> norms = {"0.0", "7.0", "NaN", "7.0"};
  for (int step = 0; step < 4; ++step) {
    write_records(path_of(scratch, step, 0), tensor("x.0.debug", norms[static_cast<std::size_t>(step)]));
  }
  ShowRequest request = request_of(scratch.path());
  request.diff_steps = true;
  EXPECT_THAT(run(show, request).out, HasSubstr("▁█x█"));
  EXPECT_THAT(run(show, request).out, HasSubstr("nan from step 2"));
  request.json = true;
  EXPECT_EQ(run(show, request).out,
            "[\n{\"rank\": \"rank0\", \"name\": \"x.0.debug\", \"steps\": [0, 1, 2, 3], \"Norm\": [0.0, 7.0, NaN, "
            "7.0]}\n]\n");
}

TEST(Show, EscapesNames) {
  const ScratchFolder scratch;
  write_records(path_of(scratch, 0, 0), tensor("\\u001b]0;owned\\u0007.0.debug", "NaN"));
  ShowRequest request = request_of(scratch.path());
  EXPECT_THAT(run(show, request).out, Not(testing::AnyOf(HasSubstr("\x1b"), HasSubstr("\x07"))));
}

TEST(Show, PrintsATensorFile) {
  const ScratchFolder scratch;
  std::vector<float> values(100);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  test::write_npy(scratch / "x.npy", values);
  ShowRequest request = request_of(scratch / "x.npy");
  EXPECT_THAT(run(show, request).out, HasSubstr("[0, 1, 2, ..., 97, 98, 99]"));
  EXPECT_THAT(run(show, request).out, HasSubstr("Max            99.0\n"));
  test::write_npy(scratch / "x.npy", {});
  EXPECT_THAT(run(show, request).out, HasSubstr("\n  []\n"));
  request.json = true;
  EXPECT_THAT(run(show, request).out, HasSubstr(R"("shape": [0])"));
}

}  // namespace
}  // namespace msprobe
