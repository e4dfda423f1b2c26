#include "pipeline/pipeline.h"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <latch>
#include <stdexcept>
#include <vector>

namespace msprobe {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

// A job whose steps are the test's.
class TestJob : public Job {
 public:
  std::function<void()> on_run = [] {};
  std::function<void()> on_commit = [] {};
  std::function<void(std::exception_ptr)> on_fail = [](std::exception_ptr) {};

  void run() override { on_run(); }
  void commit() override { on_commit(); }
  void fail(std::exception_ptr error) noexcept override { on_fail(error); }
};

// Counts down on destruction.
class DyingJob : public TestJob {
 public:
  explicit DyingJob(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  ~DyingJob() override { --alive_; }

 private:
  std::atomic<int>& alive_;
};

TEST(Pipeline, CommitsInOrderOfSubmissionThoughLaterJobsFinishFirst) {
  std::vector<int> committed;
  std::latch second_ran(1);
  Pipeline pipeline(1000, 2);
  auto first = std::make_unique<TestJob>();
  first->on_run = [&] { second_ran.wait(); };
  first->on_commit = [&] { committed.push_back(0); };
  pipeline.submit(std::move(first), nullptr);
  for (int i = 1; i < 20; ++i) {
    auto job = std::make_unique<TestJob>();
    if (i == 1) job->on_run = [&] { second_ran.count_down(); };
    job->on_commit = [&committed, i] { committed.push_back(i); };
    pipeline.submit(std::move(job), nullptr);
  }
  pipeline.drain();
  ASSERT_EQ(committed.size(), 20U);
  EXPECT_TRUE(std::is_sorted(committed.begin(), committed.end()));
}

TEST(Pipeline, ReserveBlocksWhileFullAndGoesOnWhenSpaceIsFree) {
  Pipeline pipeline(100, 1);
  std::latch release(1);
  auto slow = std::make_unique<TestJob>();
  slow->on_run = [&] { release.wait(); };
  pipeline.submit(std::move(slow), pipeline.reserve(80));
  std::atomic<bool> reserved = false;
  std::thread caller([&] {
    const auto reservation = pipeline.reserve(30);
    reserved = true;
  });
  EXPECT_FALSE(pipeline.wait_for(1, 50ms));
  EXPECT_FALSE(reserved);
  EXPECT_EQ(pipeline.state().reserved_bytes, 80U);
  release.count_down();
  caller.join();
  EXPECT_TRUE(reserved);
  pipeline.drain();
  EXPECT_EQ(pipeline.state().reserved_bytes, 0U);
}

TEST(Pipeline, AFullQueueOfManyCallersNeverExceedsItsLimit) {
  constexpr std::size_t kLimit = 1000;
  Pipeline pipeline(kLimit, 2);
  std::atomic<std::size_t> worst = 0;
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        auto job = std::make_unique<TestJob>();
        job->on_run = [&] { worst = std::max(worst.load(), pipeline.state().reserved_bytes); };
        pipeline.submit(std::move(job), pipeline.reserve(300));
      }
    });
  }
  for (auto& caller : callers) caller.join();
  pipeline.drain();
  EXPECT_LE(worst.load(), kLimit);
  EXPECT_GT(worst.load(), 0U);
  EXPECT_EQ(pipeline.state().committed, 800U);
}

TEST(Pipeline, AThrowingRunIsGivenToFailAndStillCommits) {
  Pipeline pipeline(100, 1);
  std::vector<std::string> events;
  auto job = std::make_unique<TestJob>();
  job->on_run = [] { throw std::runtime_error("no"); };
  job->on_fail = [&](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::runtime_error& e) {
      events.emplace_back(std::string("fail ") + e.what());
    }
  };
  job->on_commit = [&] { events.emplace_back("commit"); };
  pipeline.submit(std::move(job), nullptr);
  pipeline.drain();
  EXPECT_THAT(events, ElementsAre("fail no", "commit"));
}

TEST(Pipeline, AFailingCommitDoesNotStopTheNextJob) {
  Pipeline pipeline(100, 1);
  int failures = 0;
  bool second = false;
  auto bad = std::make_unique<TestJob>();
  bad->on_commit = [] { throw std::runtime_error("disk"); };
  bad->on_fail = [&](std::exception_ptr) { ++failures; };
  auto good = std::make_unique<TestJob>();
  good->on_commit = [&] { second = true; };
  pipeline.submit(std::move(bad), nullptr);
  pipeline.submit(std::move(good), nullptr);
  pipeline.drain();
  EXPECT_EQ(failures, 1);
  EXPECT_TRUE(second);
}

TEST(Pipeline, DestructorDrainsAndFreesEveryJob) {
  std::atomic<int> alive = 0;
  std::atomic<int> committed = 0;
  {
    Pipeline pipeline(1 << 20, 2);
    for (int i = 0; i < 500; ++i) {
      auto job = std::make_unique<DyingJob>(alive);
      job->on_commit = [&] { ++committed; };
      pipeline.submit(std::move(job), pipeline.reserve(10));
    }
  }
  EXPECT_EQ(committed, 500);
  EXPECT_EQ(alive, 0);
}

TEST(Pipeline, WaitForReportsWhetherTheFirstJobsAreCommitted) {
  Pipeline pipeline(100, 1);
  EXPECT_TRUE(pipeline.wait_for(0, 0ms));
  std::latch release(1);
  auto job = std::make_unique<TestJob>();
  job->on_run = [&] { release.wait(); };
  pipeline.submit(std::move(job), nullptr);
  EXPECT_FALSE(pipeline.wait_for(1, 10ms));
  release.count_down();
  EXPECT_TRUE(pipeline.wait_for(1, 10s));
  EXPECT_FALSE(pipeline.wait_for(2, 0ms));
}

TEST(Pipeline, TakesNothingInOnceItIsHeld) {
  Pipeline pipeline(100, 1);
  pipeline.submit(std::make_unique<TestJob>(), pipeline.reserve(10));
  pipeline.hold();
  pipeline.drain();  // what was there before still ends
  EXPECT_EQ(pipeline.state().committed, 1U);
  const pid_t child = fork();
  if (child == 0) {
    alarm(1);
    const auto never = pipeline.reserve(1);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
}

}  // namespace
}  // namespace msprobe
