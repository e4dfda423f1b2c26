#include "compare/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compare/divergence.h"
#include "dump_folder.h"
#include "msprobe/error.h"
#include "records.h"

namespace msprobe {
namespace {

using test::ScratchFolder;
using test::tensor_json;
using test::write_npy;
using test::write_records;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Lines "step rank name: verdict (evidence) reason".
class RowLines : public RowSink {
 public:
  void add(const ComparedRow& row) override {
    std::string line = (row.step ? std::to_string(*row.step) : "-") + " " + std::string(row.rank) + " " + row.name() +
                       ": " + std::string(verdict_text(row.verdict));
    if (row.evidence != Evidence::kNothing) line += " by " + std::string(evidence_text(row.evidence));
    lines.push_back(line + (row.reason.empty() ? "" : "; " + row.reason));
    positions.push_back(row.position);
    places.push_back(row.errors && row.errors->max_abs ? row.place_of(*row.errors->max_abs) : "");
  }
  std::vector<std::string> lines;
  std::vector<std::size_t> positions;
  std::vector<std::string> places;
};

struct Compared {
  Compared(const std::filesystem::path& golden, const std::filesystem::path& target,
           const CompareOptions& options = {}) {
    folders = compare_dumps(golden, target, options, {&rows, &divergence});
  }
  RowLines rows;
  DivergenceFinder divergence;
  ComparedFolders folders;
};

std::string int_record(std::string_view key, int value) {
  return "\"" + std::string(key) + R"(": {"type": "int", "value": )" + std::to_string(value) + "}";
}

std::string tensor_record(std::string_view key, std::string_view shape, std::string_view file,
                          const std::vector<std::string>& numbers = {"1.0", "1.0", "1.0", "2.0"}) {
  return "\"" + std::string(key) +
         "\": " + tensor_json("torch.float32", shape, numbers, R"(, "data_name": ")" + std::string(file) + "\"");
}

TEST(CompareDumps, PairsFoldersByNumberAndTellsOfThoseOnOneSide) {
  const ScratchFolder scratch;
  for (const char* name :
       {"g/step0/rank0", "g/step2/rank0", "g/step10/rank1", "t/step0/rank0", "t/step2/rank0", "t/step2/rank1"}) {
    write_records(scratch / name, int_record("x.0.debug", 1));
  }
  const Compared compared(scratch / "g", scratch / "t");
  EXPECT_THAT(compared.rows.lines,
              ElementsAre("0 rank0 x.0.debug: equal by plain value", "2 rank0 x.0.debug: equal by plain value",
                          "2 rank1 x.0.debug: target only", "10 rank1 x.0.debug: golden only"));
  EXPECT_EQ(compared.folders.pairs, 2);
  EXPECT_THAT(compared.folders.golden_only, ElementsAre("step10/rank1"));
  EXPECT_THAT(compared.folders.target_only, ElementsAre("step2/rank1"));
  EXPECT_EQ(compared.divergence.result(), std::nullopt);
}

TEST(CompareDumps, PairsTheOnlyProcessOfEachSide) {
  const ScratchFolder scratch;
  write_records(scratch / "g/step0/proc17", int_record("x.0.debug", 1));
  write_records(scratch / "t/step0/proc23", int_record("x.0.debug", 2));
  const Compared compared(scratch / "g", scratch / "t");
  EXPECT_THAT(compared.rows.lines, ElementsAre("0 proc17 / proc23 x.0.debug: fail by plain value; 2 against 1"));
  EXPECT_EQ(compared.divergence.result()->ranks, "proc17 / proc23");
}

TEST(CompareDumps, RefusesPathsOfDifferentKinds) {
  const ScratchFolder scratch;
  write_records(scratch / "g/step0/rank0", "");
  EXPECT_THROW(Compared(scratch / "g", scratch / "g/step0"), ConfigError);
}

TEST(CompareDumps, GoesOnAfterADamagedRank) {
  const ScratchFolder scratch;
  for (const char* side : {"g", "t"}) {
    for (const char* rank : {"rank0", "rank1", "rank2"}) {
      write_records(scratch.path() / side / "step0" / rank, int_record("x.0.debug", 1));
    }
  }
  test::write_text(scratch / "g/step0/rank1/debug.json", R"({"data": {)");
  const Compared compared(scratch / "g", scratch / "t");
  EXPECT_THAT(compared.rows.lines,
              ElementsAre("0 rank0 x.0.debug: equal by plain value", "0 rank2 x.0.debug: equal by plain value"));
  EXPECT_THAT(compared.folders.unreadable, ElementsAre(HasSubstr("rank1/debug.json")));
}

TEST(CompareDumps, FindsTheEarliestFailureOfAllRanks) {
  const ScratchFolder scratch;
  const auto records = [](int early, int late) {
    return int_record("early.0.debug", early) + ", " + int_record("late.0.debug", late);
  };
  for (int rank = 0; rank < 8; ++rank) {
    const std::string folder = "step3/rank" + std::to_string(rank);
    write_records(scratch / ("g/" + folder), records(1, 1));
    write_records(scratch / ("t/" + folder), records(rank == 5 ? 2 : 1, 2));
  }
  const auto first = Compared(scratch / "g", scratch / "t").divergence.result();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->golden_name, "early.0.debug");
  EXPECT_EQ(first->ranks, "rank5");
}

TEST(CompareDumps, GivesRowsOfALargeFolderInOrder) {
  const ScratchFolder scratch;
  std::string data;
  constexpr int kRows = 10'000;
  for (int i = 0; i < kRows; ++i) data += (i > 0 ? ", " : "") + int_record("x." + std::to_string(i) + ".debug", i);
  write_records(scratch / "g/step0/rank0", data);
  const Compared compared(scratch / "g", scratch / "g");
  ASSERT_EQ(compared.rows.positions.size(), std::size_t{kRows});
  for (std::size_t i = 0; i < kRows; ++i) ASSERT_EQ(compared.rows.positions[i], i);
}

TEST(CompareDumps, ComparesTheValuesOfFiles) {
  const ScratchFolder scratch;
  for (const char* side : {"g", "t"}) {
    write_records(scratch.path() / side / "step0/rank0", tensor_record("a.0.debug", "[4]", "a.npy") + ", " +
                                                             tensor_record("b.0.debug", "[4]", "b.npy") + ", " +
                                                             tensor_record("c.0.debug", "[4]", "c.npy"));
    write_npy(scratch.path() / side / "step0/rank0/dump_tensor_data/a.npy", {1, 1, 1, 1});
  }
  write_npy(scratch / "g/step0/rank0/dump_tensor_data/b.npy", {1, 1, 1, 1});
  write_npy(scratch / "t/step0/rank0/dump_tensor_data/b.npy", {1, 1, 2, 1});
  write_npy(scratch / "g/step0/rank0/dump_tensor_data/c.npy", {1, 1, 1, 1});
  const Compared compared(scratch / "g", scratch / "t");
  ASSERT_EQ(compared.rows.lines.size(), 3U);
  EXPECT_EQ(compared.rows.lines[0], "0 rank0 a.0.debug: equal by values");
  EXPECT_THAT(compared.rows.lines[1], HasSubstr("fail by values; 1 of 4 elements beyond"));
  EXPECT_EQ(compared.rows.places[1], "[2]");
  EXPECT_THAT(compared.rows.lines[2], HasSubstr("unreadable; "));  // and not equal by its statistics
  EXPECT_THAT(compared.rows.lines[2], HasSubstr("t/step0/rank0/dump_tensor_data/c.npy"));
}

TEST(CompareDumps, SurvivesShapesThatTheFilesDoNotHave) {
  const ScratchFolder scratch;
  const std::vector<const char*> shapes = {"[0]", "[0, 3]", "[]", "[-1]", "[null, 2]", "[4611686018427387904, 4]"};
  for (const char* side : {"g", "t"}) {
    std::string data;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      data += (i > 0 ? ", " : "") + tensor_record("x." + std::to_string(i) + ".debug", shapes[i], "x.npy");
    }
    write_records(scratch.path() / side / "step0/rank0", data);
  }
  write_npy(scratch / "g/step0/rank0/dump_tensor_data/x.npy", {1, 1, 1});
  write_npy(scratch / "t/step0/rank0/dump_tensor_data/x.npy", {1, 1, 5});
  const Compared compared(scratch / "g", scratch / "t");
  ASSERT_EQ(compared.rows.lines.size(), shapes.size());
  for (const std::string& place : compared.rows.places) EXPECT_EQ(place, "#2");
}

TEST(CompareDumps, TakesTheScaleFromTheFileWhereGoldenHasNaN) {
  const ScratchFolder scratch;
  const auto write = [&](const char* side, float small) {
    write_records(scratch.path() / side / "step0/rank0",
                  tensor_record("x.0.debug", "[3]", "x.npy", {"NaN", "NaN", "NaN", "NaN"}));
    write_npy(scratch.path() / side / "step0/rank0/dump_tensor_data/x.npy", {1000.0F, small, NAN});
  };
  write("g", 0.0F);
  write("t", 1e-3F);  // what cancellation of values near 1000 leaves
  EXPECT_THAT(Compared(scratch / "g", scratch / "t").rows.lines, ElementsAre("0 rank0 x.0.debug: pass by values"));
  CompareOptions exact;
  exact.tolerance.rtol = 0;
  EXPECT_THAT(Compared(scratch / "g", scratch / "t", exact).rows.lines, ElementsAre(HasSubstr("fail by values")));
}

TEST(CompareDumps, ComparesTwoFiles) {
  const ScratchFolder scratch;
  write_npy(scratch / "a.npy", {1, 2, 3});
  write_npy(scratch / "b.npy", {1, 2, 4});
  EXPECT_THAT(Compared(scratch / "a.npy", scratch / "a.npy").rows.lines, ElementsAre("-  tensor: equal by values"));
  const Compared compared(scratch / "a.npy", scratch / "b.npy");
  EXPECT_THAT(compared.rows.lines, ElementsAre(HasSubstr("tensor: fail by values")));
  EXPECT_THAT(compared.rows.places, ElementsAre("[2]"));
}

TEST(CompareProgress, GrowsFromZeroToOne) {
  const ScratchFolder scratch;
  for (int rank = 0; rank < 3; ++rank) {
    write_records(scratch / ("g/step0/rank" + std::to_string(rank)), int_record("x.0.debug", 1));
  }
  struct Watch : RowSink {
    explicit Watch(const CompareProgress& watched) : progress(watched) {}
    void add(const ComparedRow&) override { seen.push_back(progress.fraction()); }
    const CompareProgress& progress;
    std::vector<double> seen;
  };
  CompareProgress progress;
  Watch watch(progress);
  CompareOptions options;
  options.progress = &progress;
  static_cast<void>(compare_dumps(scratch / "g", scratch / "g", options, {&watch}));
  EXPECT_THAT(watch.seen, ElementsAre(0, testing::DoubleEq(1.0 / 3), testing::DoubleEq(2.0 / 3)));
  EXPECT_EQ(progress.fraction(), 1);
}

}  // namespace
}  // namespace msprobe
