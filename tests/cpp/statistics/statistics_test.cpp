#include "statistics/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "oracle.h"

namespace msprobe {
namespace {

using testing_oracle::as_number;
using testing_oracle::decode;
using testing_oracle::expect_statistics;
using testing_oracle::random_elements;
using testing_oracle::statistics_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Statistics, OfNothingAreNothing) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    StatisticsAccumulator accumulator(static_cast<DType>(i));
    accumulator.add({});
    accumulator.add_zeros(0);
    const Statistics found = accumulator.result();
    EXPECT_TRUE(std::holds_alternative<std::monostate>(found.max) && std::holds_alternative<std::monostate>(found.min));
    EXPECT_FALSE(found.mean.has_value() || found.norm.has_value());
  }
}

TEST(Statistics, ExtremesHaveTheTypeOfTheDtype) {
  EXPECT_EQ(statistics_of(DType::kBool, std::vector<std::uint8_t>{0, 1}).max, Extremum(true));
  EXPECT_EQ(statistics_of(DType::kInt8, std::vector<std::int8_t>{-5, 1}).min, Extremum(std::int64_t{-5}));
  EXPECT_EQ(statistics_of(DType::kUint16, std::vector<std::uint16_t>{5, 65535}).max, Extremum(std::uint64_t{65535}));
  EXPECT_EQ(statistics_of(DType::kFloat32, std::vector<float>{0.5F}).max, Extremum(0.5));
}

TEST(Statistics, IntegerExtremesAreExact) {
  using Signed = std::numeric_limits<std::int64_t>;
  using Unsigned = std::numeric_limits<std::uint64_t>;
  const Statistics found =
      statistics_of(DType::kInt64, std::vector<std::int64_t>{Signed::max() - 1, Signed::min() + 1, 0});
  EXPECT_EQ(found.max, Extremum(Signed::max() - 1));
  EXPECT_EQ(found.min, Extremum(Signed::min() + 1));
  EXPECT_EQ(statistics_of(DType::kUint64, std::vector<std::uint64_t>{Unsigned::max() - 1, 7}).max,
            Extremum(Unsigned::max() - 1));
}

TEST(Statistics, BoolCountsEveryNonzeroByteAsTrue) {
  const Statistics found = statistics_of(DType::kBool, std::vector<std::uint8_t>{0, 1, 255, 2, 0});
  EXPECT_EQ(found.max, Extremum(true));
  EXPECT_EQ(found.min, Extremum(false));
  EXPECT_DOUBLE_EQ(*found.mean, 0.6);
  EXPECT_DOUBLE_EQ(*found.norm, std::sqrt(3.0));
  EXPECT_EQ(statistics_of(DType::kBool, std::vector<std::uint8_t>{0, 0}).max, Extremum(false));
  EXPECT_EQ(statistics_of(DType::kBool, std::vector<std::uint8_t>{1, 3}).min, Extremum(true));
}

TEST(Statistics, NanMakesAllFourNan) {
  const Statistics found = statistics_of(DType::kFloat64, std::vector<double>{1, kNan, kInfinity, -kInfinity, kNan});
  EXPECT_TRUE(std::isnan(as_number(found.max)) && std::isnan(as_number(found.min)));
  EXPECT_TRUE(std::isnan(*found.mean) && std::isnan(*found.norm));
  EXPECT_EQ(found.nan_count, 2);
  EXPECT_EQ(found.pos_inf_count, 1);
  EXPECT_EQ(found.neg_inf_count, 1);
}

TEST(Statistics, InfinitiesGiveTheirIeeeResult) {
  const Statistics positive = statistics_of(DType::kFloat32, std::vector<float>{1, INFINITY, 3});
  EXPECT_EQ(as_number(positive.max), kInfinity);
  EXPECT_EQ(as_number(positive.min), 1);
  EXPECT_EQ(positive.mean, kInfinity);
  EXPECT_EQ(positive.norm, kInfinity);
  EXPECT_EQ(statistics_of(DType::kFloat32, std::vector<float>{1, -INFINITY}).mean, -kInfinity);
  EXPECT_TRUE(std::isnan(*statistics_of(DType::kFloat32, std::vector<float>{INFINITY, -INFINITY}).mean));
}

TEST(Statistics, InfinitiesOfSeparateBlocksMeet) {
  StatisticsAccumulator accumulator(DType::kFloat64);
  const double plus = kInfinity;
  const double minus = -kInfinity;
  accumulator.add(std::as_bytes(std::span(&plus, 1)));
  accumulator.add(std::as_bytes(std::span(&minus, 1)));
  EXPECT_TRUE(std::isnan(*accumulator.result().mean));
  EXPECT_EQ(accumulator.result().norm, kInfinity);
}

TEST(Statistics, ComplexElementIsNanIfAPartIs) {
  const std::vector<double> parts{3, 4, kInfinity, kNan, -kInfinity, 0};
  EXPECT_EQ(statistics_of(DType::kComplex128, parts).nan_count, 1);
  EXPECT_EQ(statistics_of(DType::kComplex128, parts).pos_inf_count, 1);
  const std::vector<float> narrow(parts.begin(), parts.end());
  EXPECT_EQ(statistics_of(DType::kComplex64, narrow).nan_count, 1);
  EXPECT_EQ(statistics_of(DType::kComplex64, narrow).pos_inf_count, 1);
}

TEST(Statistics, Float4HoldsTwoValuesInAByte) {
  const Statistics found = statistics_of(DType::kFloat4E2m1fnX2, std::vector<std::uint8_t>{0x7A});  // -1 and 6
  EXPECT_EQ(found.max, Extremum(6.0));
  EXPECT_EQ(found.min, Extremum(-1.0));
  EXPECT_EQ(found.mean, 2.5);
  EXPECT_DOUBLE_EQ(*found.norm, std::sqrt(37.0));
}

TEST(Statistics, RepeatEqualsAddingTheBlockAgain) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const bool any_bits : {false, true}) {
      const std::vector<std::byte> bytes = random_elements(dtype, 37, 3, any_bits);
      StatisticsAccumulator accumulator(dtype);
      accumulator.add(bytes, 5);
      accumulator.add(bytes);
      expect_statistics(dtype, accumulator.result(), decode(dtype, bytes), 6);
    }
  }
}

TEST(Statistics, ZerosEqualElementsOfValueZero) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::kFloat8E8m0fnu) continue;  // has no zero
    const std::vector<std::byte> bytes = random_elements(dtype, 10, 4, false);
    for (const bool zeros_first : {false, true}) {
      StatisticsAccumulator accumulator(dtype);
      if (zeros_first) accumulator.add_zeros(90);
      accumulator.add(bytes);
      if (!zeros_first) accumulator.add_zeros(90);
      std::vector<long double> values = decode(dtype, bytes);
      values.insert(values.end(), 90, 0);
      expect_statistics(dtype, accumulator.result(), values);
    }
  }
}

TEST(Statistics, MergedAccumulatorsEqualOracle) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const bool any_bits : {false, true}) {
      const std::vector<std::byte> bytes = random_elements(dtype, 300, i, any_bits);
      const std::size_t item = dtype_info(dtype).item_bytes;
      StatisticsAccumulator merged(dtype);
      std::size_t begin = 0;
      for (const std::size_t end : {0, 1, 1, 100, 300}) {  // empty ones among them
        StatisticsAccumulator part(dtype);
        part.add(std::span(bytes).subspan(begin * item, (end - begin) * item));
        merged.merge(part);
        begin = end;
      }
      expect_statistics(dtype, merged.result(), decode(dtype, bytes));
    }
  }
}

TEST(Statistics, MergingKeepsTheWholeRange) {
  const std::vector<double> units{1e-200, 1, 1e200, 1e-310, -1e140};
  StatisticsAccumulator merged(DType::kFloat64);
  std::vector<double> all;
  for (const double unit : units) {
    const std::vector<double> chunk{3 * unit, -4 * unit};
    StatisticsAccumulator part(DType::kFloat64);
    part.add(std::as_bytes(std::span(chunk)));
    merged.merge(part);
    all.insert(all.end(), chunk.begin(), chunk.end());
  }
  expect_statistics(DType::kFloat64, merged.result(), decode(DType::kFloat64, std::as_bytes(std::span(all))));
}

TEST(Statistics, OnlyZerosAreZero) {
  StatisticsAccumulator accumulator(DType::kFloat64);
  accumulator.add_zeros(5);
  const Statistics found = accumulator.result();
  EXPECT_EQ(found.max, Extremum(0.0));
  EXPECT_EQ(found.mean, 0.0);
  EXPECT_EQ(found.norm, 0.0);
}

TEST(ComputeStatistics, WeightsBroadcastsAndFlipsSigns) {
  const float values[] = {1, 2, 4};
  const std::int64_t shape[] = {3, 1000};
  const std::int64_t strides[] = {1, 0};
  TensorView view{reinterpret_cast<const std::byte*>(values), DType::kFloat32, shape, strides};
  view.negate_real = true;
  const Statistics found = compute_statistics(view);
  EXPECT_EQ(found.max, Extremum(-1.0));
  EXPECT_EQ(found.min, Extremum(-4.0));
  EXPECT_DOUBLE_EQ(*found.mean, -7.0 / 3);
  EXPECT_DOUBLE_EQ(*found.norm, std::sqrt(21000.0));
}

TEST(ComputeStatistics, OfZeroDimIsTheValue) {
  const double value = -2.5;
  const Statistics found = compute_statistics({reinterpret_cast<const std::byte*>(&value), DType::kFloat64, {}, {}});
  EXPECT_EQ(found.max, Extremum(-2.5));
  EXPECT_EQ(found.mean, -2.5);
  EXPECT_EQ(found.norm, 2.5);
}

TEST(ComputeStatistics, CountsOverlappingElementsAsOftenAsTheyAppear) {
  const std::int32_t values[] = {1, 2, 3};
  const std::int64_t shape[] = {2, 2};
  const std::int64_t strides[] = {1, 1};  // [[1, 2], [2, 3]]
  const Statistics found =
      compute_statistics({reinterpret_cast<const std::byte*>(values), DType::kInt32, shape, strides});
  EXPECT_EQ(found.mean, 2.0);
  EXPECT_DOUBLE_EQ(*found.norm, std::sqrt(18.0));
}

TEST(ComputeStatistics, OfNoElementsAreNothing) {
  const std::int64_t shape[] = {4, 0};
  const std::int64_t strides[] = {1, 1};
  EXPECT_FALSE(compute_statistics({nullptr, DType::kFloat32, shape, strides}).mean.has_value());
}

}  // namespace
}  // namespace msprobe
