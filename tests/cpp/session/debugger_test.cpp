#include "msprobe/debugger.h"

#include <gmock/gmock.h>
#include <rapidjson/document.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "msprobe/error.h"
#include "temporary_folder.h"

namespace msprobe {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A float32 tensor over the test's own memory.
TensorLeaf float_leaf(const std::vector<float>& values, bool expects_gradient = false) {
  TensorLeaf leaf;
  leaf.type = "torch.Tensor";
  leaf.dtype = "torch.float32";
  leaf.shape = {static_cast<std::int64_t>(values.size())};
  leaf.requires_grad = expects_gradient;
  leaf.expects_gradient = expects_gradient;
  Tensor part;
  part.data = reinterpret_cast<const std::byte*>(values.data());
  part.dtype = DType::kFloat32;
  part.shape = {static_cast<std::int64_t>(values.size())};
  part.strides = {1};
  leaf.parts.push_back(part);
  return leaf;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class DebuggerTest : public testing::TestWithParam<bool> {
 protected:
  Config config(Task task = Task::kStatistics) const {
    Config config;
    config.task = task;
    config.dump_path = folder_.path();
    config.async_dump = GetParam();
    return config;
  }

  static FrameworkHooks rank(std::int64_t number) {
    FrameworkHooks hooks;
    hooks.name = "pytorch";
    hooks.rank = [number] { return number; };
    return hooks;
  }

  fs::path step_folder(int step, const std::string& rank = "rank0") const {
    return folder_.path() / ("step" + std::to_string(step)) / rank;
  }

  rapidjson::Document read(int step, const std::string& rank = "rank0") const {
    std::ifstream file(step_folder(step, rank) / "debug.json");
    std::stringstream text;
    text << file.rdbuf();
    rapidjson::Document document;
    document.Parse<rapidjson::kParseNanAndInfFlag>(text.str().c_str());
    EXPECT_FALSE(document.HasParseError()) << text.str();
    return document;
  }

  TemporaryFolder folder_;
};

TEST_P(DebuggerTest, WritesARecordForEachSave) {
  const std::vector<float> x{3, 4};
  Debugger debugger(config(), rank(0));
  debugger.save("x", {float_leaf(x)});
  debugger.save("x", {Scalar{"int", std::int64_t{7}}});
  debugger.step();
  debugger.save("x", {float_leaf(x)});
  debugger.close();
  const auto first = read(0);
  const auto& data = first["data"];
  ASSERT_EQ(data.MemberCount(), 2U);
  EXPECT_EQ(data["x.0.debug"]["Norm"].GetDouble(), 5.0);
  EXPECT_EQ(data["x.0.debug"]["Mean"].GetDouble(), 3.5);
  EXPECT_EQ(data["x.1.debug"]["value"].GetInt(), 7);
  EXPECT_STREQ(first["task"].GetString(), "statistics");
  EXPECT_STREQ(first["framework"].GetString(), "pytorch");
  EXPECT_TRUE(read(1)["data"].HasMember("x.0.debug"));
  EXPECT_EQ(debugger.summary().saves, 3U);
}

TEST_P(DebuggerTest, GradientsFillTheirPlaceEvenAfterTheStep) {
  const std::vector<float> x{1, 2};
  const std::vector<float> gradient{3, 4};
  Debugger debugger(config(Task::kTensor), rank(0));
  const Ticket ticket =
      debugger.save("x", {List{{float_leaf(x, true)}, {float_leaf(x, true)}, {Scalar{"int", std::int64_t{1}}}}}, true);
  debugger.save("z", {Null{}}, true);
  ASSERT_TRUE(ticket.expects_gradients());
  debugger.step();
  debugger.save_gradient(ticket, 1, float_leaf(gradient));
  debugger.save_gradient(ticket, 1, float_leaf(x));  // a second backward
  debugger.close();
  const auto document = read(0);
  const auto& data = document["data"];
  std::vector<std::string> keys;
  for (const auto& member : data.GetObject()) keys.emplace_back(member.name.GetString());
  EXPECT_THAT(keys, testing::ElementsAre("x.0.debug", "x_grad.0.debug", "z.0.debug", "z_grad.0.debug"));
  const auto& gradients = data["x_grad.0.debug"];
  EXPECT_TRUE(gradients[0].IsNull());
  EXPECT_EQ(gradients[1]["Norm"].GetDouble(), 5.0);
  EXPECT_STREQ(gradients[1]["data_name"].GetString(), "x_grad.0.debug.1.pt");
  EXPECT_TRUE(gradients[2].IsNull());
  EXPECT_TRUE(data["z_grad.0.debug"].IsNull());
  EXPECT_TRUE(fs::exists(step_folder(0) / "dump_tensor_data" / "x_grad.0.debug.1.pt"));
  EXPECT_EQ(debugger.summary().gradients, 1U);
  EXPECT_EQ(debugger.summary().repeated_gradients, 1U);
}

std::ptrdiff_t open_descriptors() {
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

TEST_P(DebuggerTest, StepsWhoseGradientsAreStillToComeKeepNoDescriptors) {
  const std::vector<float> x{3, 4};
  Debugger debugger(config(Task::kTensor), rank(0));
  std::vector<Ticket> tickets;
  const auto save_step = [&] {
    tickets.push_back(debugger.save("x", {float_leaf(x, true)}, true));
    debugger.step();
    debugger.drain();
  };
  save_step();
  const auto before = open_descriptors();
  for (int i = 1; i < 100; ++i) save_step();
  EXPECT_EQ(open_descriptors(), before);
  for (const Ticket& ticket : tickets) debugger.save_gradient(ticket, 0, float_leaf(x));
  debugger.drain();
  EXPECT_EQ(open_descriptors(), before);
  debugger.close();
  EXPECT_EQ(debugger.summary().gradients, 100U);
  EXPECT_EQ(read(57)["data"]["x_grad.0.debug"]["Norm"].GetDouble(), 5.0);
}

TEST_P(DebuggerTest, DataChangedAfterSaveDoesNotShow) {
  std::vector<float> x(100'000, 1.0F);
  Debugger debugger(config(), rank(0));
  for (int i = 0; i < 20; ++i) {
    debugger.save("x", {float_leaf(x)});
    std::fill(x.begin(), x.end(), 99.0F);
    std::fill(x.begin(), x.end(), 1.0F);
  }
  debugger.save("x", {float_leaf(x)});
  std::fill(x.begin(), x.end(), 99.0F);
  debugger.close();
  const auto document = read(0);
  for (const auto& member : document["data"].GetObject()) EXPECT_EQ(member.value["Max"].GetDouble(), 1.0);
}

TEST_P(DebuggerTest, FilteredStepsAndRanksCreateNothing) {
  Config filtered = config();
  filtered.step = Filter({{1, 1}});
  Debugger debugger(filtered, rank(0));
  EXPECT_FALSE(debugger.is_active());
  debugger.save("x", {Null{}});
  debugger.step();
  EXPECT_TRUE(debugger.is_active());
  debugger.save("x", {Null{}});
  debugger.step();
  EXPECT_FALSE(debugger.is_active());
  debugger.close();
  EXPECT_FALSE(fs::exists(folder_.path() / "step0"));
  EXPECT_TRUE(fs::exists(step_folder(1)));
  EXPECT_FALSE(fs::exists(folder_.path() / "step2"));
}

TEST_P(DebuggerTest, ARankThatIsNotListedSavesNothing) {
  Config filtered = config();
  filtered.rank = Filter({{1, 3}});
  Debugger debugger(filtered, rank(0));
  EXPECT_FALSE(debugger.is_active());
  debugger.save("x", {Null{}});
  debugger.close();
  EXPECT_FALSE(fs::exists(folder_.path() / "step0"));
}

TEST_P(DebuggerTest, AnUnknownRankIsAskedAtEachStepAndThenKept) {
  std::optional<std::int64_t> known;
  int asked = 0;
  FrameworkHooks hooks;
  hooks.rank = [&] {
    ++asked;
    return known;
  };
  Debugger debugger(config(), hooks);
  debugger.save("x", {Null{}});
  debugger.save("x", {Null{}});
  EXPECT_EQ(asked, 1);
  known = 5;
  debugger.step();
  debugger.save("x", {Null{}});
  known = 6;
  debugger.step();
  debugger.save("x", {Null{}});
  debugger.close();
  EXPECT_EQ(asked, 2);
  EXPECT_TRUE(fs::exists(step_folder(0, "proc" + std::to_string(getpid())) / "debug.json"));
  EXPECT_TRUE(fs::exists(step_folder(1, "rank5") / "debug.json"));
  EXPECT_TRUE(fs::exists(step_folder(2, "rank5") / "debug.json"));
}

TEST_P(DebuggerTest, AnEarlierRunIsMovedAside) {
  for (int run = 0; run < 3; ++run) {
    Debugger debugger(config(), rank(0));
    for (int step = 0; step < 2; ++step) {
      debugger.save("run", {Scalar{"int", std::int64_t{run}}});
      debugger.step();
    }
    debugger.close();
    const auto messages = debugger.take_messages();
    EXPECT_EQ(messages.size(), run == 0 ? 0U : 1U);
  }
  EXPECT_EQ(read(1, "rank0.bak1")["data"]["run.0.debug"]["value"].GetInt(), 0);
  EXPECT_EQ(read(0, "rank0.bak2")["data"]["run.0.debug"]["value"].GetInt(), 1);
  EXPECT_EQ(read(0)["data"]["run.0.debug"]["value"].GetInt(), 2);
}

TEST_P(DebuggerTest, ARankThatAnotherProcessHoldsGoesToProc) {
  Debugger first(config(), rank(0));
  first.save("x", {Null{}});
  first.drain();
  Debugger second(config(), rank(0));
  second.save("y", {Null{}});
  second.drain();
  EXPECT_TRUE(read(0)["data"].HasMember("x.0.debug"));
  EXPECT_TRUE(read(0, "proc" + std::to_string(getpid()))["data"].HasMember("y.0.debug"));
  const auto messages = second.take_messages();
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_THAT(messages[0].text, HasSubstr("rank0 belongs to another running process"));
}

TEST_P(DebuggerTest, SetInitStepNumbersTheStep) {
  Debugger debugger(config(), rank(0));
  debugger.set_init_step(100);
  debugger.save("x", {Null{}});
  debugger.step();
  debugger.save("x", {Null{}});
  debugger.close();
  EXPECT_TRUE(fs::exists(step_folder(100)));
  EXPECT_TRUE(fs::exists(step_folder(101)));
}

TEST_P(DebuggerTest, AFailedSaveIsCountedAndTheRunGoesOn) {
  std::ofstream(folder_.path() / "step0") << "a file where the folder should be";
  Debugger debugger(config(), rank(0));
  EXPECT_NO_THROW(debugger.save("x", {Null{}}));
  EXPECT_NO_THROW(debugger.step());
  debugger.save("x", {Null{}});
  debugger.close();
  EXPECT_EQ(debugger.summary().failures, 1U);
  EXPECT_EQ(debugger.summary().saves, 1U);
  const auto messages = debugger.take_messages();
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_THAT(messages[0].text, HasSubstr("step0"));
  EXPECT_TRUE(fs::exists(step_folder(1)));
}

TEST_P(DebuggerTest, WithOnErrorRaiseAFailureThrows) {
  setenv("MSPROBE_ON_ERROR", "raise", 1);
  std::ofstream(folder_.path() / "step0") << "a file where the folder should be";
  Debugger debugger(config(), rank(0));
  unsetenv("MSPROBE_ON_ERROR");
  EXPECT_THROW(
      {
        debugger.save("x", {Null{}});
        debugger.close();
      },
      IoError);
}

TEST_P(DebuggerTest, SavesOfManyThreadsAreAllThereAndCountedOnce) {
  Debugger debugger(config(), rank(0));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) debugger.save("x", {Scalar{"int", std::int64_t{i}}});
    });
  }
  for (auto& thread : threads) thread.join();
  debugger.close();
  const auto document = read(0);
  ASSERT_EQ(document["data"].MemberCount(), 800U);
  for (int i = 0; i < 800; ++i) {
    EXPECT_TRUE(document["data"].HasMember(("x." + std::to_string(i) + ".debug").c_str())) << i;
  }
}

TEST_P(DebuggerTest, NoSaveIsLostWhileAnotherThreadEndsSteps) {
  const std::vector<float> x{1};
  Debugger debugger(config(), rank(0));
  constexpr int kThreads = 3;
  constexpr int kSaves = 400;
  std::atomic<int> running = kThreads;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kSaves; ++i) debugger.save("x", {float_leaf(x)});
        --running;
      });
    }
    while (running > 0) debugger.step();
  }
  debugger.drain();
  EXPECT_EQ(debugger.summary().saves, static_cast<std::uint64_t>(kThreads * kSaves));
  EXPECT_EQ(debugger.summary().failures, 0U);
}

TEST_P(DebuggerTest, AForkWhileThreadsWriteLeavesTheChildAble) {
  setenv("MSPROBE_ASYNC_MEMORY", "64K", 1);  // a short queue, or its draining takes minutes
  const std::vector<float> x{1};
  Debugger debugger(config(), rank(0));
  unsetenv("MSPROBE_ASYNC_MEMORY");
  std::atomic<bool> stop = false;
  {
    const std::jthread stepper([&] {
      while (!stop) {
        debugger.save("x", {float_leaf(x)});
        debugger.step();
      }
    });
    for (int i = 0; i < 200; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(20);  // a child that hangs dies of it
        debugger.save("y", {float_leaf(x)});
        _exit(debugger.summary().saves == 1 ? 0 : 1);
      }
      int status = -1;
      waitpid(child, &status, 0);
      ASSERT_EQ(status, 0) << "fork number " << i;
    }
    stop = true;
  }
}

TEST_P(DebuggerTest, LargeTensorsOfManyThreadsAndAForkedChildGetTheSameNumbers) {
  std::vector<float> x(5 << 20);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1001) * 0.37F;
  Config settings = config(Task::kTensor);
  settings.summary_mode = SummaryMode::kMd5;
  Debugger debugger(settings, rank(0));
  debugger.save("x", {float_leaf(x)});  // whatever threads there are have started
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that hangs dies of it
    debugger.save("x", {float_leaf(x)});
    debugger.close();
    _exit(debugger.summary().saves == 1 ? 0 : 1);
  }
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) threads.emplace_back([&] { debugger.save("x", {float_leaf(x)}); });
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  debugger.close();
  const auto of_child = read(0, "proc" + std::to_string(child));
  const auto& expected = of_child["data"]["x.0.debug"];
  const auto document = read(0);
  ASSERT_EQ(document["data"].MemberCount(), 4U);
  for (const auto& member : document["data"].GetObject()) {
    for (const char* field : {"Max", "Min", "Mean", "Norm", "md5"}) EXPECT_EQ(member.value[field], expected[field]);
    const fs::path file = step_folder(0) / "dump_tensor_data" / member.value["data_name"].GetString();
    EXPECT_EQ(read_file(file), read_file(step_folder(0, "proc" + std::to_string(child)) / "dump_tensor_data" /
                                         expected["data_name"].GetString()));
  }
}

TEST_P(DebuggerTest, ThreadsThatAreNoNumberAreAnErrorOfConstruction) {
  setenv("MSPROBE_THREADS", "many", 1);
  EXPECT_THROW(Debugger(config(), rank(0)), ConfigError);
  unsetenv("MSPROBE_THREADS");
}

TEST_P(DebuggerTest, StepNumbersThatCannotBeAreRefused) {
  Debugger debugger(config(), rank(0));
  EXPECT_THROW(debugger.set_init_step(-1), StateError);
  EXPECT_THROW(debugger.set_init_step(std::numeric_limits<std::int64_t>::max()), StateError);
  EXPECT_EQ(debugger.current_step(), 0);
}

TEST_P(DebuggerTest, ASecondCloseWaitsForTheFirst) {
  const std::vector<float> x(1 << 16, 1.0F);
  Debugger debugger(config(Task::kTensor), rank(0));
  for (int i = 0; i < 50; ++i) debugger.save("x", {float_leaf(x)});
  const std::jthread other([&] { debugger.close(); });
  debugger.close();
  EXPECT_EQ(debugger.summary().saves, 50U);
}

TEST_P(DebuggerTest, ABroadcastOfAnySizeHasItsStatistics) {
  const std::vector<float> x{2};
  TensorLeaf leaf = float_leaf(x);
  constexpr std::int64_t kSize = std::int64_t{1} << 62;
  leaf.shape = {kSize};
  leaf.parts.front().shape = {kSize};
  leaf.parts.front().strides = {0};
  Debugger debugger(config(), rank(0));
  debugger.save("x", {leaf});
  debugger.close();
  EXPECT_EQ(read(0)["data"]["x.0.debug"]["Mean"].GetDouble(), 2.0);
  EXPECT_EQ(read(0)["data"]["x.0.debug"]["Norm"].GetDouble(), std::ldexp(2.0, 31));
}

TEST_P(DebuggerTest, AForkedChildWritesToItsOwnFolder) {
  Debugger debugger(config(), rank(0));
  debugger.save("parent", {Null{}});
  const std::vector<float> x{1};
  const Ticket ticket = debugger.save("x", {float_leaf(x, true)}, true);
  const pid_t child = fork();
  if (child == 0) {
    debugger.save("child", {Null{}});
    debugger.save_gradient(ticket, 0, float_leaf(x));  // the parent's: not the child's to write
    debugger.close();
    _exit(debugger.take_messages().size() == 1 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  debugger.save("after", {Null{}});
  debugger.close();
  const auto parent = read(0);
  EXPECT_EQ(parent["data"].MemberCount(), 4U);
  EXPECT_TRUE(parent["data"]["x_grad.0.debug"].IsNull());
  const auto of_child = read(0, "proc" + std::to_string(child));
  EXPECT_EQ(of_child["data"].MemberCount(), 1U);
  EXPECT_TRUE(of_child["data"].HasMember("child.0.debug"));
}

TEST_P(DebuggerTest, SparseValuesCountAsIfDense) {
  const std::vector<float> stored{3, -4};
  TensorLeaf leaf = float_leaf(stored);
  leaf.shape = {6};
  leaf.sparse = SparseLayout{{1, 4}, 1, 6};
  Config with_md5 = config();
  with_md5.summary_mode = SummaryMode::kMd5;
  Debugger debugger(with_md5, rank(0));
  debugger.save("sparse", {leaf});
  const std::vector<float> dense{0, 3, 0, 0, -4, 0};
  debugger.save("dense", {float_leaf(dense)});
  debugger.close();
  const auto document = read(0);
  for (const char* field : {"Max", "Min", "Mean", "Norm"}) {
    EXPECT_EQ(document["data"]["sparse.0.debug"][field].GetDouble(),
              document["data"]["dense.0.debug"][field].GetDouble());
  }
  EXPECT_STREQ(document["data"]["sparse.0.debug"]["md5"].GetString(),
               document["data"]["dense.0.debug"]["md5"].GetString());
}

TEST_P(DebuggerTest, TensorsThatShareAFileNameBothSurvive) {
  const std::vector<float> first{1};
  const std::vector<float> second{2};
  Debugger debugger(config(Task::kTensor), rank(0));
  debugger.save("x", {Map{{"a.b", {float_leaf(first)}}, {"a", {Map{{"b", {float_leaf(second)}}}}}}});
  debugger.close();
  const auto document = read(0);
  EXPECT_STREQ(document["data"]["x.0.debug"]["a.b"]["data_name"].GetString(), "x.0.debug.a.b.pt");
  EXPECT_STREQ(document["data"]["x.0.debug"]["a"]["b"]["data_name"].GetString(), "x.0.debug.a.b#2.pt");
  EXPECT_TRUE(fs::exists(step_folder(0) / "dump_tensor_data" / "x.0.debug.a.b#2.pt"));
}

TEST_P(DebuggerTest, CallsAfterCloseAreRefusedOrHarmless) {
  Debugger debugger(config(), rank(0));
  debugger.close();
  debugger.close();
  EXPECT_FALSE(debugger.is_active());
  EXPECT_THROW(debugger.save("x", {Null{}}), StateError);
  EXPECT_NO_THROW(debugger.step());
}

INSTANTIATE_TEST_SUITE_P(SyncAndAsync, DebuggerTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Async" : "Sync"; });

TEST(DebuggerAsync, AQueueSmallerThanATensorSavesItInPlace) {
  setenv("MSPROBE_ASYNC_MEMORY", "64K", 1);
  const TemporaryFolder folder;
  Config config;
  config.dump_path = folder.path();
  config.async_dump = true;
  const std::vector<float> large(100'000, 2.0F);
  Debugger debugger(config);
  unsetenv("MSPROBE_ASYNC_MEMORY");
  for (int i = 0; i < 5; ++i) {
    debugger.save("small", {Scalar{"int", std::int64_t{i}}});
    debugger.save("large", {float_leaf(large)});
  }
  debugger.close();
  EXPECT_EQ(debugger.summary().saves, 10U);
  EXPECT_EQ(debugger.summary().failures, 0U);
}

TEST(DebuggerAsync, ValuesThatAreNoTensorsCountForTheLimitToo) {
  const TemporaryFolder folder;
  setenv("MSPROBE_ASYNC_MEMORY", "16M", 1);
  setenv("MSPROBE_ASYNC_THREADS", "1", 1);
  Config config;
  config.dump_path = folder.path();
  config.async_dump = true;
  Debugger debugger(config);
  unsetenv("MSPROBE_ASYNC_MEMORY");
  unsetenv("MSPROBE_ASYNC_THREADS");
  const auto resident_mib = [] {
    std::ifstream statm("/proc/self/statm");
    std::size_t pages = 0;
    statm >> pages >> pages;
    return pages * 4096 >> 20U;
  };
  const std::size_t before = resident_mib();
  std::size_t most = 0;
  for (int i = 0; i < 40; ++i) {
    List list(20'000, Value{Scalar{"int", std::int64_t{1}}});  // about 6 MB in memory
    debugger.save("x", {std::move(list)});
    most = std::max(most, resident_mib());
  }
  debugger.close();
  EXPECT_LT(most, before + 60);  // 240 MB without the limit; records and the allocator take their share
}

}  // namespace
}  // namespace msprobe
