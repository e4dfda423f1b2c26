#include "compare/divergence.h"

#include <gtest/gtest.h>

#include "compare/text.h"

namespace msprobe {
namespace {

TEST(EarliestRow, IsOfTheFirstStepThatHasOne) {
  EarliestRow earliest;
  EXPECT_TRUE(earliest.add(3, "rank0", "b", false, 9));
  EXPECT_FALSE(earliest.add(4, "rank0", "a", false, 0));
  EXPECT_EQ(earliest.ranks_of("b"), "rank0");
  EXPECT_EQ(earliest.ranks_of("a"), "");
}

TEST(EarliestRow, IsTheOneThatComesFirstInItsFolderWhateverTheRank) {
  EarliestRow earliest;
  EXPECT_TRUE(earliest.add(3, "rank0", "late", false, 50));
  EXPECT_TRUE(earliest.add(3, "rank37", "early", false, 5));
  EXPECT_FALSE(earliest.add(3, "rank37", "late", false, 50));
  EXPECT_FALSE(earliest.add(3, "rank38", "early", false, 5));
  EXPECT_EQ(earliest.ranks_of("early"), "rank37, rank38");
  EXPECT_EQ(earliest.ranks_of("late"), "rank0, rank37");
}

TEST(EarliestRow, PutsForwardBeforeBackward) {
  EarliestRow earliest;
  EXPECT_TRUE(earliest.add(0, "rank0", "x_grad", true, 1));
  EXPECT_TRUE(earliest.add(0, "rank0", "y", false, 8));
  EXPECT_FALSE(earliest.add(0, "rank1", "x_grad", true, 0));
}

TEST(RankList, NamesRunsByTheirEnds) {
  std::vector<std::string> ranks;
  for (int i = 63; i >= 0; --i) ranks.push_back("rank" + std::to_string(i));
  EXPECT_EQ(rank_list_text(ranks), "rank0-rank63");
  EXPECT_EQ(rank_list_text({"rank5", "rank0", "rank1", "rank0", "rank9", "rank10", "rank11"}),
            "rank0, rank1, rank5, rank9-rank11");
  EXPECT_EQ(rank_list_text({"proc17", "rank2", "proc7 / proc8"}), "rank2, proc17, proc7 / proc8");
  EXPECT_EQ(rank_list_text({}), "");
}

}  // namespace
}  // namespace msprobe
