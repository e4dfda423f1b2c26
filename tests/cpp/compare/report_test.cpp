#include "compare/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compare/columns.h"
#include "compare/verdict.h"
#include "dump_folder.h"
#include "msprobe/error.h"
#include "records.h"

namespace msprobe {
namespace {

using test::FileSizeLimit;
using test::records_of;
using test::ScratchFolder;
using testing::HasSubstr;

class OneRow {
 public:
  OneRow(const std::string& golden, const std::string& target)
      : golden_(records_of(golden)), target_(records_of(target)) {
    row.step = 3;
    row.rank = "rank0";
    row.pair = match(golden_, target_, {}).at(0);
    judge_records(row, {});
  }
  ComparedRow row;

 private:
  std::vector<Record> golden_;
  std::vector<Record> target_;
};

using Make = std::unique_ptr<Report> (*)(const Directory&, const std::string&);

std::string written(Make make, const ComparedRow& row) {
  const ScratchFolder scratch;
  const auto report = make(scratch.open(), "out");
  report->add(row);
  report->finish();
  EXPECT_EQ(test::count_entries(scratch.path()), 1U);
  return test::read_file(scratch / "out");
}

TEST(CsvReport, QuotesWhatRfc4180Says) {
  const std::string name = R"("a,\"b\"\nc.0.debug": {"type": "float", "value": )";
  const std::string text = written(make_csv_report, OneRow(name + "NaN}", name + "1.5}").row);
  EXPECT_TRUE(text.starts_with("Step,Rank,NPU Name,Bench Name,Verdict,"));
  EXPECT_THAT(text, HasSubstr("\n3,rank0,\"a,\"\"b\"\"\nc.0.debug\",\"a,\"\"b\"\"\nc.0.debug\",fail,plain value,"));
  EXPECT_THAT(text, HasSubstr(",1.5,NaN,"));
}

TEST(JsonlReport, LeavesEmptyCellsOut) {
  const std::string text = written(make_jsonl_report, OneRow(R"("x.0.debug": null)", R"("y.0.debug": null)").row);
  EXPECT_EQ(text,
            R"({"Step": 3, "Rank": "rank0", "NPU Name": "y.0.debug", "Verdict": "target only", "NPU Dtype": "None"})"
            "\n");
}

TEST(XlsxReport, IsAnArchive) {
  EXPECT_TRUE(written(make_xlsx_report, OneRow(R"("x.0.debug": null)", R"("x.0.debug": null)").row).starts_with("PK"));
}

class EveryReport : public testing::TestWithParam<Make> {};
INSTANTIATE_TEST_SUITE_P(All, EveryReport, testing::Values(make_csv_report, make_jsonl_report, make_xlsx_report));

TEST_P(EveryReport, AppearsWithFinishOnly) {
  const ScratchFolder scratch;
  test::write_text(scratch / "out", "old");
  const OneRow row(R"("x.0.debug": null)", R"("x.0.debug": null)");
  {
    const auto report = GetParam()(scratch.open(), "out");
    report->add(row.row);
    EXPECT_EQ(test::read_file(scratch / "out"), "old");
  }
  EXPECT_EQ(test::read_file(scratch / "out"), "old");
  EXPECT_EQ(test::count_entries(scratch.path()), 1U);
  const auto report = GetParam()(scratch.open(), "out");
  report->finish();
  EXPECT_NE(test::read_file(scratch / "out"), "old");
}

TEST_P(EveryReport, ThatCannotBeWrittenLeavesNothingAndSaysWhy) {
  const ScratchFolder scratch;
  const OneRow row(R"("x.0.debug": {"type": "str", "value": ")" + std::string(3000, 'x') + "\"}",
                   R"("x.0.debug": {"type": "str", "value": "y"})");
  std::string message;
  {
    const FileSizeLimit limit(4096);
    EXPECT_EQ(test::error_of(
                  [&] {
                    const auto report = GetParam()(scratch.open(), "out");
                    for (int i = 0; i < 200; ++i) report->add(row.row);
                    report->finish();
                  },
                  &message),
              EFBIG);
  }
  EXPECT_THAT(message, HasSubstr((scratch / "out").string()));
  EXPECT_EQ(test::count_entries(scratch.path()), 0U);
}

TEST(Columns, HaveNamesOfTheirOwn) {
  std::vector<std::string_view> names;
  for (const Column& column : compare_columns()) names.push_back(column.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

}  // namespace
}  // namespace msprobe
