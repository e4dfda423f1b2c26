#include "pipeline/thread_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

namespace msprobe {
namespace {

TEST(ThreadTeam, EachPartRunsOnce) {
  for (const unsigned threads : {1U, 2U, 3U, 8U}) {
    ThreadTeam team(threads);
    for (const std::size_t parts : {0, 1, 2, 7, 100}) {
      std::vector<std::atomic<int>> runs(parts);
      team.run(parts, [&](std::size_t i) { ++runs[i]; });
      for (const auto& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadTeam, OfOneWorksInTheCallingThread) {
  ThreadTeam team(1);
  std::set<std::thread::id> threads;
  team.run(5, [&](std::size_t) { threads.insert(std::this_thread::get_id()); });
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
}

TEST(ThreadTeam, HelpersWorkWhileTheCallerDoesSomethingElse) {
  ThreadTeam team(2);
  std::latch all_parts(10);
  team.run(
      10, [&](std::size_t) { all_parts.count_down(); }, [&] { all_parts.wait(); });
}

TEST(ThreadTeam, WithoutHelpersTheCallerDoesPartsAfterTheOtherWork) {
  ThreadTeam team(1);
  std::vector<int> order;
  team.run(
      2, [&](std::size_t i) { order.push_back(static_cast<int>(i)); }, [&] { order.push_back(-1); });
  EXPECT_EQ(order, (std::vector{-1, 0, 1}));
}

TEST(ThreadTeam, AnExceptionOfAPartReachesTheCallerAndStopsTheRest) {
  for (const unsigned threads : {1U, 4U}) {
    ThreadTeam team(threads);
    std::atomic<int> runs = 0;
    const auto part = [&](std::size_t) {
      ++runs;
      throw std::runtime_error("part");
    };
    EXPECT_THROW(team.run(1000, part), std::runtime_error);
    EXPECT_LE(runs, static_cast<int>(threads));
    team.run(1, [&](std::size_t) { runs = 0; });  // and the team goes on
    EXPECT_EQ(runs, 0);
  }
}

TEST(ThreadTeam, AnExceptionOfTheOtherWorkReachesTheCaller) {
  ThreadTeam team(2);
  EXPECT_THROW(team.run(
                   3, [](std::size_t) {}, [] { throw std::runtime_error("write"); }),
               std::runtime_error);
}

TEST(ThreadTeam, CallersAtOnceGetTheirOwnParts) {
  ThreadTeam team(3);
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&team, caller] {
      for (int round = 0; round < 50; ++round) {
        std::vector<int> found(20, -1);
        team.run(found.size(), [&](std::size_t i) { found[i] = caller; });
        EXPECT_EQ(found, std::vector<int>(20, caller));
      }
    });
  }
}

// Two threads are allowed, and two callers come: the helper of the first one has to leave.
TEST(ThreadTeam, AHelperLeavesWhereCallersTakeItsPlace) {
  ThreadTeam team(2);
  std::latch helper_is_in(1);
  std::latch second_is_in(1);
  std::latch first_is_over(1);
  std::jthread second([&] {
    helper_is_in.wait();
    team.run(
        0, [](std::size_t) {},
        [&] {
          second_is_in.count_down();
          first_is_over.wait();
        });
  });
  std::vector<std::thread::id> by(10);
  std::latch first_part_ends(1);
  team.run(
      by.size(),
      [&](std::size_t i) {
        by[i] = std::this_thread::get_id();
        if (i > 0) return;
        helper_is_in.count_down();
        second_is_in.wait();
        first_part_ends.count_down();
      },
      [&] { first_part_ends.wait(); });
  first_is_over.count_down();
  EXPECT_NE(by[0], std::this_thread::get_id());
  for (std::size_t i = 1; i < by.size(); ++i) EXPECT_EQ(by[i], std::this_thread::get_id()) << i;
}

}  // namespace
}  // namespace msprobe
