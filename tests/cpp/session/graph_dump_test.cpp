#include "msprobe/graph_dump.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "msprobe/error.h"
#include "temporary_folder.h"

namespace msprobe {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorLeaf leaf_of(const std::vector<float>& values) {
  TensorLeaf leaf;
  leaf.type = "mindspore.Tensor";
  leaf.dtype = "Float32";
  leaf.shape = {static_cast<std::int64_t>(values.size())};
  leaf.file_format = FileFormat::kNpy;
  Tensor part;
  part.data = reinterpret_cast<const std::byte*>(values.data());
  part.dtype = DType::kFloat32;
  part.shape = {static_cast<std::int64_t>(values.size())};
  part.strides = {1};
  leaf.parts.push_back(part);
  return leaf;
}

class GraphDumpTest : public testing::Test {
 protected:
  void TearDown() override {
    unsetenv("MSPROBE_GRAPH_TASK");
    unsetenv("MSPROBE_ON_ERROR");
  }

  std::set<std::string> names(const std::string& step, const std::string& rank = "rank0") const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_.path() / step / rank)) {
      found.insert(entry.path().filename());
    }
    return found;
  }

  std::string text(const fs::path& file) const {
    std::ifstream stream(folder_.path() / file);
    std::stringstream content;
    content << stream.rdbuf();
    return content.str();
  }

  const TemporaryFolder folder_;
  const std::vector<float> x_{3, 4};
};

TEST_F(GraphDumpTest, CountsByNameAndStep) {
  GraphDump dump("mindspore");
  dump.save(folder_.path().string(), "x", leaf_of(x_));
  dump.save(folder_.path().string(), "x", leaf_of(x_));
  dump.save(folder_.path().string(), "x.a", leaf_of(x_));
  dump.step();
  dump.save(folder_.path().string(), "x", leaf_of(x_));
  EXPECT_THAT(names("step0"), ElementsAre("x.a_float32_0.npy", "x_float32_0.npy", "x_float32_1.npy"));
  EXPECT_THAT(names("step1"), ElementsAre("x_float32_0.npy"));
  EXPECT_EQ(dump.summary().saves, 4U);
}

TEST_F(GraphDumpTest, AWidenedDtypeIsCalledWhatTheFileHolds) {
  GraphDump dump("mindspore");
  TensorLeaf leaf = leaf_of(x_);
  leaf.parts.front().dtype = DType::kBfloat16;
  dump.save(folder_.path().string(), "x", leaf);
  EXPECT_THAT(names("step0"), ElementsAre("x_float32_0.npy"));
}

TEST_F(GraphDumpTest, ATensorOfNoElementsHasItsFile) {
  GraphDump dump("mindspore");
  dump.save(folder_.path().string(), "x", leaf_of({}));
  EXPECT_THAT(names("step0"), ElementsAre("x_float32_0.npy"));
}

TEST_F(GraphDumpTest, TheRankHoldsFromTheNextStepOn) {
  GraphDump dump("mindspore");
  dump.save(folder_.path().string(), "x", leaf_of(x_));
  dump.set_rank(5);
  dump.save(folder_.path().string(), "x", leaf_of(x_));
  dump.step();
  dump.save(folder_.path().string(), "x", leaf_of(x_));
  EXPECT_THAT(names("step0"), ElementsAre("x_float32_0.npy", "x_float32_1.npy"));
  EXPECT_THAT(names("step1", "rank5"), ElementsAre("x_float32_0.npy"));
}

TEST_F(GraphDumpTest, TaskStatisticsWritesRecordsOnly) {
  setenv("MSPROBE_GRAPH_TASK", "statistics", 1);
  GraphDump dump("mindspore");
  dump.save(folder_.path().string(), "x", leaf_of(x_));
  dump.save(folder_.path().string(), "x", leaf_of(x_));
  EXPECT_THAT(names("step0"), ElementsAre("debug.json"));
  const std::string json = text("step0/rank0/debug.json");
  EXPECT_THAT(json, HasSubstr("\"x.0.debug\": {\"type\": \"mindspore.Tensor\", \"dtype\": \"Float32\", \"shape\": [2], "
                              "\"Max\": 4.0, \"Min\": 3.0, \"Mean\": 3.5, \"Norm\": 5.0}"));
  EXPECT_THAT(json, HasSubstr("\"x.1.debug\": "));
}

TEST_F(GraphDumpTest, TaskBothNamesTheFileInTheRecord) {
  setenv("MSPROBE_GRAPH_TASK", "both", 1);
  GraphDump dump("mindspore");
  dump.save(folder_.path().string(), "x", leaf_of(x_));
  EXPECT_THAT(names("step0"), ElementsAre("debug.json", "x_float32_0.npy"));
  EXPECT_THAT(text("step0/rank0/debug.json"), HasSubstr("\"data_name\": \"x_float32_0.npy\""));
}

TEST_F(GraphDumpTest, AFailureIsAMessageOnceForManyFolders) {
  GraphDump dump("mindspore");
  dump.save("/proc/nowhere", "x", leaf_of(x_));
  TensorLeaf unreadable = leaf_of(x_);
  unreadable.parts.clear();
  unreadable.dtype = "HiFloat8";
  dump.save(folder_.path().string(), "y", unreadable);
  ASSERT_TRUE(dump.has_messages());
  const auto messages = dump.take_messages();
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_THAT(messages[0].text, HasSubstr("not saved: \"x\""));
  EXPECT_THAT(messages[1].text, HasSubstr("dtype HiFloat8 cannot be read"));
  EXPECT_EQ(dump.summary().failures, 2U);
  EXPECT_FALSE(dump.has_messages());
}

TEST_F(GraphDumpTest, AFailureThrowsWhereThatIsAskedFor) {
  setenv("MSPROBE_ON_ERROR", "raise", 1);
  GraphDump dump("mindspore");
  EXPECT_THROW(dump.save("/proc/nowhere", "x", leaf_of(x_)), IoError);
}

TEST_F(GraphDumpTest, ThreadsSaveEveryTensorUnderANumberOfItsOwn) {
  setenv("MSPROBE_GRAPH_TASK", "both", 1);
  GraphDump dump("mindspore");
  constexpr int kThreads = 4;
  constexpr int kSaves = 50;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kSaves; ++i) dump.save(folder_.path().string(), "x", leaf_of(x_));
      });
    }
  }
  EXPECT_EQ(names("step0").size(), kThreads * kSaves + 1U);
  EXPECT_EQ(dump.summary().saves, static_cast<std::uint64_t>(kThreads * kSaves));
  EXPECT_EQ(dump.summary().failures, 0U);
}

TEST_F(GraphDumpTest, AForkedChildHasItsOwnFolderAndTheSameStep) {
  GraphDump dump("mindspore");
  dump.step();
  dump.save(folder_.path().string(), "x", leaf_of(x_));
  const pid_t child = fork();
  if (child == 0) {
    dump.save(folder_.path().string(), "x", leaf_of(x_));
    _exit(dump.summary().saves == 1 && dump.has_messages() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(names("step1", "proc" + std::to_string(child)), ElementsAre("x_float32_0.npy"));
  EXPECT_THAT(names("step1"), ElementsAre("x_float32_0.npy"));
}

}  // namespace
}  // namespace msprobe
