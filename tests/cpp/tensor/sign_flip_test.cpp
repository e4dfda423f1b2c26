#include "tensor/sign_flip.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

namespace msprobe {
namespace {

template <class T>
std::vector<T> flipped(DType dtype, std::vector<T> values, bool real = true, bool imag = true) {
  TensorView view;
  view.dtype = dtype;
  view.negate_real = real;
  view.negate_imag = imag;
  flip_signs(view, std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(SignFlip, NegatesFloats) {
  EXPECT_EQ(flipped<double>(DType::kFloat64, {1.5, -2}), (std::vector<double>{-1.5, 2}));
  EXPECT_EQ(flipped<float>(DType::kFloat32, {1.5F, -2}), (std::vector<float>{-1.5F, 2}));
  EXPECT_EQ(flipped<std::uint16_t>(DType::kFloat16, {0x3C00, 0xBC00}), (std::vector<std::uint16_t>{0xBC00, 0x3C00}));
  EXPECT_EQ(flipped<std::uint8_t>(DType::kFloat8E4m3fn, {0x00, 0x81}), (std::vector<std::uint8_t>{0x80, 0x01}));
  EXPECT_EQ(flipped<std::uint8_t>(DType::kFloat4E2m1fnX2, {0x1A}), (std::vector<std::uint8_t>{0x92}));
}

TEST(SignFlip, KeepsZeroAndNanWhereThereIsNoNegativeZero) {
  for (const DType dtype : {DType::kFloat8E4m3fnuz, DType::kFloat8E5m2fnuz}) {
    EXPECT_EQ(flipped<std::uint8_t>(dtype, {0x00, 0x80, 0x01}), (std::vector<std::uint8_t>{0x00, 0x80, 0x81}));
  }
}

TEST(SignFlip, WrapsIntegers) {
  constexpr auto kLowest = std::numeric_limits<std::int32_t>::min();
  EXPECT_EQ(flipped<std::int32_t>(DType::kInt32, {5, kLowest}), (std::vector<std::int32_t>{-5, kLowest}));
  EXPECT_EQ(flipped<std::int8_t>(DType::kInt8, {-3}), (std::vector<std::int8_t>{3}));
  EXPECT_EQ(flipped<std::int64_t>(DType::kInt64, {7}), (std::vector<std::int64_t>{-7}));
}

TEST(SignFlip, NegatesEachPartOfComplexByItsFlag) {
  using Complex = std::complex<float>;
  const std::vector<Complex> values{{1, 2}, {-3, 4}};
  EXPECT_EQ(flipped(DType::kComplex64, values, false, true), (std::vector<Complex>{{1, -2}, {-3, -4}}));
  EXPECT_EQ(flipped(DType::kComplex64, values, true, false), (std::vector<Complex>{{-1, 2}, {3, 4}}));
  EXPECT_EQ(flipped(DType::kComplex64, values, true, true), (std::vector<Complex>{{-1, -2}, {3, -4}}));
}

TEST(SignFlip, LeavesDtypesWithoutSignAlone) {
  EXPECT_EQ(flipped<std::uint8_t>(DType::kBool, {1, 0}), (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ(flipped<std::uint8_t>(DType::kFloat8E8m0fnu, {1}), (std::vector<std::uint8_t>{1}));
}

}  // namespace
}  // namespace msprobe
