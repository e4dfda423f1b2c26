// The stated accuracy and range: 1e-12 on 1e8 elements, no overflow or underflow in between.

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>
#include <random>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "oracle.h"

namespace msprobe {
namespace {

using testing_oracle::as_number;
using testing_oracle::decode;
using testing_oracle::expect_statistics;
using testing_oracle::statistics_of;

constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kTiniest = std::numeric_limits<double>::denorm_min();

TEST(StatisticsAccuracy, HoldsOnHundredMillionElements) {
  // One block of rounding-prone values, added 1,000 times: its exact sums are those of the block times 1,000.
  std::vector<float> block(100'000);
  std::mt19937 generator(5);
  std::uniform_real_distribution<float> uniform(0.1F, 1000.1F);
  for (float& value : block) value = uniform(generator);
  StatisticsAccumulator accumulator(DType::kFloat32);
  for (int i = 0; i < 1000; ++i) accumulator.add(std::as_bytes(std::span(block)));
  expect_statistics(DType::kFloat32, accumulator.result(), decode(DType::kFloat32, std::as_bytes(std::span(block))),
                    1000);
}

TEST(StatisticsAccuracy, HoldsWhereLargeValuesCancel) {
  std::vector<double> values;
  values.reserve(30'000);
  for (int i = 0; i < 30'000; ++i) values.push_back(i % 2 == 0 ? 1e15 + i : -1e15);
  expect_statistics(DType::kFloat64, statistics_of(DType::kFloat64, values),
                    decode(DType::kFloat64, std::as_bytes(std::span(values))));
}

TEST(StatisticsAccuracy, NormDoesNotOverflowOrUnderflow) {
  for (const double unit : {1e200, 1e-200, 1e300, 1e-300, 1e154, 1e-154, 0x1p-1060}) {
    std::vector<double> values;
    values.reserve(5000);
    for (int i = 0; i < 5000; ++i) values.push_back(unit * (i % 13 - 5));
    expect_statistics(DType::kFloat64, statistics_of(DType::kFloat64, values),
                      decode(DType::kFloat64, std::as_bytes(std::span(values))));
  }
}

TEST(StatisticsAccuracy, ChunksOfDifferentSizesAddUp) {
  const std::vector<double> units{1e-200, 1, 1e-200, 1e200, 1e-310, 1e140, 3e-150};
  for (std::size_t first = 0; first < units.size(); ++first) {
    StatisticsAccumulator accumulator(DType::kFloat64);
    std::vector<double> all;
    for (std::size_t i = first; i < units.size(); ++i) {
      const std::vector<double> chunk{3 * units[i], -4 * units[i]};
      accumulator.add(std::as_bytes(std::span(chunk)));
      all.insert(all.end(), chunk.begin(), chunk.end());
    }
    expect_statistics(DType::kFloat64, accumulator.result(), decode(DType::kFloat64, std::as_bytes(std::span(all))));
  }
}

TEST(StatisticsAccuracy, NormOfManyChunksBelowTheHugeRangeIsRepresentable) {
  const std::vector<double> chunk{0x1p449};
  StatisticsAccumulator accumulator(DType::kFloat64);
  accumulator.add(std::as_bytes(std::span(chunk)), std::int64_t{1} << 61);
  accumulator.add(std::as_bytes(std::span(chunk)), std::int64_t{1} << 61);
  EXPECT_EQ(accumulator.result().norm, 0x1p480);
}

TEST(StatisticsAccuracy, MeanOfLargestValuesIsThatValue) {
  for (const std::size_t count : {1, 2, 3, 7, 1000}) {
    const std::vector<double> values(count, kMax);
    const Statistics found = statistics_of(DType::kFloat64, values);
    EXPECT_EQ(found.mean, kMax) << count;
    EXPECT_EQ(as_number(found.max), kMax);
  }
  EXPECT_EQ(statistics_of(DType::kFloat64, std::vector<double>{kMax, -kMax}).mean, 0.0);
}

TEST(StatisticsAccuracy, NormBeyondTheRangeIsInfinite) {
  const Statistics found = statistics_of(DType::kFloat64, std::vector<double>{kMax, kMax});
  EXPECT_EQ(found.norm, INFINITY);
  EXPECT_EQ(found.pos_inf_count, 0);
}

TEST(StatisticsAccuracy, SubnormalsCount) {
  const Statistics found = statistics_of(DType::kFloat64, std::vector<double>{3 * kTiniest, -4 * kTiniest});
  EXPECT_EQ(as_number(found.max), 3 * kTiniest);
  EXPECT_EQ(found.norm, 5 * kTiniest);
  const float tiniest = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(statistics_of(DType::kFloat32, std::vector<float>{3 * tiniest, -4 * tiniest}).norm, 5.0 * tiniest);
}

TEST(StatisticsAccuracy, MagnitudesKeepTheWholeRange) {
  EXPECT_DOUBLE_EQ(*statistics_of(DType::kComplex128, std::vector<double>{3e200, 4e200}).norm, 5e200);
  EXPECT_EQ(statistics_of(DType::kComplex128, std::vector<double>{3 * kTiniest, 4 * kTiniest}).norm, 5 * kTiniest);
  // A small element beside ordinary ones keeps its magnitude.
  const Statistics found = statistics_of(DType::kComplex128, std::vector<double>{1, 1, 3e-200, 4e-200});
  EXPECT_NEAR(static_cast<double>(as_number(found.min) / 5e-200L), 1, 4e-16);
}

TEST(StatisticsAccuracy, ResultsDoNotDependOnTheCallersRounding) {
  std::vector<double> values(1001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0 / static_cast<double>(i + 1);
  const Statistics nearest = statistics_of(DType::kFloat64, values);
  std::fesetround(FE_UPWARD);
  const Statistics upward = statistics_of(DType::kFloat64, values);
  const int rounding_after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(upward.mean, nearest.mean);
  EXPECT_EQ(upward.norm, nearest.norm);
  EXPECT_EQ(rounding_after, FE_UPWARD);
}

#if defined(__SSE2__)
TEST(StatisticsAccuracy, SubnormalsCountWhereTheCallerFlushesThem) {
  constexpr unsigned kFlushToZeroAndDenormalsAreZero = 0x8040;
  const double values[] = {3 * kTiniest, 4 * kTiniest};
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | kFlushToZeroAndDenormalsAreZero);
  StatisticsAccumulator accumulator(DType::kFloat64);
  accumulator.add(std::as_bytes(std::span(values)));
  const Statistics found = accumulator.result();
  const unsigned after = _mm_getcsr();
  _mm_setcsr(saved);
  EXPECT_EQ(as_number(found.max), 4 * kTiniest);
  EXPECT_EQ(as_number(found.min), 3 * kTiniest);
  EXPECT_EQ(found.norm, 5 * kTiniest);
  EXPECT_EQ(after, saved | kFlushToZeroAndDenormalsAreZero);
}
#endif

}  // namespace
}  // namespace msprobe
