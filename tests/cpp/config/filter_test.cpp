#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>

#include "msprobe/config.h"
#include "msprobe/error.h"

namespace msprobe {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();

TEST(Filter, WithoutRangesMatchesEverything) {
  const Filter filter;
  EXPECT_TRUE(filter.matches_all());
  EXPECT_TRUE(filter.matches(0));
  EXPECT_TRUE(filter.matches(kLargest));
}

TEST(Filter, SortsAndMergesRanges) {
  EXPECT_THAT(Filter({{8, 9}, {1, 3}, {2, 5}, {6, 6}, {3, 3}}).ranges(), ElementsAre(Pair(1, 6), Pair(8, 9)));
  EXPECT_THAT(Filter({{0, kLargest}, {kLargest, kLargest}, {5, 6}}).ranges(), ElementsAre(Pair(0, kLargest)));
  EXPECT_THAT(Filter({{kSmallest, kSmallest}, {kSmallest, 0}}).ranges(), ElementsAre(Pair(kSmallest, 0)));
  EXPECT_EQ(Filter({{1, 2}, {3, 4}}), Filter({{1, 4}}));
}

TEST(Filter, MatchesLikeASet) {
  const Filter filter({{10, 12}, {0, 0}, {5, 7}, {20, 20}});
  const std::set<std::int64_t> expected = {0, 5, 6, 7, 10, 11, 12, 20};
  EXPECT_FALSE(filter.matches_all());
  for (std::int64_t number = -3; number < 30; ++number) {
    EXPECT_EQ(filter.matches(number), expected.contains(number)) << number;
  }
  EXPECT_FALSE(filter.matches(kLargest));
  EXPECT_FALSE(filter.matches(kSmallest));
}

TEST(Filter, RefusesReversedRange) { EXPECT_THROW(Filter({{6, 4}}), ConfigError); }

}  // namespace
}  // namespace msprobe
