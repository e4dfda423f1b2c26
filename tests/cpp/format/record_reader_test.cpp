#include "format/record_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "format/debug_json.h"
#include "format/record.h"
#include "msprobe/error.h"
#include "scratch.h"

namespace msprobe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RecordFile parse_data(const std::string& data) { return parse_records("{\"data\": {" + data + "}}", "d/debug.json"); }

std::string error_of_text(const std::string& text) {
  try {
    static_cast<void>(parse_records(text, "d/debug.json"));
  } catch (const FormatError& error) {
    return error.what();
  }
  return "";
}

const RecordedTensor& tensor(const RecordedLeaf& leaf) { return std::get<RecordedTensor>(leaf.content); }
const RecordedScalar& scalar(const RecordedLeaf& leaf) { return std::get<RecordedScalar>(leaf.content); }

std::vector<std::string> names_of(const RecordFile& file) {
  std::vector<std::string> names;
  for (const Record& record : file.records) {
    for (const RecordedLeaf& leaf : record.leaves) names.push_back(leaf_name(record, leaf));
  }
  return names;
}

TEST(RecordReader, ReadsAllFieldsOfATensor) {
  const RecordFile file = parse_records(
      R"({"task": "tensor", "level": "debug", "framework": "pytorch", "dump_data_dir": "/d", "data": {
      "x.0.debug": {"type": "torch.Tensor", "dtype": "torch.int64", "shape": [2, null, 0], "Max": 18446744073709551615,
      "Min": -9007199254740993, "Mean": 1e-300, "Norm": Infinity, "requires_grad": true, "device_mesh": [[1], {"a": "b"}],
      "md5": "0badf00d", "data_name": "x.0.debug.pt", "nan_count": 1, "pos_inf_count": 2, "neg_inf_count": 3}}})",
      "");
  EXPECT_EQ(file.task, "tensor");
  EXPECT_EQ(file.level, "debug");
  EXPECT_EQ(file.framework, "pytorch");
  ASSERT_EQ(file.records.size(), 1U);
  const Record& record = file.records[0];
  EXPECT_EQ(record.name(), "x");
  EXPECT_EQ(record.count, 0);
  EXPECT_FALSE(record.is_gradient);
  ASSERT_EQ(record.leaves.size(), 1U);
  const RecordedTensor& x = tensor(record.leaves[0]);
  EXPECT_EQ(x.form->type, "torch.Tensor");
  EXPECT_EQ(x.form->dtype, "torch.int64");
  EXPECT_THAT(x.form->shape, ElementsAre(2, std::nullopt, 0));
  EXPECT_EQ(x.max, Extremum(std::uint64_t{18446744073709551615U}));
  EXPECT_EQ(x.min, Extremum(std::int64_t{-9007199254740993}));
  EXPECT_EQ(x.mean, Extremum(1e-300));
  EXPECT_EQ(x.norm, Extremum(HUGE_VAL));
  EXPECT_EQ(x.form->requires_grad, true);
  EXPECT_THAT(x.form->extra, ElementsAre(std::pair("device_mesh", R"([[1], {"a": "b"}])")));
  EXPECT_EQ(x.md5, "0badf00d");
  EXPECT_EQ(x.data_name, "x.0.debug.pt");
  EXPECT_EQ(x.nan_count, 1);
  EXPECT_EQ(x.pos_inf_count, 2);
  EXPECT_EQ(x.neg_inf_count, 3);
}

TEST(RecordReader, TakesTheTokensOfPythonForNonFiniteNumbers) {
  const RecordFile file =
      parse_data(R"("a.0.debug": {"type": "t", "shape": [], "Max": NaN, "Min": -Infinity, "Mean": null, "Norm": 5.0})");
  const RecordedTensor& a = tensor(file.records[0].leaves[0]);
  EXPECT_TRUE(std::isnan(std::get<double>(a.max)));
  EXPECT_EQ(a.min, Extremum(-HUGE_VAL));
  EXPECT_EQ(a.mean, Extremum());
  EXPECT_EQ(a.norm, Extremum(5.0));
}

TEST(RecordReader, NamesTheLeavesOfANesting) {
  const RecordFile file = parse_data(R"("n.12.debug": {"a": {"type": "int", "value": 3}, "b": [null, [], {"c": {}},
      {"type": "complex", "value": [1.0, -2.5]}, {"type": "torch.Size", "value": [2, 3]}], "type": {"type": "str", "value": "a, b"}})");
  EXPECT_THAT(names_of(file), ElementsAre("n.12.debug.a", "n.12.debug.b.0", "n.12.debug.b.1", "n.12.debug.b.2.c",
                                          "n.12.debug.b.3", "n.12.debug.b.4", "n.12.debug.type"));
  const auto& leaves = file.records[0].leaves;
  EXPECT_EQ(scalar(leaves[0]).value, "3");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(leaves[1].content));
  EXPECT_EQ(scalar(leaves[2]).value, "[]");
  EXPECT_EQ(scalar(leaves[3]).value, "{}");
  EXPECT_EQ(scalar(leaves[4]).value, "[1.0, -2.5]");
  EXPECT_EQ(scalar(leaves[4]).type, "complex");
  EXPECT_EQ(scalar(leaves[5]).value, "[2, 3]");
  EXPECT_EQ(scalar(leaves[6]).value, "\"a, b\"");
}

TEST(RecordReader, GivesLeavesThatReadTheSameDifferentNames) {
  const RecordFile file = parse_data(R"("x.0.debug": {"a.b": null, "a": {"b": null}})");
  EXPECT_THAT(names_of(file), ElementsAre("x.0.debug.a.b", "x.0.debug.a.b#2"));
}

TEST(RecordReader, KnowsAGradientByItsForwardRecord) {
  const RecordFile file = parse_data(
      R"("x.0.debug": null, "x_grad.0.debug": null, "alone_grad.0.debug": null, "x_grad#2.0.debug": null, "x.1.debug": null,
         "y.z.3.debug": null, "free": null)");
  std::vector<std::tuple<std::string, std::int64_t, bool>> found;
  for (const Record& record : file.records) found.emplace_back(record.name(), record.count, record.is_gradient);
  EXPECT_THAT(found, ElementsAre(std::tuple("x", 0, false), std::tuple("x", 0, true),
                                 std::tuple("alone_grad", 0, false), std::tuple("x", 0, true),
                                 std::tuple("x", 1, false), std::tuple("y.z", 3, false), std::tuple("free", 0, false)));
}

TEST(RecordReader, ReadsWhatTheWriterWrote) {
  const test::ScratchFolder folder;
  DebugJson json(folder.open(), {"statistics", "debug", "cpp", ""});
  TensorLeaf leaf;
  leaf.type = "torch.Tensor";
  leaf.dtype = "torch.float32";
  leaf.shape = {2, 3};
  leaf.requires_grad = false;
  LeafResult result;
  result.statistics.max = 5.0;
  result.statistics.min = 0.1;
  result.statistics.norm = 7.416198487095663;
  result.statistics.nan_count = 1;
  const Value value{Map{{"k", Value{List{Value{leaf}, Value{}}}}}};
  const std::string text = render_value(value, std::span(&result, 1));
  json.append({std::string(R"("naïve.0.debug": )") + text, std::string(",\n\"g.0.debug\": "), Slot{100}});
  const RecordFile file = parse_records(test::read_file(folder / "debug.json"), "");
  EXPECT_EQ(file.task, "statistics");
  EXPECT_THAT(names_of(file), ElementsAre("naïve.0.debug.k.0", "naïve.0.debug.k.1", "g.0.debug"));
  const RecordedTensor& read = tensor(file.records[0].leaves[0]);
  EXPECT_EQ(read.min, Extremum(0.1));
  EXPECT_EQ(read.norm, Extremum(7.416198487095663));
  EXPECT_EQ(read.nan_count, 1);
  EXPECT_EQ(read.form->requires_grad, false);
}

TEST(RecordReader, WritesALeafAsItReadIt) {
  for (const std::string text :
       {R"(null)", R"({"type": "int", "value": 3})",
        R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, null], "Max": 5.0, "Min": -1, "Mean": NaN, )"
        R"("Norm": Infinity, "requires_grad": false, "device_mesh": [0, 1], "md5": "00000000", "data_name": "x.pt", )"
        R"("nan_count": 1, "pos_inf_count": 2, "neg_inf_count": 3})"}) {
    const RecordFile file = parse_data("\"x.0.debug\": " + text);
    std::string written;
    append_leaf(written, file.records[0].leaves[0]);
    EXPECT_EQ(written, text);
  }
}

TEST(RecordReader, ComparesNumbersExactly) {
  constexpr std::int64_t kBig = (std::int64_t{1} << 53) + 1;  // no double
  EXPECT_TRUE(same_number(Extremum(kBig), Extremum(static_cast<std::uint64_t>(kBig))));
  EXPECT_FALSE(same_number(Extremum(kBig), Extremum(static_cast<double>(kBig))));
  EXPECT_TRUE(same_number(Extremum(std::int64_t{3}), Extremum(3.0)));
  EXPECT_TRUE(same_number(Extremum(std::nan("")), Extremum(std::nan("1"))));
  EXPECT_TRUE(same_number(Extremum(), Extremum()));
  EXPECT_FALSE(same_number(Extremum(), Extremum(0.0)));
  EXPECT_FALSE(same_number(Extremum(HUGE_VAL), Extremum(-HUGE_VAL)));
}

TEST(RecordReader, TakesHalfASurrogatePairAsReplacementCharacter) {
  const RecordFile file = parse_data(R"("\ud800.0.debug": null, "\ud83d\ude00\udc00.0.debug": null, "\\ud800": null)");
  EXPECT_EQ(file.records[0].name(), "\xEF\xBF\xBD");
  EXPECT_EQ(file.records[1].name(), "\xF0\x9F\x98\x80\xEF\xBF\xBD");
  EXPECT_EQ(file.records[2].name(), "\\ud800");
}

TEST(RecordReader, TakesAnyDepth) {
  constexpr int kDepth = 100'000;
  std::string nest(kDepth, '[');
  nest += "null" + std::string(kDepth, ']');
  const RecordFile file = parse_data("\"deep.0.debug\": " + nest);
  ASSERT_EQ(file.records[0].leaves.size(), 1U);
  EXPECT_EQ(file.records[0].leaves[0].index.size(), 2U * kDepth - 1);
}

TEST(RecordReader, KeepsLargeIntegersOfScalarsAsTheyStand) {
  const RecordFile file = parse_data(R"("n.0.debug": {"type": "int", "value": 123456789012345678901234567890})");
  EXPECT_EQ(scalar(file.records[0].leaves[0]).value, "123456789012345678901234567890");
}

TEST(RecordReader, SaysWhereAFileIsDamaged) {
  EXPECT_THAT(error_of_text(R"({"data": {"x": {"type": "t")"),
              HasSubstr("d/debug.json: not a debug.json: byte 27: Missing a comma or '}'"));
  EXPECT_THAT(error_of_text(""), HasSubstr("The document is empty"));
  EXPECT_THAT(error_of_text("[]"), HasSubstr("expected an object, found a list"));
  EXPECT_THAT(error_of_text(R"({"data": []})"), HasSubstr("expected an object under \"data\", found a list"));
  EXPECT_THAT(error_of_text(R"({"task": "tensor"})"), HasSubstr("found no object \"data\""));
  EXPECT_THAT(error_of_text(std::string("{\"data\": {}}\0", 13)), HasSubstr("byte 12: found a NUL byte"));
  EXPECT_THAT(error_of_text("{\"data\": {\"\xFF\": null}}"), HasSubstr("Invalid encoding"));
}

TEST(RecordReader, SpacesOutsideStringsMakeNoDifference) {
  const RecordFile file =
      parse_data("\"n.0.debug\": {\"type\": \"size\", \"value\" :  [\n 1,\n\t2,{ \"a\":\"b ,  \\\"c:\"}\r\n]\n }");
  EXPECT_EQ(scalar(file.records[0].leaves[0]).value, R"([1, 2, {"a": "b ,  \"c:"}])");
}

TEST(RecordReader, AnyTruncationIsAnErrorOrTheWholeFile) {
  const std::string whole = R"({"task": "t", "data": {"x.0.debug": {"type": "int", "value": [1, {"a": NaN}]}}})";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(error_of_text(whole.substr(0, length)), "") << length;
  }
  EXPECT_EQ(error_of_text(whole), "");
}

TEST(ParseRecords, SharesTheFormOfEqualTensors) {
  const std::string json =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1, "Min": 1, "Mean": 1, "Norm": 1})";
  const RecordFile file = parse_records(R"({"data": {"x": )" + json + R"(, "y": )" + json + "}}", "");
  EXPECT_EQ(tensor(file.records[0].leaves[0]).form, tensor(file.records[1].leaves[0]).form);
}

TEST(ParseRecords, TellsManyLeavesOfOnePlaceApart) {
  constexpr int kLeaves = 100'000;  // quadratic time would be minutes
  std::string nest = R"("a#3": 1)";
  for (int i = 0; i < kLeaves; ++i) nest += R"(, "a": 1)";
  const RecordFile file = parse_records(R"({"data": {"x": {)" + nest + "}}}", "");
  const auto& leaves = file.records.at(0).leaves;
  ASSERT_EQ(leaves.size(), std::size_t{kLeaves + 1});
  EXPECT_EQ(leaves[1].index, "a");
  EXPECT_EQ(leaves[2].index, "a#2");
  EXPECT_EQ(leaves[3].index, "a#4");
  std::set<std::string> indexes;
  for (const RecordedLeaf& leaf : leaves) indexes.insert(leaf.index);
  EXPECT_EQ(indexes.size(), leaves.size());
}

TEST(ParseRecords, RefusesIndexesThatTakeFarMoreRoomThanTheFile) {
  std::string deep;
  constexpr int kDepth = 100'000;
  for (int i = 0; i < kDepth; ++i) deep += R"({"b": 1, "a": )";
  deep += "1" + std::string(kDepth, '}');
  EXPECT_THAT([&] { static_cast<void>(parse_records(R"({"data": {"x": )" + deep + "}}", "d.json")); },
              testing::ThrowsMessage<FormatError>(testing::HasSubstr("far more room than the file")));
}

TEST(AppendLeaf, EscapesTheNamesOfFurtherFields) {
  const RecordFile file = parse_data(R"("x": {"type": "T", "shape": [], "a\"\n": 1})");
  std::string json;
  append_leaf(json, file.records[0].leaves[0]);
  EXPECT_THAT(json, HasSubstr(R"(, "a\"\n": 1})"));
}

}  // namespace
}  // namespace msprobe
