#include "session/value_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <string>

#include "checksum/crc32.h"

namespace msprobe {
namespace {

constexpr std::int64_t kRows = 1100;
constexpr std::int64_t kColumns = 1009;

struct Case {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  bool negated = false;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

// Enough for each case: three segments and a bit, which are shared.
const std::vector<std::byte>& storage() {
  static const std::vector<std::byte> bytes = [] {
    std::vector<std::byte> made(std::size_t{24} * kRows * kColumns);
    std::uint32_t state = 7;
    for (std::byte& b : made) {
      state = state * 1664525 + 1013904223;
      b = static_cast<std::byte>(0x20 + (state >> 26));  // exponents in the middle: finite in every dtype
    }
    return made;
  }();
  return bytes;
}

Tensor tensor_of(const Case& c) {
  Tensor tensor;
  tensor.data = storage().data();
  tensor.dtype = c.dtype;
  tensor.shape = c.shape;
  tensor.strides = c.strides;
  tensor.negate_real = c.negated;
  return tensor;
}

// To the bit.
void expect_same(const PassResult& found, const PassResult& expected) {
  EXPECT_EQ(found.crc, expected.crc);
  EXPECT_EQ(found.statistics.max, expected.statistics.max);
  EXPECT_EQ(found.statistics.min, expected.statistics.min);
  EXPECT_EQ(found.statistics.mean, expected.statistics.mean);
  EXPECT_EQ(found.statistics.norm, expected.statistics.norm);
}

class ValuePass : public testing::TestWithParam<Case> {};

TEST_P(ValuePass, IsTheSameForAnyNumberOfThreads) {
  const std::vector parts{tensor_of(GetParam())};
  for (const ReadOrder order : {ReadOrder::kAny, ReadOrder::kStored, ReadOrder::kLogical}) {
    const PassPlan plan{.order = order, .with_crc = true, .crc_of_npy = order == ReadOrder::kLogical};
    std::vector<std::byte> in_order;
    const PassResult alone = read_values(
        parts, plan, [&](auto block) { in_order.insert(in_order.end(), block.begin(), block.end()); }, nullptr);
    for (const unsigned threads : {1U, 2U, 5U}) {
      ThreadTeam team(threads);
      expect_same(read_values(parts, plan, {}, &team), alone);
      std::vector<std::byte> found;
      const BlockSink sink = [&](auto block) { found.insert(found.end(), block.begin(), block.end()); };
      expect_same(read_values(parts, plan, sink, &team), alone);
      EXPECT_EQ(found, in_order);
    }
  }
}

TEST_P(ValuePass, EqualsThatWithoutSegments) {
  const Tensor part = tensor_of(GetParam());
  const PassResult found = read_values({part}, {.order = ReadOrder::kLogical, .with_crc = true}, {}, nullptr);
  EXPECT_EQ(found.crc, compute_crc32(part.view()));
  const Statistics whole = compute_statistics(part.view());
  EXPECT_EQ(found.statistics.max, whole.max);
  EXPECT_EQ(found.statistics.min, whole.min);
  EXPECT_NEAR(*found.statistics.mean, *whole.mean, 1e-13 * *whole.norm);
  EXPECT_NEAR(*found.statistics.norm, *whole.norm, 1e-13 * *whole.norm);
}

TEST_P(ValuePass, ACopyOfSeveralThreadsEqualsThatOfOne) {
  const Tensor part = tensor_of(GetParam());
  const auto bytes = static_cast<std::size_t>(BlockReader(part.view(), ReadOrder::kStored).total_bytes());
  std::vector<std::byte> expected(bytes);
  copy_stored(part.view(), expected);
  ThreadTeam team(3);
  std::vector<std::byte> found(bytes);
  copy_stored_shared(part.view(), found, &team);
  EXPECT_EQ(found, expected);
}

INSTANTIATE_TEST_SUITE_P(
    Views, ValuePass,
    testing::Values(Case{"Small", DType::kFloat32, {7, 3}, {3, 1}},                                              //
                    Case{"Contiguous", DType::kFloat32, {3, kRows, kColumns}, {kRows * kColumns, kColumns, 1}},  //
                    Case{"Transposed", DType::kFloat64, {kColumns, 3 * kRows / 2}, {1, kColumns}},               //
                    Case{"Sliced", DType::kFloat32, {3 * kRows, kColumns - 7}, {kColumns, 1}},                   //
                    Case{"EverySecond", DType::kFloat32, {3 * kRows * kColumns}, {2}},                           //
                    Case{"Broadcast", DType::kFloat32, {3, kRows, kColumns}, {0, kColumns, 1}},                  //
                    Case{"Negated", DType::kFloat32, {3 * kRows, kColumns}, {kColumns, 1}, true},                //
                    Case{"Bfloat16", DType::kBfloat16, {6 * kRows, kColumns}, {kColumns, 1}},                    //
                    Case{"Float8", DType::kFloat8E4m3fn, {12 * kRows, kColumns}, {kColumns, 1}},                 //
                    Case{"Integers", DType::kInt16, {6 * kRows, kColumns}, {kColumns, 1}},                       //
                    Case{"Complex", DType::kComplex64, {3 * kRows / 2, kColumns}, {kColumns, 1}}),               //
    [](const auto& info) { return info.param.name; });

TEST(ValuePassFloats, ASpecialValueInAnySegmentIsSeen) {
  constexpr std::size_t kCount = 3 * kSegmentBytes / sizeof(double) + 5;
  ThreadTeam team(2);
  for (const double special : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const std::size_t place : {std::size_t{0}, kCount / 2, kCount - 1}) {
      std::vector<double> values(kCount, 0.5);
      values[place] = special;
      Tensor part;
      part.data = reinterpret_cast<const std::byte*>(values.data());
      part.dtype = DType::kFloat64;
      part.shape = {static_cast<std::int64_t>(kCount)};
      part.strides = {1};
      const Statistics found = read_values({part}, {}, {}, &team).statistics;
      EXPECT_EQ(found.nan_count + found.pos_inf_count, 1);
      EXPECT_EQ(std::isnan(*found.mean), std::isnan(special));
    }
  }
}

TEST(ValuePassFloats, WhatTheSinkThrowsReachesTheCaller) {
  ThreadTeam team(2);
  Tensor part = tensor_of({"", DType::kFloat32, {3 * kRows, kColumns}, {kColumns, 1}});
  const BlockSink sink = [](auto) { throw std::runtime_error("full"); };
  EXPECT_THROW(static_cast<void>(read_values({part}, {}, sink, &team)), std::runtime_error);
  EXPECT_THROW(static_cast<void>(read_values({part}, {}, sink, nullptr)), std::runtime_error);
}

}  // namespace
}  // namespace msprobe
