#pragma once
// Element types a tensor can have. One row in the table of src/tensor/dtype.cpp describes each of them.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace msprobe {

enum class DType : std::uint8_t {
  kBool,
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kUint64,
  kInt64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kComplex32,
  kComplex64,
  kComplex128,
  kFloat8E4m3fn,
  kFloat8E5m2,
  kFloat8E4m3fnuz,
  kFloat8E5m2fnuz,
  kFloat8E8m0fnu,
  kFloat4E2m1fnX2,  // two values in a byte, the low four bits first
};
inline constexpr std::size_t kDTypeCount = 22;

enum class DTypeKind : std::uint8_t { kBool, kSigned, kUnsigned, kFloat, kComplex };

struct DTypeInfo {
  std::string_view name;    // the spelling of PyTorch and NumPy: "float32", "float8_e4m3fn"
  std::uint8_t item_bytes;  // size of one element of the tensor's shape
  DTypeKind kind;
  std::uint8_t values_per_item = 1;  // 2 for float4_e2m1fn_x2
};

// Returns the description of `dtype`. Constant time, never fails.
[[nodiscard]] const DTypeInfo& dtype_info(DType dtype) noexcept;

// Returns the dtype spelled `name`, or nothing if no dtype is called so.
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name) noexcept;

}  // namespace msprobe
