#include "format/record.h"

#include <gtest/gtest.h>

#include <limits>

namespace msprobe {
namespace {

std::string raw(ScalarValue value) { return render_value({Raw{std::move(value)}}, {}); }

TensorLeaf leaf_of(std::vector<std::optional<std::int64_t>> shape = {2, 3}) {
  TensorLeaf leaf;
  leaf.type = "torch.Tensor";
  leaf.dtype = "torch.float32";
  leaf.shape = std::move(shape);
  leaf.requires_grad = true;
  return leaf;
}

Value gradient_leaf() {
  TensorLeaf leaf = leaf_of();
  leaf.expects_gradient = true;
  return {leaf};
}

LeafResult result_of(double max = 5.0) {
  LeafResult result;
  result.statistics.max = max;
  result.statistics.min = 0.0;
  result.statistics.mean = 2.5;
  result.statistics.norm = 7.416198253631592;
  return result;
}

// The text with each slot as `<capacity>`.
std::string shown(const RecordText& record) {
  std::string out;
  for (const auto& piece : record) {
    if (const auto* text = std::get_if<std::string>(&piece)) {
      out += *text;
    } else {
      out += "<" + std::to_string(std::get<Slot>(piece).capacity) + ">";
    }
  }
  return out;
}

TEST(RenderTensor, HasThePeersFieldsInOrder) {
  EXPECT_EQ(render_tensor(leaf_of(), result_of()),
            R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "Max": 5.0, "Min": 0.0, )"
            R"("Mean": 2.5, "Norm": 7.416198253631592, "requires_grad": true})");
}

TEST(RenderTensor, ShowsEveryOptionalFieldInOrder) {
  TensorLeaf leaf = leaf_of({2, std::nullopt});
  leaf.requires_grad = false;
  leaf.extra = {{"device_mesh", {List{{Raw{std::int64_t{0}}}, {Raw{std::int64_t{1}}}}}},
                {"placements", {List{{Raw{std::string("Shard(dim=0)")}}}}}};
  LeafResult result;
  result.statistics = {true, std::monostate(), std::nullopt, std::nullopt, 1, 2, 3};
  result.has_checksum_field = true;
  result.checksum = 0xD53A3;
  result.data_name = "x.0.debug.pt";
  EXPECT_EQ(render_tensor(leaf, result),
            R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, null], "Max": true, "Min": null, )"
            R"("Mean": null, "Norm": null, "requires_grad": false, "device_mesh": [0, 1], )"
            R"x("placements": ["Shard(dim=0)"], "md5": "000d53a3", "data_name": "x.0.debug.pt", "nan_count": 1, )x"
            R"("pos_inf_count": 2, "neg_inf_count": 3})");
}

TEST(RenderTensor, KeepsIntegersExactAndChecksumNull) {
  TensorLeaf leaf = leaf_of({});
  leaf.type = "mindspore.Tensor";
  leaf.requires_grad.reset();
  LeafResult result;
  result.statistics.max = std::numeric_limits<std::uint64_t>::max();
  result.statistics.min = std::numeric_limits<std::int64_t>::min();
  result.has_checksum_field = true;
  EXPECT_EQ(render_tensor(leaf, result),
            R"({"type": "mindspore.Tensor", "dtype": "torch.float32", "shape": [], "Max": 18446744073709551615, )"
            R"("Min": -9223372036854775808, "Mean": null, "Norm": null, "md5": null})");
}

TEST(RenderValue, ShowsScalarsWithTheirType) {
  const auto shown_scalar = [](std::string type, ScalarValue value) {
    return render_value({Scalar{std::move(type), std::move(value)}}, {});
  };
  EXPECT_EQ(shown_scalar("int", std::int64_t{3}), R"({"type": "int", "value": 3})");
  EXPECT_EQ(shown_scalar("bool", true), R"({"type": "bool", "value": true})");
  EXPECT_EQ(shown_scalar("int", BigInteger{"-36893488147419103232"}),
            R"({"type": "int", "value": -36893488147419103232})");
  EXPECT_EQ(shown_scalar("complex", std::complex<double>(1, -2.5)), R"({"type": "complex", "value": [1.0, -2.5]})");
  EXPECT_EQ(shown_scalar("slice", std::vector<std::optional<std::int64_t>>{2, std::nullopt}),
            R"({"type": "slice", "value": [2, null]})");
  EXPECT_EQ(shown_scalar("my \"class\"", {}), R"({"type": "my \"class\"", "value": null})");
  EXPECT_EQ(render_value({Null{}}, {}), "null");
  EXPECT_EQ(raw(std::uint64_t{7}), "7");
  EXPECT_EQ(raw("text"), "\"text\"");
}

TEST(RenderValue, KeepsTheNestingAndTakesResultsDepthFirst) {
  const Value value{
      Map{{"k\n", {List{{leaf_of()}, {Null{}}, {List{}}}}}, {"m", {Map{{"t", {leaf_of()}}}}}, {"e", {Map{}}}}};
  const std::vector<LeafResult> results = {result_of(1), result_of(2)};
  EXPECT_EQ(render_value(value, results), R"({"k\n": [)" + render_tensor(leaf_of(), results[0]) +
                                              R"(, null, []], "m": {"t": )" + render_tensor(leaf_of(), results[1]) +
                                              R"(}, "e": {}})");
}

TEST(RenderValue, TakesNestingOf400) {
  Value value{Null{}};
  for (int i = 0; i < 400; ++i) {
    List list;
    list.push_back(std::move(value));
    value = {std::move(list)};
  }
  EXPECT_EQ(render_value(value, {}), std::string(400, '[') + "null" + std::string(400, ']'));
}

TEST(GradientSkeleton, HasSlotsWhereGradientsAreExpectedAndNullElsewhere) {
  const Value value{Map{{"a", {List{gradient_leaf(), {leaf_of()}, {Raw{std::int64_t{1}}}}}}, {"b", gradient_leaf()}}};
  const RecordText record = render_gradient_skeleton(value, false, 0);
  const std::string slot = shown(render_gradient_skeleton(gradient_leaf(), false, 0));
  EXPECT_EQ(shown(record), R"({"a": [)" + slot + R"(, null, null], "b": )" + slot + "}");
  EXPECT_EQ(record.size(), 5U) << "text next to text is one piece";
  EXPECT_EQ(shown(render_gradient_skeleton({Null{}}, true, 10)), "null");
}

TEST(GradientSkeleton, SlotHoldsTheLongestGradientAndLittleMore) {
  for (const bool with_checksum : {false, true}) {
    for (const std::string& data_name : {std::string(), std::string("x_grad.0.debug.pt")}) {
      TensorLeaf leaf = leaf_of({1000, 2000});
      leaf.type = "Param";
      leaf.extra = {{"placements", {List{{Raw{std::string("Replicate()")}}}}}};
      leaf.expects_gradient = true;
      const auto capacity =
          std::get<Slot>(render_gradient_skeleton({leaf}, with_checksum, data_name.size()).at(0)).capacity;
      TensorLeaf gradient = leaf;
      gradient.type = "torch.Tensor";
      gradient.requires_grad = false;
      LeafResult result;
      constexpr double kLongest = std::numeric_limits<double>::lowest();
      constexpr std::int64_t kMany = 1000 * 2000;
      result.statistics = {kLongest, kLongest, kLongest, kLongest, kMany, kMany, kMany};
      result.has_checksum_field = with_checksum;
      result.checksum = 0xFFFFFFFF;
      result.data_name = data_name;
      EXPECT_EQ(render_tensor(gradient, result).size(), capacity);
    }
  }
}

TEST(Compose, MergesTextAndMovesSlots) {
  RecordText record;
  append_text(record, "");
  append_text(record, "\"x\": ");
  append_text(record, "1");
  append_text(record, ",\n\"x_grad\": ");
  append_record(record, render_gradient_skeleton({List{gradient_leaf()}}, false, 0));
  append_text(record, ",\n");
  RecordText plain{"\"y\": 2"};
  append_record(record, std::move(plain));
  ASSERT_EQ(record.size(), 3U);
  EXPECT_EQ(std::get<std::string>(record[0]), "\"x\": 1,\n\"x_grad\": [");
  EXPECT_GT(std::get<Slot>(record[1]).capacity, 4U);
  EXPECT_EQ(std::get<std::string>(record[2]), "],\n\"y\": 2");
}

}  // namespace
}  // namespace msprobe
