#include "compare/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compare/text.h"
#include "records.h"

namespace msprobe {
namespace {

using test::records_of;
using test::tensor_json;
using testing::HasSubstr;

class Judged {
 public:
  Judged(const std::string& golden, const std::string& target, const ToleranceOptions& options = {})
      : golden_(records_of("\"x.0.debug\": " + golden)), target_(records_of("\"x.0.debug\": " + target)) {
    row.pair = match(golden_, target_, {}).at(0);
    judge_records(row, options);
  }
  ComparedRow row;

 private:
  std::vector<Record> golden_;
  std::vector<Record> target_;
};

Verdict verdict_of(const std::string& golden, const std::string& target, const ToleranceOptions& options = {}) {
  return Judged(golden, target, options).row.verdict;
}

std::string float32(const std::vector<std::string>& numbers, std::string_view more = "") {
  return tensor_json("torch.float32", "[4]", numbers, more);
}

double difference(const Judged& judged, Statistic statistic) {
  return judged.row.statistics[static_cast<std::size_t>(statistic)].absolute.value();
}

double relative(const Judged& judged, Statistic statistic) {
  return judged.row.statistics[static_cast<std::size_t>(statistic)].relative.value();
}

TEST(Verdict, OfTheSameStatisticsIsEqual) {
  const Judged judged(float32({"2.0", "-1.0", "0.5", "3.0"}), float32({"2.0", "-1.0", "0.5", "3.0"}));
  EXPECT_EQ(judged.row.verdict, Verdict::kEqual);
  EXPECT_EQ(judged.row.evidence, Evidence::kStatistics);
  for (const Statistic statistic : kStatistics) {
    EXPECT_EQ(difference(judged, statistic), 0);
    EXPECT_EQ(relative(judged, statistic), 0);
  }
}

TEST(Verdict, GivesDifferencesByHand) {
  const Judged judged(float32({"2.0", "-1.0", "0.0", "4.0"}), float32({"3.0", "-1.5", "0.25", "5.0"}));
  EXPECT_EQ(judged.row.verdict, Verdict::kFail);
  EXPECT_EQ(judged.row.reason, "Max 3 against 2");
  EXPECT_EQ(difference(judged, Statistic::kMax), 1.0);
  EXPECT_EQ(relative(judged, Statistic::kMax), 0.5);
  EXPECT_EQ(difference(judged, Statistic::kMin), -0.5);
  EXPECT_EQ(relative(judged, Statistic::kMin), 0.5);
  EXPECT_EQ(difference(judged, Statistic::kMean), 0.25);
  EXPECT_EQ(relative(judged, Statistic::kMean), HUGE_VAL);
  EXPECT_EQ(relative(judged, Statistic::kNorm), 0.25);
}

TEST(Verdict, DependsOnTheDtype) {
  // Off by one percent of the root mean square: rounding in bfloat16, not in float32 or float16.
  const std::vector<std::string> golden = {"1.0", "1.0", "1.0", "2.0"};
  const std::vector<std::string> target = {"1.01", "1.0", "1.0", "2.01"};
  const auto verdict = [&](std::string_view golden_dtype, std::string_view target_dtype) {
    return verdict_of(tensor_json(golden_dtype, "[4]", golden), tensor_json(target_dtype, "[4]", target));
  };
  EXPECT_EQ(verdict("torch.float32", "torch.float32"), Verdict::kFail);
  EXPECT_EQ(verdict("torch.float16", "torch.float32"), Verdict::kFail);
  EXPECT_EQ(verdict("torch.bfloat16", "torch.bfloat16"), Verdict::kPass);
  EXPECT_EQ(verdict("torch.float32", "torch.bfloat16"), Verdict::kPass);  // the less exact of both decides
  EXPECT_EQ(verdict("BFloat16", "torch.float32"), Verdict::kPass);
}

TEST(Verdict, AllowsWhatCancellationLeaves) {
  // Mean near zero of values near 1000: its own size says nothing about its error.
  const std::string golden = float32({"1000.0", "-1000.0", "0.0", "2000.0"});
  EXPECT_EQ(verdict_of(golden, float32({"1000.0", "-1000.0", "0.01", "2000.0"})), Verdict::kPass);
  EXPECT_EQ(verdict_of(golden, float32({"1000.0", "-1000.0", "1.0", "2000.0"})), Verdict::kFail);
  // And a tensor of small values has no excuse.
  EXPECT_EQ(verdict_of(float32({"1e-6", "1e-6", "1e-6", "2e-6"}), float32({"2e-6", "1e-6", "1e-6", "2e-6"})),
            Verdict::kFail);
}

TEST(Verdict, IsExactForIntegers) {
  const auto integers = [](const std::string& max) {
    return tensor_json("torch.int64", "[2]", {max, "0", "1.0", "2.0"});
  };
  EXPECT_EQ(verdict_of(integers("9007199254740993"), integers("9007199254740993")), Verdict::kEqual);
  const Judged judged(integers("9007199254740993"), integers("9007199254740992"));
  EXPECT_EQ(judged.row.verdict, Verdict::kFail);
  EXPECT_EQ(difference(judged, Statistic::kMax), -1);
  EXPECT_EQ(judged.row.reason, "Max 9007199254740992 against 9007199254740993");
  // The last bits of a sum depend on its order.
  EXPECT_EQ(verdict_of(tensor_json("torch.int64", "[2]", {"3", "0", "1.5", "3.0000000000000004"}),
                       tensor_json("torch.int64", "[2]", {"3", "0", "1.5", "3.0"})),
            Verdict::kPass);
}

TEST(Verdict, ComparesNonFiniteStatistics) {
  const std::string nan = float32({"NaN", "NaN", "NaN", "NaN"}, R"(, "nan_count": 1)");
  EXPECT_EQ(verdict_of(nan, nan), Verdict::kEqual);
  const Judged more(nan, float32({"NaN", "NaN", "NaN", "NaN"}, R"(, "nan_count": 3)"));
  EXPECT_EQ(more.row.verdict, Verdict::kFail);
  EXPECT_EQ(more.row.reason, "count of NaN 3 against 1");
  EXPECT_EQ(difference(more, Statistic::kMax), 0);
  EXPECT_EQ(verdict_of(float32({"1.0", "1.0", "1.0", "2.0"}), nan), Verdict::kFail);
  const std::string inf = float32({"Infinity", "-1.0", "Infinity", "Infinity"}, R"(, "pos_inf_count": 1)");
  EXPECT_EQ(verdict_of(inf, inf), Verdict::kEqual);
  EXPECT_EQ(verdict_of(inf, float32({"-Infinity", "-1.0", "Infinity", "Infinity"}, R"(, "pos_inf_count": 1)")),
            Verdict::kFail);
  EXPECT_EQ(verdict_of(inf, float32({"Infinity", "-2.0", "Infinity", "Infinity"}, R"(, "pos_inf_count": 1)")),
            Verdict::kFail);
}

TEST(Verdict, TakesCountsThatAreNotRecordedForUnknown) {
  const std::string peer = float32({"NaN", "NaN", "NaN", "NaN"});
  EXPECT_EQ(verdict_of(peer, float32({"NaN", "NaN", "NaN", "NaN"}, R"(, "nan_count": 3)")), Verdict::kEqual);
  EXPECT_EQ(verdict_of(float32({"NaN", "NaN", "NaN", "NaN"}, R"(, "nan_count": 3)"), peer), Verdict::kEqual);
  EXPECT_EQ(verdict_of(peer, float32({"1.0", "1.0", "1.0", "2.0"})), Verdict::kFail);
}

TEST(Verdict, OfAnotherShapeIsAFailure) {
  const Judged judged(tensor_json("torch.float32", "[2, 3]", {"1", "1", "1", "1"}),
                      tensor_json("torch.float32", "[3, 2]", {"1", "1", "1", "1"}));
  EXPECT_EQ(judged.row.verdict, Verdict::kFail);
  EXPECT_EQ(judged.row.reason, "shape [3, 2] against [2, 3]");
}

TEST(Verdict, OfEmptyTensorsIsEqual) {
  const std::string empty = tensor_json("torch.float32", "[0, 3]", {"null", "null", "null", "null"});
  EXPECT_EQ(verdict_of(empty, empty), Verdict::kEqual);
}

TEST(Verdict, WithoutStatisticsIsNoVerdict) {
  const std::string nothing = tensor_json("torch.float8_e4m3fn", "[4]", {"null", "null", "null", "null"});
  EXPECT_EQ(verdict_of(nothing, tensor_json("torch.float8_e4m3fn", "[4]", {"1.0", "0.0", "0.5", "1.0"})),
            Verdict::kNotCompared);
  // The peer has no Mean and Norm of integers; the others still count.
  const std::string peer = tensor_json("torch.int64", "[4]", {"3", "0", "null", "null"});
  EXPECT_EQ(verdict_of(peer, tensor_json("torch.int64", "[4]", {"3", "0", "1.5", "3.7"})), Verdict::kPass);
  EXPECT_EQ(verdict_of(peer, tensor_json("torch.int64", "[4]", {"4", "0", "1.5", "3.7"})), Verdict::kFail);
}

TEST(Verdict, RestsOnMd5WhereThereIsOne) {
  const std::vector<std::string> numbers = {"1.0", "1.0", "1.0", "2.0"};
  const auto with = [&](std::string_view md5) { return float32(numbers, R"(, "md5": ")" + std::string(md5) + "\""); };
  const Judged equal(with("0000000a"), with("0000000a"));
  EXPECT_EQ(equal.row.verdict, Verdict::kEqual);
  EXPECT_EQ(equal.row.evidence, Evidence::kMd5);
  const Judged other(with("0000000a"), with("0000000b"));
  EXPECT_EQ(other.row.verdict, Verdict::kFail);
  EXPECT_EQ(other.row.reason, "md5 differs; statistics agree");
  // Of other dtypes it says nothing.
  const Judged cast(with("0000000a"), tensor_json("torch.bfloat16", "[4]", numbers, R"(, "md5": "0000000b")"));
  EXPECT_EQ(cast.row.verdict, Verdict::kEqual);
  EXPECT_EQ(cast.row.md5_equal, std::nullopt);
}

TEST(Verdict, TellsOfRequiresGradWithoutFailing) {
  const std::vector<std::string> numbers = {"1.0", "1.0", "1.0", "2.0"};
  const Judged judged(float32(numbers, R"(, "requires_grad": true)"), float32(numbers, R"(, "requires_grad": false)"));
  EXPECT_EQ(judged.row.requires_grad_equal, false);
  EXPECT_EQ(judged.row.verdict, Verdict::kEqual);
}

TEST(Verdict, OfPlainValues) {
  const auto plain = [](std::string_view type, std::string_view value) {
    return R"({"type": ")" + std::string(type) + R"(", "value": )" + std::string(value) + "}";
  };
  EXPECT_EQ(verdict_of(plain("int", "3"), plain("int", "3")), Verdict::kEqual);
  EXPECT_EQ(verdict_of(plain("int", "3"), plain("int", "4")), Verdict::kFail);
  EXPECT_EQ(verdict_of(plain("int", "123456789012345678901234567890"), plain("int", "123456789012345678901234567891")),
            Verdict::kFail);
  EXPECT_EQ(verdict_of(plain("int", "3"), plain("float", "3.0")), Verdict::kPass);
  EXPECT_EQ(verdict_of(plain("float", "1.0"), plain("float", "1.00001")), Verdict::kPass);
  EXPECT_EQ(verdict_of(plain("float", "1.0"), plain("float", "1.001")), Verdict::kFail);
  EXPECT_EQ(verdict_of(plain("float16", "1.0"), plain("float32", "1.001")), Verdict::kPass);
  EXPECT_EQ(verdict_of(plain("float", "NaN"), plain("float", "NaN")), Verdict::kEqual);
  EXPECT_EQ(verdict_of(plain("float", "NaN"), plain("float", "1.0")), Verdict::kFail);
  EXPECT_EQ(verdict_of(plain("float", "Infinity"), plain("float", "-Infinity")), Verdict::kFail);
  EXPECT_EQ(verdict_of(plain("complex", "[1.0, 2.0]"), plain("complex", "[1.0, 2.00001]")), Verdict::kPass);
  EXPECT_EQ(verdict_of(plain("complex", "[1.0, 2.0]"), plain("complex", "[1.0, 2.1]")), Verdict::kFail);
  EXPECT_EQ(verdict_of(plain("str", "\"a\""), plain("str", "\"b\"")), Verdict::kFail);
  EXPECT_EQ(verdict_of(plain("bool", "true"), plain("bool", "false")), Verdict::kFail);
  EXPECT_EQ(verdict_of("null", "null"), Verdict::kEqual);
  const Judged lost(float32({"1", "1", "1", "2"}), "null");
  EXPECT_EQ(lost.row.verdict, Verdict::kFail);
  EXPECT_EQ(lost.row.reason, "null against torch.Tensor");
}

TEST(Verdict, TakesTheUsersTolerances) {
  const std::string golden = float32({"1.0", "1.0", "1.0", "2.0"});
  const std::string target = float32({"1.1", "1.0", "1.02", "2.05"});
  EXPECT_EQ(verdict_of(golden, target), Verdict::kFail);
  EXPECT_EQ(verdict_of(golden, target, {.rtol = 0.1}), Verdict::kPass);
  EXPECT_EQ(verdict_of(golden, target, {.rtol = 0.0, .atol = 0.11}), Verdict::kPass);
  EXPECT_EQ(verdict_of(golden, target, {.rtol = 0.0, .atol = 0.09}), Verdict::kFail);
  EXPECT_EQ(verdict_of(golden, float32({"1.0", "1.0", "1.0", "2.0"}), {.rtol = 0.0, .atol = 0.0}), Verdict::kEqual);
}

PairErrors errors_between(const std::vector<float>& golden, const std::vector<float>& target,
                          const Tolerance& tolerance) {
  PairAccumulator errors(DType::kFloat32, DType::kFloat32, tolerance);
  errors.add(std::as_bytes(std::span(golden)), std::as_bytes(std::span(target)));
  return errors.result();
}

std::string record_of(const std::vector<float>& values) {
  StatisticsAccumulator accumulator(DType::kFloat32);
  accumulator.add(std::as_bytes(std::span(values)));
  const Statistics result = accumulator.result();
  const auto text = [](double number) {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.17g", number);
    return std::string(buffer);
  };
  return tensor_json(
      "torch.float32", "[" + std::to_string(values.size()) + "]",
      {text(std::get<double>(result.max)), text(std::get<double>(result.min)), text(*result.mean), text(*result.norm)});
}

TEST(Verdict, WhatPassesByValuesPassesByStatistics) {
  std::mt19937 random(20261201);
  std::normal_distribution<float> normal;
  int passed = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::size_t count = 1 + random() % 50;
    const float offset = round % 3 == 0 ? 100.0F : 0.0F;
    const float noise = std::pow(10.0F, -static_cast<float>(random() % 8));
    std::vector<float> golden(count);
    for (float& value : golden) value = normal(random) + offset;
    std::vector<float> target = golden;
    for (float& value : target) value += noise * normal(random);
    Judged judged(record_of(golden), record_of(target));
    const Verdict by_statistics = judged.row.verdict;
    const Tolerance tolerance = element_tolerance({}, DType::kFloat32, recorded_scale(*judged.row.golden()).value());
    judge_values(judged.row, errors_between(golden, target, tolerance), tolerance, {});
    if (is_difference(judged.row.verdict)) continue;
    ++passed;
    EXPECT_FALSE(is_difference(by_statistics)) << round;
  }
  EXPECT_GT(passed, 100);
}

TEST(Verdict, OfValuesNamesTheStrongestReason) {
  const Tolerance tolerance{1e-3, 0};
  const auto judged = [&](const std::vector<float>& golden, const std::vector<float>& target,
                          const ToleranceOptions& options = {}) {
    Judged result(record_of({1, 1, 1}), record_of({1, 1, 1}));
    judge_values(result.row, errors_between(golden, target, tolerance), tolerance, options);
    return std::move(result.row);
  };
  EXPECT_EQ(judged({1, 2, 3}, {1, 2, 3}).verdict, Verdict::kEqual);
  EXPECT_EQ(judged({1, 2, 3}, {1, 2, 3.001F}).verdict, Verdict::kPass);
  EXPECT_EQ(judged({1, 2, 3}, {1, 2, 4}).reason, "1 of 3 elements beyond rtol 0.001, atol 0");
  EXPECT_EQ(judged({1, NAN, 3}, {1, NAN, 3}).verdict, Verdict::kEqual);
  EXPECT_EQ(judged({1, NAN, 3}, {1, 2, 3}).reason, "NaN on one side only in 1 of 3 elements");
  EXPECT_THAT(judged({1, INFINITY, 3}, {1, -INFINITY, 3}).reason, HasSubstr("infinity on one side only"));
  EXPECT_EQ(judged({1, 2, 3}, {1, 2, 3.001F}, {.cosine = 1.0}).verdict, Verdict::kFail);
  EXPECT_EQ(judged({0.0F, 2, 3}, {-0.0F, 2, 3}).verdict, Verdict::kPass);
}

TEST(ShortNumber, ReadsAsPeopleWriteNumbers) {
  EXPECT_EQ(short_number(1.5), "1.5");
  EXPECT_EQ(short_number(1.0 / 3), "0.333333");
  EXPECT_EQ(short_number(1e-8), "1e-08");
  EXPECT_EQ(short_number(Extremum(std::uint64_t{18446744073709551615U})), "18446744073709551615");
  EXPECT_EQ(short_number(Extremum(true)), "true");
  EXPECT_EQ(short_number(Extremum()), "null");
  EXPECT_EQ(short_number(Number(std::complex<double>(1.5, -2))), "1.5-2i");
  EXPECT_EQ(exact_text(Number(std::complex<double>(0.1, 2))), "[0.1, 2.0]");
}

TEST(PlaceText, CountsInCOrder) {
  const std::vector<std::int64_t> shape = {2, 3, 4};
  EXPECT_EQ(place_text(0, shape), "[0, 0, 0]");
  EXPECT_EQ(place_text(23, shape), "[1, 2, 3]");
  EXPECT_EQ(place_text(0, {}), "[]");
}

}  // namespace
}  // namespace msprobe
