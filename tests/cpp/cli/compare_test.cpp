#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../compare/dump_folder.h"
#include "command.h"
#include "msprobe/error.h"

namespace msprobe {
namespace {

using test::Ran;
using test::run;
using test::ScratchFolder;
using test::write_records;
using testing::HasSubstr;

class Compare : public testing::Test {
 protected:
  Compare() {
    request_.golden = scratch_ / "g";
    request_.target = scratch_ / "t";
    request_.out = scratch_ / "out";
  }
  void write(const char* side, int rank, std::string_view data) const {
    write_records(scratch_.path() / side / "step3" / ("rank" + std::to_string(rank)), data);
  }
  ScratchFolder scratch_;
  CompareRequest request_;
};

TEST_F(Compare, OfTheSameSaysSo) {
  for (const char* side : {"g", "t"}) write(side, 0, R"("x.0.debug": 1)");
  const Ran ran = run(compare, request_);
  EXPECT_EQ(ran.status, kExitFine);
  EXPECT_THAT(ran.out, HasSubstr("no differences\n1 row in 1 pair of folders: 1 equal\n"));
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "out/compare.csv"));
  EXPECT_EQ(test::count_entries(scratch_ / "out"), 1U);
}

TEST_F(Compare, PutsTheFirstDivergenceFirst) {
  for (int rank = 0; rank < 64; ++rank) {
    write("g", rank, R"("x.0.debug": 1, "y.0.debug": 1)");
    write("t", rank, R"("x.0.debug": 1, "y.0.debug": 2)");
  }
  request_.jsonl = request_.xlsx = true;
  const Ran ran = run(compare, request_);
  EXPECT_EQ(ran.status, kExitDifferences);
  EXPECT_TRUE(ran.out.starts_with("first divergence: step 3, rank0-rank63, y.0.debug\n  2 against 1\n")) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("... and 44 more (--all shows them)"));
  EXPECT_EQ(test::count_entries(scratch_ / "out"), 3U);
}

TEST_F(Compare, OfAKeyOnOneSideIsADifference) {
  write("g", 0, R"("x.0.debug": 1, "y.0.debug": 1)");
  write("t", 0, R"("x.0.debug": 1)");
  const Ran ran = run(compare, request_);
  EXPECT_EQ(ran.status, kExitDifferences);
  EXPECT_TRUE(ran.out.starts_with("what both sides have is the same, but")) << ran.out;
  request_.ignore = "^y";
  EXPECT_EQ(run(compare, request_).status, kExitFine);
}

TEST_F(Compare, OfNothingIsUnusable) {
  for (const char* side : {"g", "t"}) write(side, 0, R"("x.0.debug": 1)");
  request_.name = "nothing";
  EXPECT_EQ(run(compare, request_).status, kExitUnusable);
}

TEST_F(Compare, OfADamagedFolderIsUnusable) {
  for (const char* side : {"g", "t"}) write(side, 0, R"("x.0.debug": 1)");
  test::write_text(scratch_ / "t/step3/rank1/debug.json", "{");
  const Ran ran = run(compare, request_);
  EXPECT_EQ(ran.status, kExitUnusable);
  EXPECT_THAT(ran.err, HasSubstr("t/step3/rank1/debug.json"));
}

TEST_F(Compare, LeavesNoReportWhereASideIsMissing) {
  write("g", 0, R"("x.0.debug": 1)");
  EXPECT_THROW(run(compare, request_), IoError);
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "out/compare.csv"));
}

}  // namespace
}  // namespace msprobe
