#include "pipeline/termination.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>

namespace msprobe {
namespace {

// Runs `body` in a child and returns its wait status.
int status_of_child(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(TerminationGuard, DrainsThenDiesOfTheSignal) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const int status = status_of_child([&] {
    const TerminationGuard guard([&] { static_cast<void>(!write(ends[1], "drained", 7)); });
    raise(SIGTERM);
    while (true) pause();
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  std::array<char, 8> text{};
  EXPECT_EQ(read(ends[0], text.data(), 7), 7);
  EXPECT_STREQ(text.data(), "drained");
}

TEST(TerminationGuard, ASecondSignalDoesNotCutTheDrainShort) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const int status = status_of_child([&] {
    const TerminationGuard guard([&] {
      for (int i = 0; i < 3; ++i) kill(getpid(), SIGTERM);
      static_cast<void>(!write(ends[1], "drained", 7));
    });
    raise(SIGTERM);
    while (true) pause();
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  std::array<char, 8> text{};
  EXPECT_EQ(read(ends[0], text.data(), 7), 7);
}

TEST(TerminationGuard, AForkedChildMayHaveItsOwn) {
  const int status = status_of_child([] {
    const TerminationGuard guard([] { _exit(1); });
    const int grandchild = status_of_child([] {
      const TerminationGuard own([] { _exit(7); });
      raise(SIGTERM);
      while (true) pause();
    });
    _exit(WIFEXITED(grandchild) && WEXITSTATUS(grandchild) == 7 ? 42 : 2);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST(TerminationGuard, LeavesAUsersHandlerAlone) {
  const int status = status_of_child([] {
    signal(SIGTERM, [](int) { _exit(42); });
    const TerminationGuard guard([] { _exit(1); });
    raise(SIGTERM);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST(TerminationGuard, AForkedChildDiesAtOnceWithoutDraining) {
  const int status = status_of_child([] {
    const TerminationGuard guard([] { _exit(1); });
    const int grandchild = status_of_child([] {
      raise(SIGTERM);
      while (true) pause();
    });
    _exit(WIFSIGNALED(grandchild) && WTERMSIG(grandchild) == SIGTERM ? 42 : 2);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST(TerminationGuard, GivesTheSignalBackWhenItDies) {
  const int status = status_of_child([] {
    {
      const TerminationGuard guard([] { _exit(1); });
    }
    struct sigaction current {};
    sigaction(SIGTERM, nullptr, &current);
    _exit(current.sa_handler == SIG_DFL ? 42 : 2);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

}  // namespace
}  // namespace msprobe
