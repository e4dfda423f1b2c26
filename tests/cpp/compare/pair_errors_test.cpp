#include "compare/pair_errors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <random>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "../statistics/oracle.h"
#include "pair_oracle.h"

namespace msprobe {
namespace {

using testing_oracle::errors_of;
using testing_oracle::expect_pair_errors;
using testing_oracle::random_elements;
using testing_oracle::side;
using testing_oracle::Side;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr float kTiniestFloat = std::numeric_limits<float>::denorm_min();
constexpr double kTiniest = std::numeric_limits<double>::denorm_min();
constexpr double kMax = std::numeric_limits<double>::max();

PairErrors errors_of_doubles(const std::vector<double>& golden, const std::vector<double>& target,
                             Tolerance tolerance = {}) {
  return errors_of(side(DType::kFloat64, golden), side(DType::kFloat64, target), tolerance);
}

PairErrors errors_of_floats(const std::vector<float>& golden, const std::vector<float>& target,
                            Tolerance tolerance = {}) {
  return errors_of(side(DType::kFloat32, golden), side(DType::kFloat32, target), tolerance);
}

std::vector<std::uint16_t> bfloat16(const std::vector<float>& values) {
  std::vector<std::uint16_t> codes;
  for (const float value : values)
    codes.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U));
  return codes;
}

TEST(PairErrors, OfNothingAreNone) {
  const PairErrors found = errors_of_floats({}, {});
  EXPECT_EQ(found.count, 0);
  EXPECT_TRUE(found.bit_equal);
  EXPECT_FALSE(found.cosine || found.max_abs || found.max_relative || found.first_beyond);
  EXPECT_EQ(found.share_within_thousandth, 1);
  EXPECT_EQ(found.max_ulp, 0U);
  EXPECT_EQ(found.euclidean_distance, 0);
}

TEST(PairErrors, OfFourFloatsByHand) {
  const PairErrors found = errors_of_floats({3, -4, 0, 1000}, {3, 4, 0.5F, 1001}, {.rtol = 0.01, .atol = 0.1});
  EXPECT_EQ(found.count, 4);
  EXPECT_FALSE(found.bit_equal);
  EXPECT_DOUBLE_EQ(found.euclidean_distance, std::sqrt(64 + 0.25 + 1));
  EXPECT_DOUBLE_EQ(found.golden_norm, std::sqrt(9 + 16 + 1e6));
  EXPECT_DOUBLE_EQ(found.target_norm, std::sqrt(9 + 16 + 0.25 + 1001.0 * 1001));
  EXPECT_DOUBLE_EQ(*found.cosine, (9 - 16 + 1001e3) / std::sqrt((25 + 1e6) * (25.25 + 1001.0 * 1001)));
  EXPECT_EQ(found.max_abs->index, 1);
  EXPECT_EQ(found.max_abs->error, 8);
  EXPECT_EQ(found.max_abs->golden, Number(-4.0));
  EXPECT_EQ(found.max_abs->target, Number(4.0));
  EXPECT_EQ(found.max_relative->index, 2);
  EXPECT_EQ(found.max_relative->error, kInfinity);
  EXPECT_EQ(found.share_within_thousandth, 0.25);  // 1/1000 is not below 1/1000
  EXPECT_EQ(found.share_within_five_thousandths, 0.5);
  EXPECT_EQ(found.max_ulp, 2U * std::bit_cast<std::uint32_t>(4.0F));
  EXPECT_EQ(found.share_within_one_ulp, 0.25);
  EXPECT_FALSE(found.equal_after_rounding.has_value());
  EXPECT_EQ(found.beyond_tolerance, 2);
  EXPECT_EQ(found.first_beyond, 1);
}

TEST(PairErrors, ZerosOnEitherSide) {
  EXPECT_EQ(errors_of_floats({0, -0.0F}, {-0.0F, 0}).cosine, 1);
  EXPECT_FALSE(errors_of_floats({0}, {-0.0F}).bit_equal);
  EXPECT_EQ(errors_of_floats({0}, {-0.0F}).max_ulp, 0U);
  EXPECT_EQ(errors_of_floats({0}, {-0.0F}).max_relative->error, 0);
  EXPECT_EQ(errors_of_floats({0, 0}, {1, 2}).cosine, 0);
  EXPECT_EQ(errors_of_doubles({1, 2}, {0, 0}).cosine, 0);
  EXPECT_EQ(errors_of_doubles({1, 2}, {0, 0}).max_relative->error, 1);
  EXPECT_EQ(errors_of_doubles({0}, {kTiniest}).max_relative->error, kInfinity);
}

TEST(PairErrors, LargestErrorIsTheFirstOfEquals) {
  std::vector<float> golden(100, 1);
  std::vector<float> target = golden;
  target[70] = target[33] = target[95] = 1.5F;
  const PairErrors found = errors_of_floats(golden, target);
  EXPECT_EQ(found.max_abs->index, 33);
  EXPECT_EQ(found.max_relative->index, 33);
  EXPECT_EQ(found.first_beyond, 33);
}

TEST(PairErrors, SmallErrorOfZeroIsLargerThanAnyQuotient) {
  const PairErrors found = errors_of_doubles({0.5, 0, 0}, {1e300, 1e-300, 1});
  EXPECT_EQ(found.max_relative->index, 1);
  EXPECT_EQ(found.max_relative->error, kInfinity);
}

TEST(PairErrors, NanOnBothSidesIsEqualAndOnOneSideIsBeyond) {
  const PairErrors both = errors_of_doubles({kNan, 1}, {-kNan, 1});
  EXPECT_FALSE(both.bit_equal);
  EXPECT_EQ(both.nan_mismatches, 0);
  EXPECT_EQ(both.beyond_tolerance, 0);
  EXPECT_EQ(both.share_within_one_ulp, 1);
  EXPECT_EQ(both.max_abs->index, 1);
  EXPECT_EQ(both.golden_norm, 1);

  const PairErrors one = errors_of_doubles({1, kNan, 1, kNan}, {1, kNan, kNan, 1}, {.rtol = 1e9, .atol = kMax});
  EXPECT_EQ(one.nan_mismatches, 2);
  EXPECT_EQ(one.inf_mismatches, 0);
  EXPECT_EQ(one.beyond_tolerance, 2);
  EXPECT_EQ(one.first_beyond, 2);
  EXPECT_EQ(one.share_within_thousandth, 0.5);
  EXPECT_EQ(one.share_within_five_thousandths, 0.5);
  EXPECT_EQ(one.share_within_one_ulp, 0.5);
  EXPECT_EQ(one.max_ulp, 0U);
  EXPECT_EQ(one.max_abs->error, 0);
  EXPECT_EQ(one.euclidean_distance, 0);
}

TEST(PairErrors, InfinitiesAreEqualByTheirSign) {
  const PairErrors found = errors_of_floats({INFINITY, INFINITY, -INFINITY, 1, INFINITY},
                                            {INFINITY, -INFINITY, -INFINITY, INFINITY, 2}, {.rtol = 1, .atol = 1e300});
  EXPECT_EQ(found.inf_mismatches, 3);
  EXPECT_EQ(found.beyond_tolerance, 3);
  EXPECT_EQ(found.first_beyond, 1);
  EXPECT_EQ(found.share_within_thousandth, 0.4);
  EXPECT_FALSE(found.cosine || found.max_abs || found.max_relative);
  EXPECT_EQ(found.golden_norm, 0);
}

TEST(PairErrors, FirstBeyondIsTheFirstOfBothKinds) {
  EXPECT_EQ(errors_of_floats({1, 1, NAN}, {1, 2, 1}).first_beyond, 1);
  EXPECT_EQ(errors_of_floats({1, NAN, 1}, {1, 2, 2}).first_beyond, 1);
}

TEST(PairErrors, IntegersBeyondFloat64AreExact) {
  constexpr std::int64_t kLarge = (std::int64_t{1} << 60) + 1;
  const std::vector<std::int64_t> golden{5, kLarge, kLarge, -kLarge};
  const std::vector<std::int64_t> target{5, kLarge + 1, kLarge - 2, -kLarge};
  const PairErrors found = errors_of(side(DType::kInt64, golden), side(DType::kInt64, target));
  EXPECT_EQ(found.max_abs->index, 2);
  EXPECT_EQ(found.max_abs->error, 2);
  EXPECT_EQ(found.max_abs->exact_difference, 2U);
  EXPECT_EQ(found.max_abs->golden, Number(kLarge));
  EXPECT_EQ(found.max_abs->target, Number(kLarge - 2));
  EXPECT_DOUBLE_EQ(found.euclidean_distance, std::sqrt(5.0));
  EXPECT_EQ(found.beyond_tolerance, 2);
  EXPECT_FALSE(found.max_ulp || found.share_within_one_ulp || found.equal_after_rounding);
}

TEST(PairErrors, LargeDifferencesOfIntegersAreToldApart) {
  constexpr auto kMaxUint = std::numeric_limits<std::uint64_t>::max();
  const std::vector<std::uint64_t> golden{0, 0, 0};
  const std::vector<std::uint64_t> target{kMaxUint - 1, kMaxUint, kMaxUint - 2};
  const PairErrors found = errors_of(side(DType::kUint64, golden), side(DType::kUint64, target));
  EXPECT_EQ(found.max_abs->index, 1);
  EXPECT_EQ(found.max_abs->error, 0x1p64);
  EXPECT_EQ(found.max_abs->exact_difference, kMaxUint);

  // One more than 64 bits hold.
  const std::vector<std::int64_t> lowest{std::numeric_limits<std::int64_t>::min()};
  const std::vector<std::uint64_t> highest{kMaxUint};
  const PairErrors apart = errors_of(side(DType::kInt64, lowest), side(DType::kUint64, highest));
  EXPECT_EQ(apart.max_abs->error, 0x1.8p64);
  EXPECT_FALSE(apart.max_abs->exact_difference.has_value());
}

TEST(PairErrors, IntegerAgainstFloatIsExact) {
  constexpr std::int64_t kOdd = (std::int64_t{1} << 53) + 1;
  const std::vector<std::int64_t> golden{kOdd, kOdd - 1, std::numeric_limits<std::int64_t>::max()};
  const std::vector<double> target{0x1p53, 0x1p53, 0x1p63};
  const PairErrors found = errors_of(side(DType::kInt64, golden), side(DType::kFloat64, target));
  EXPECT_EQ(found.beyond_tolerance, 2);
  EXPECT_EQ(found.max_abs->index, 0);
  EXPECT_EQ(found.max_abs->error, 1);
  EXPECT_EQ(found.max_abs->golden, Number(kOdd));
  EXPECT_EQ(found.max_abs->target, Number(0x1p53));
}

TEST(PairErrors, IntegersOfOtherWidthsAndBool) {
  const std::vector<std::int32_t> golden{std::numeric_limits<std::int32_t>::min(), 1};
  const std::vector<std::uint32_t> target{std::numeric_limits<std::uint32_t>::max(), 1};
  const PairErrors found = errors_of(side(DType::kInt32, golden), side(DType::kUint32, target));
  EXPECT_EQ(found.max_abs->exact_difference, 0x17FFFFFFFU);
  EXPECT_EQ(found.share_within_thousandth, 0.5);

  const std::vector<std::uint8_t> bools{0, 1, 2, 255};
  const PairErrors truths =
      errors_of(side(DType::kBool, bools), side(DType::kBool, std::vector<std::uint8_t>{0, 255, 1, 0}));
  EXPECT_FALSE(truths.bit_equal);
  EXPECT_EQ(truths.beyond_tolerance, 1);
  EXPECT_EQ(truths.max_abs->golden, Number(true));
  EXPECT_EQ(truths.max_abs->target, Number(false));
}

TEST(PairErrors, ComplexErrorsAreMagnitudes) {
  const std::vector<float> golden{3, 4, 1, 0};
  const std::vector<float> target{3, 4, 1 + 3, 4};
  const PairErrors found = errors_of(side(DType::kComplex64, golden), side(DType::kComplex64, target));
  EXPECT_EQ(found.count, 2);
  EXPECT_EQ(found.max_abs->error, 5);
  EXPECT_EQ(found.max_abs->target, Number(std::complex(4.0, 4.0)));
  EXPECT_EQ(found.euclidean_distance, 5);
  EXPECT_DOUBLE_EQ(*found.cosine, (25 + 4) / std::sqrt(26.0 * (25 + 32)));
  EXPECT_EQ(found.max_ulp, std::bit_cast<std::uint32_t>(4.0F));  // of the imaginary part

  const std::vector<float> real{3, 1};
  EXPECT_EQ(errors_of(side(DType::kComplex64, golden), side(DType::kFloat32, real)).max_abs->error, 4);
}

TEST(PairErrors, ComplexInfinitiesAreComparedByPart) {
  const auto compare = [](const std::vector<double>& golden, const std::vector<double>& target) {
    return errors_of(side(DType::kComplex128, golden), side(DType::kComplex128, target));
  };
  EXPECT_EQ(compare({kInfinity, 1}, {kInfinity, 1}).beyond_tolerance, 0);
  EXPECT_EQ(compare({kInfinity, 1}, {kInfinity, -kInfinity}).inf_mismatches, 1);
  EXPECT_EQ(compare({kInfinity, 1}, {kInfinity, 2}).inf_mismatches, 0);
  EXPECT_EQ(compare({kInfinity, 1}, {kInfinity, 2}).beyond_tolerance, 1);
  EXPECT_EQ(compare({kNan, 1}, {2, kNan}).beyond_tolerance, 0);
  EXPECT_EQ(compare({kNan, 1}, {2, 1}).nan_mismatches, 1);
}

TEST(PairErrors, SubnormalsCount) {
  const PairErrors found = errors_of_floats({3 * kTiniestFloat}, {-2 * kTiniestFloat});
  EXPECT_EQ(found.max_abs->error, 5.0 * kTiniestFloat);
  EXPECT_EQ(found.max_ulp, 5U);
  EXPECT_EQ(found.golden_norm, 3.0 * kTiniestFloat);
  EXPECT_EQ(found.cosine, -1);
  EXPECT_EQ(errors_of_doubles({3 * kTiniest}, {-2 * kTiniest}).euclidean_distance, 5 * kTiniest);
}

TEST(PairErrors, UlpOfNeighboursIsOneInEveryFloat) {
  EXPECT_EQ(errors_of_floats({1}, {std::nextafter(1.0F, 2.0F)}).max_ulp, 1U);
  EXPECT_EQ(errors_of_doubles({1}, {std::nextafter(1.0, 0.0)}).max_ulp, 1U);
  EXPECT_EQ(errors_of_doubles({-kTiniest}, {kTiniest}).max_ulp, 2U);
  EXPECT_EQ(errors_of_doubles({-kMax}, {kMax}).max_ulp, 2 * std::bit_cast<std::uint64_t>(kMax));
}

TEST(PairErrors, UlpOfMixedFloatsIsThatOfTheNarrowerOne) {
  const std::vector<std::uint16_t> golden = bfloat16({1, 1, 1, 2});
  // Half a step up is a tie, which goes to the even 1.0; the next float above it does not.
  const std::vector<float> target{1, 1 + 0x1p-8F, std::nextafter(1 + 0x1p-8F, 2.0F), 2};
  const PairErrors found = errors_of(side(DType::kBfloat16, golden), side(DType::kFloat32, target));
  EXPECT_EQ(found.max_ulp, 1U);
  EXPECT_EQ(found.share_within_one_ulp, 1);
  EXPECT_EQ(found.equal_after_rounding, false);
  EXPECT_EQ(errors_of(side(DType::kBfloat16, bfloat16({1})), side(DType::kFloat32, std::vector{1 + 0x1p-8F}))
                .equal_after_rounding,
            true);
  // float64 is rounded once: through float32 this would be a tie and come back to 1.
  EXPECT_EQ(errors_of(side(DType::kBfloat16, bfloat16({1})), side(DType::kFloat64, std::vector{1 + 0x1p-8 + 0x1p-40}))
                .max_ulp,
            1U);
}

TEST(PairErrors, Float16AgainstBfloat16) {
  const std::vector<std::uint16_t> golden{0x3C01, 0x7BFF};  // 1 + 2^-10, 65504
  const PairErrors found = errors_of(side(DType::kFloat16, golden), side(DType::kBfloat16, bfloat16({1, 65536})));
  EXPECT_EQ(found.equal_after_rounding, true);
  EXPECT_EQ(found.max_abs->error, 32);
  EXPECT_EQ(found.max_relative->index, 0);
}

TEST(PairErrors, WhatRoundsToInfinityIsOneStepPastTheLargest) {
  const PairErrors finite = errors_of(side(DType::kFloat16, std::vector<std::uint16_t>{0x7BFF}),
                                      side(DType::kFloat32, std::vector<float>{1e30F}));
  EXPECT_EQ(finite.max_ulp, 1U);
  const PairErrors infinite = errors_of(side(DType::kFloat16, std::vector<std::uint16_t>{0x7C00}),
                                        side(DType::kFloat32, std::vector<float>{1e30F}));
  EXPECT_EQ(infinite.inf_mismatches, 1);
  EXPECT_EQ(infinite.share_within_one_ulp, 0);
  EXPECT_EQ(infinite.equal_after_rounding, true);
}

TEST(PairErrors, Float4HasTwoValuesAByte) {
  const std::vector<std::uint8_t> golden{0x21};  // 0.5, 1
  const std::vector<std::uint8_t> target{0xA1};  // 0.5, -1
  const PairErrors found = errors_of(side(DType::kFloat4E2m1fnX2, golden), side(DType::kFloat4E2m1fnX2, target));
  EXPECT_EQ(found.count, 2);
  EXPECT_EQ(found.max_abs->index, 1);
  EXPECT_EQ(found.max_abs->error, 2);
  EXPECT_EQ(found.max_ulp, 4U);
  const PairErrors widened =
      errors_of(side(DType::kFloat4E2m1fnX2, golden), side(DType::kFloat32, std::vector<float>{0.5F, 1.25F}));
  EXPECT_EQ(widened.equal_after_rounding, true);  // a tie of 1 and 1.5
  EXPECT_EQ(widened.max_abs->error, 0.25);
}

TEST(PairErrors, SumsHoldOverTheWholeRangeOfFloat64) {
  for (const double a : {1e200, 1e-200, 1.0, 1e300, kTiniest}) {
    for (const double b : {1e200, 1e-200, 1.0, 1e300, kTiniest}) {
      std::vector<double> golden;
      std::vector<double> target;
      for (int i = 0; i < 3000; ++i) {
        golden.push_back((i < 2100 ? a : b) * (i % 7 - 3));
        target.push_back((i < 2200 ? b : a) * (i % 5 - 1));
      }
      const Side g = side(DType::kFloat64, golden);
      const Side t = side(DType::kFloat64, target);
      expect_pair_errors(g, t, {}, errors_of(g, t));
      expect_pair_errors(g, g, {}, errors_of(g, g));
      expect_pair_errors({DType::kComplex128, g.bytes}, {DType::kComplex128, t.bytes}, {},
                         errors_of({DType::kComplex128, g.bytes}, {DType::kComplex128, t.bytes}));
    }
  }
  EXPECT_EQ(errors_of_doubles({kMax}, {-kMax}).max_abs->error, kInfinity);
  EXPECT_EQ(errors_of_doubles({kMax}, {-kMax}).euclidean_distance, kInfinity);
  EXPECT_EQ(errors_of_doubles({kMax}, {-kMax}).golden_norm, kMax);
  EXPECT_EQ(errors_of_doubles({1e300, 1e-300}, {1e300, 2e-300}).euclidean_distance, 1e-300);
}

template <class Check>
void for_each_dtype(Check check) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) check(static_cast<DType>(i));
}

// What must be the same whatever the cuts.
void expect_same(const PairErrors& a, const PairErrors& b) {
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.bit_equal, b.bit_equal);
  EXPECT_EQ(a.nan_mismatches, b.nan_mismatches);
  EXPECT_EQ(a.inf_mismatches, b.inf_mismatches);
  EXPECT_EQ(a.share_within_thousandth, b.share_within_thousandth);
  EXPECT_EQ(a.share_within_five_thousandths, b.share_within_five_thousandths);
  EXPECT_EQ(a.max_ulp, b.max_ulp);
  EXPECT_EQ(a.share_within_one_ulp, b.share_within_one_ulp);
  EXPECT_EQ(a.equal_after_rounding, b.equal_after_rounding);
  EXPECT_EQ(a.beyond_tolerance, b.beyond_tolerance);
  EXPECT_EQ(a.first_beyond, b.first_beyond);
  const auto expect_same_worst = [](const std::optional<WorstElement>& x, const std::optional<WorstElement>& y) {
    ASSERT_EQ(x.has_value(), y.has_value());
    if (!x) return;
    EXPECT_EQ(x->index, y->index);
    EXPECT_EQ(x->error, y->error);
    EXPECT_EQ(x->exact_difference, y->exact_difference);
    EXPECT_EQ(x->golden, y->golden);
    EXPECT_EQ(x->target, y->target);
  };
  expect_same_worst(a.max_abs, b.max_abs);
  expect_same_worst(a.max_relative, b.max_relative);
  const auto close = [](double x, double y) { return x == y || std::abs(x - y) <= 1e-12 * std::abs(x); };
  EXPECT_TRUE(close(a.golden_norm, b.golden_norm) && close(a.target_norm, b.target_norm) &&
              close(a.euclidean_distance, b.euclidean_distance));
  EXPECT_NEAR(a.cosine.value_or(2), b.cosine.value_or(2), 1e-12);
}

TEST(PairErrors, CutsAndMergesChangeNothing) {
  constexpr Tolerance kTolerance{.rtol = 0.1, .atol = 1e-3};
  for (const auto& [golden, target] : {std::pair{DType::kFloat32, DType::kFloat32},
                                       {DType::kFloat64, DType::kFloat64},
                                       {DType::kBfloat16, DType::kFloat32},
                                       {DType::kInt64, DType::kUint64},
                                       {DType::kInt64, DType::kFloat64},
                                       {DType::kComplex64, DType::kComplex64},
                                       {DType::kFloat8E5m2, DType::kInt16}}) {
    constexpr std::size_t kCount = 5000;
    for (const bool any_bits : {false, true}) {
      const std::vector<std::byte> g = random_elements(golden, kCount, 1, any_bits);
      const std::vector<std::byte> t = random_elements(target, kCount, 2, any_bits);
      const PairErrors whole = errors_of({golden, g}, {target, t}, kTolerance);
      std::mt19937 random(3);
      for (int round = 0; round < 5; ++round) {
        PairAccumulator all(golden, target, kTolerance);
        PairAccumulator segment(golden, target, kTolerance);
        for (std::size_t first = 0; first < kCount;) {
          const std::size_t count = std::min<std::size_t>(random() % 1500, kCount - first);
          const auto part = [&](DType dtype, const std::vector<std::byte>& bytes) {
            const std::size_t item = dtype_info(dtype).item_bytes;
            return std::span(bytes).subspan(first * item, count * item);
          };
          segment.add(part(golden, g), part(target, t));
          first += count;
          if (random() % 2 == 0 && first < kCount) continue;
          all.merge(segment);
          segment = PairAccumulator(golden, target, kTolerance, static_cast<std::int64_t>(first));
        }
        expect_same(all.result(), whole);
      }
    }
  }
}

TEST(PairErrors, OfATensorWithItselfAreNone) {
  for_each_dtype([](DType dtype) {
    for (const bool any_bits : {false, true}) {
      const std::vector<std::byte> bytes = random_elements(dtype, 20'000, 4, any_bits);
      const Side same{dtype, bytes};
      const PairErrors found = errors_of(same, same);
      expect_pair_errors(same, same, {}, found);
      EXPECT_TRUE(found.bit_equal);
      EXPECT_EQ(found.cosine, 1) << dtype_info(dtype).name;
      EXPECT_EQ(found.share_within_thousandth, 1);
      EXPECT_EQ(found.beyond_tolerance, 0);
      EXPECT_EQ(found.max_abs->error, 0);
      PairAccumulator equal(dtype, dtype, {});
      equal.add_equal(bytes);
      expect_same(equal.result(), found);
    }
  });
}

TEST(PairErrors, EqualPartsCountWhereTheyStand) {
  const std::vector<float> some{1, NAN, 3};
  const std::vector<float> other{1, 2, 4};
  PairAccumulator parts(DType::kFloat32, DType::kFloat32, {});
  parts.add_equal(side(DType::kFloat32, some).bytes);
  parts.add(side(DType::kFloat32, some).bytes, side(DType::kFloat32, other).bytes);
  parts.add_equal(side(DType::kFloat32, other).bytes);
  const PairErrors found = parts.result();
  expect_same(found, errors_of_floats({1, NAN, 3, 1, NAN, 3, 1, 2, 4}, {1, NAN, 3, 1, 2, 4, 1, 2, 4}));
  EXPECT_EQ(found.first_beyond, 4);
  EXPECT_EQ(found.max_abs->index, 5);
}

TEST(PairErrors, SymmetricOnesAreSymmetric) {
  for_each_dtype([](DType a) {
    for_each_dtype([a](DType b) {
      const std::size_t values = 64;
      const auto x = random_elements(a, values / dtype_info(a).values_per_item, 5, true);
      const auto y = random_elements(b, values / dtype_info(b).values_per_item, 6, true);
      const PairErrors there = errors_of({a, x}, {b, y});
      const PairErrors back = errors_of({b, y}, {a, x});
      EXPECT_EQ(there.nan_mismatches, back.nan_mismatches);
      EXPECT_EQ(there.inf_mismatches, back.inf_mismatches);
      EXPECT_EQ(there.max_ulp, back.max_ulp);
      EXPECT_EQ(there.share_within_one_ulp, back.share_within_one_ulp);
      EXPECT_EQ(there.equal_after_rounding, back.equal_after_rounding);
      EXPECT_EQ(there.euclidean_distance, back.euclidean_distance);
      EXPECT_EQ(there.golden_norm, back.target_norm);
      EXPECT_EQ(there.cosine, back.cosine);
      ASSERT_EQ(there.max_abs.has_value(), back.max_abs.has_value());
      if (!there.max_abs) return;
      EXPECT_EQ(there.max_abs->index, back.max_abs->index);
      EXPECT_EQ(there.max_abs->error, back.max_abs->error);
    });
  });
}

TEST(PairErrors, DoNotDependOnTheCallersFloatingPointMode) {
  std::vector<double> golden(1000);
  std::vector<double> target(1000);
  for (std::size_t i = 0; i < golden.size(); ++i) {
    golden[i] = 1.0 / static_cast<double>(i + 1);
    target[i] = golden[i] * 1.001 + kTiniest;
  }
  const PairErrors expected = errors_of_doubles(golden, target);
  std::fesetround(FE_UPWARD);
  const PairErrors upward = errors_of_doubles(golden, target);
  const int rounding_after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(rounding_after, FE_UPWARD);
  expect_same(upward, expected);
  EXPECT_EQ(upward.euclidean_distance, expected.euclidean_distance);
#if defined(__SSE2__)
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040);  // flush to zero, denormals are zero
  const PairErrors flushed = errors_of_floats({3 * kTiniestFloat, 0}, {kTiniestFloat, 0});
  _mm_setcsr(saved);
  EXPECT_EQ(flushed.max_abs->error, 2.0 * kTiniestFloat);
  EXPECT_EQ(flushed.max_ulp, 2U);
#endif
}

TEST(PairErrors, MeasuresUlpInTheDtypeThatWasSaved) {
  // Two neighbours in bfloat16, as a .npy file holds them.
  const std::vector<float> golden = {1.0F};
  const std::vector<float> target = {1.0078125F};
  const auto errors = [&](std::optional<SavedDtypes> saved) {
    PairAccumulator accumulator(DType::kFloat32, DType::kFloat32, {}, 0, saved);
    accumulator.add(std::as_bytes(std::span(golden)), std::as_bytes(std::span(target)));
    return accumulator.result();
  };
  EXPECT_EQ(errors({}).max_ulp, 65536);
  EXPECT_EQ(errors(SavedDtypes{DType::kBfloat16, DType::kBfloat16}).max_ulp, 1);
  EXPECT_EQ(errors(SavedDtypes{DType::kFloat32, DType::kBfloat16}).max_ulp, 1);
}

}  // namespace
}  // namespace msprobe
