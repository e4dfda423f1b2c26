#include "msprobe/dtype.h"

#include <gtest/gtest.h>

#include <string>

namespace msprobe {
namespace {

TEST(DType, NamesComeBackAsTheirDtype) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(dtype_info(dtype).name), dtype) << dtype_info(dtype).name;
  }
}

TEST(DType, RowsStandBesideTheirEnumerator) {
  EXPECT_EQ(dtype_info(DType::kBool).name, "bool");
  EXPECT_EQ(dtype_info(DType::kUint16).name, "uint16");
  EXPECT_EQ(dtype_info(DType::kInt64).name, "int64");
  EXPECT_EQ(dtype_info(DType::kBfloat16).name, "bfloat16");
  EXPECT_EQ(dtype_info(DType::kComplex32).name, "complex32");
  EXPECT_EQ(dtype_info(DType::kFloat8E4m3fnuz).name, "float8_e4m3fnuz");
  EXPECT_EQ(dtype_info(DType::kFloat8E5m2fnuz).name, "float8_e5m2fnuz");
  EXPECT_EQ(dtype_info(DType::kFloat4E2m1fnX2).name, "float4_e2m1fn_x2");
}

TEST(DType, SizeIsTheNumberInTheName) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const DTypeInfo& info = dtype_info(static_cast<DType>(i));
    const std::size_t digits = info.name.find_first_of("123468");
    const int bits = info.name == "bool" ? 8 : std::stoi(std::string(info.name.substr(digits)));
    EXPECT_EQ(info.item_bytes * 8, bits * info.values_per_item) << info.name;
  }
}

TEST(DType, UnknownNameIsNothing) {
  EXPECT_EQ(dtype_from_name("float"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
  EXPECT_EQ(dtype_from_name("Float32"), std::nullopt);
}

}  // namespace
}  // namespace msprobe
