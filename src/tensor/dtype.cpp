#include "msprobe/dtype.h"

#include <algorithm>
#include <array>

namespace msprobe {
namespace {

using enum DTypeKind;

// In the order of the enumerators of DType.
constexpr std::array<DTypeInfo, kDTypeCount> kTable{{
    {"bool", 1, kBool},
    {"uint8", 1, kUnsigned},
    {"int8", 1, kSigned},
    {"uint16", 2, kUnsigned},
    {"int16", 2, kSigned},
    {"uint32", 4, kUnsigned},
    {"int32", 4, kSigned},
    {"uint64", 8, kUnsigned},
    {"int64", 8, kSigned},
    {"float16", 2, kFloat},
    {"bfloat16", 2, kFloat},
    {"float32", 4, kFloat},
    {"float64", 8, kFloat},
    {"complex32", 4, kComplex},
    {"complex64", 8, kComplex},
    {"complex128", 16, kComplex},
    {"float8_e4m3fn", 1, kFloat},
    {"float8_e5m2", 1, kFloat},
    {"float8_e4m3fnuz", 1, kFloat},
    {"float8_e5m2fnuz", 1, kFloat},
    {"float8_e8m0fnu", 1, kFloat},
    {"float4_e2m1fn_x2", 1, kFloat, 2},
}};
static_assert(static_cast<std::size_t>(DType::kFloat4E2m1fnX2) + 1 == kTable.size());
static_assert(kTable[static_cast<std::size_t>(DType::kComplex128)].item_bytes == 16);
static_assert(kTable[static_cast<std::size_t>(DType::kFloat8E8m0fnu)].name == "float8_e8m0fnu");

}  // namespace

const DTypeInfo& dtype_info(DType dtype) noexcept { return kTable[static_cast<std::size_t>(dtype)]; }

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  const auto* row = std::ranges::find(kTable, name, &DTypeInfo::name);
  if (row == kTable.end()) return std::nullopt;
  return static_cast<DType>(row - kTable.begin());
}

}  // namespace msprobe
