#include "tensor/small_float.h"

#include <gtest/gtest.h>

#include <cmath>

namespace msprobe {
namespace {

// Values published in the specifications that small_float.h names.
TEST(SmallFloat, HoldsThePublishedExtremes) {
  const auto& e4m3fn = float8_values(DType::kFloat8E4m3fn);
  EXPECT_EQ(e4m3fn[0x7E], 448.0F);
  EXPECT_EQ(e4m3fn[0x08], 0x1p-6F);
  EXPECT_EQ(e4m3fn[0x01], 0x1p-9F);
  EXPECT_TRUE(std::isnan(e4m3fn[0x7F]) && std::isnan(e4m3fn[0xFF]));

  const auto& e5m2 = float8_values(DType::kFloat8E5m2);
  EXPECT_EQ(e5m2[0x7B], 57344.0F);
  EXPECT_EQ(e5m2[0x04], 0x1p-14F);
  EXPECT_EQ(e5m2[0x01], 0x1p-16F);
  EXPECT_EQ(e5m2[0x7C], INFINITY);
  EXPECT_EQ(e5m2[0xFC], -INFINITY);
  EXPECT_TRUE(std::isnan(e5m2[0x7D]) && std::isnan(e5m2[0xFF]));

  const auto& e4m3fnuz = float8_values(DType::kFloat8E4m3fnuz);
  EXPECT_EQ(e4m3fnuz[0x7F], 240.0F);
  EXPECT_EQ(e4m3fnuz[0x01], 0x1p-10F);
  EXPECT_TRUE(std::isnan(e4m3fnuz[0x80]));

  const auto& e5m2fnuz = float8_values(DType::kFloat8E5m2fnuz);
  EXPECT_EQ(e5m2fnuz[0x7F], 57344.0F);
  EXPECT_EQ(e5m2fnuz[0x01], 0x1p-17F);
  EXPECT_TRUE(std::isnan(e5m2fnuz[0x80]));

  const auto& e8m0fnu = float8_values(DType::kFloat8E8m0fnu);
  EXPECT_EQ(e8m0fnu[0], 0x1p-127F);
  EXPECT_EQ(e8m0fnu[127], 1.0F);
  EXPECT_EQ(e8m0fnu[254], 0x1p127F);
  EXPECT_TRUE(std::isnan(e8m0fnu[255]));
}

TEST(SmallFloat, HoldsAllCodesOfFloat4) {
  const std::array<float, 16> expected{0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};
  EXPECT_EQ(float4_values(), expected);
  EXPECT_TRUE(std::signbit(float4_values()[8]));
}

TEST(SmallFloat, CodesAscendWithTheirValues) {
  for (const DType dtype : {DType::kFloat8E4m3fn, DType::kFloat8E5m2, DType::kFloat8E4m3fnuz, DType::kFloat8E5m2fnuz}) {
    const auto& values = float8_values(dtype);
    for (std::size_t code = 1; code < 128 && !std::isnan(values[code]); ++code) {
      EXPECT_GT(values[code], values[code - 1]) << dtype_info(dtype).name << " " << code;
      EXPECT_EQ(values[code + 128], -values[code]) << dtype_info(dtype).name << " " << code;
    }
  }
}

}  // namespace
}  // namespace msprobe
