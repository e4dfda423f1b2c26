#include "format/widen.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "tensor/small_float.h"

namespace msprobe {
namespace {

float from_bfloat16(std::uint16_t bits) noexcept { return std::bit_cast<float>(std::uint32_t{bits} << 16U); }

float from_float16(std::uint16_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
  const std::uint32_t mantissa = bits & 0x3FFU;
  std::uint32_t magnitude = 0;
  if (exponent == 0x1F) {
    magnitude = 0x7F800000U | mantissa << 13U;
  } else if (exponent != 0) {
    magnitude = (exponent + 127 - 15) << 23U | mantissa << 13U;
  } else if (mantissa != 0) {  // mantissa * 2^-24, which is normal in float32
    const auto top = static_cast<std::uint32_t>(std::bit_width(mantissa)) - 1;
    magnitude = (top + 127 - 24) << 23U | ((mantissa << (23U - top)) & 0x7FFFFFU);
  }
  return std::bit_cast<float>(sign | magnitude);
}

template <class Decode>
void widen_halves(std::span<const std::byte> halves, std::span<float> out, Decode decode) noexcept {
  for (std::size_t i = 0; i < halves.size() / 2; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, &halves[2 * i], sizeof bits);
    out[i] = decode(bits);
  }
}

}  // namespace

DType widened_dtype(DType dtype) noexcept {
  if (dtype == DType::kComplex32) return DType::kComplex64;
  return floats_per_item(dtype) > 0 ? DType::kFloat32 : dtype;
}

std::size_t floats_per_item(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat4E2m1fnX2:
    case DType::kComplex32:
      return 2;
    case DType::kBfloat16:
    case DType::kFloat8E4m3fn:
    case DType::kFloat8E5m2:
    case DType::kFloat8E4m3fnuz:
    case DType::kFloat8E5m2fnuz:
    case DType::kFloat8E8m0fnu:
      return 1;
    default:
      return 0;
  }
}

void widen(DType dtype, std::span<const std::byte> elements, std::span<float> out) noexcept {
  if (dtype == DType::kBfloat16) {
    widen_halves(elements, out, from_bfloat16);
  } else if (dtype == DType::kComplex32) {
    widen_halves(elements, out, from_float16);
  } else if (dtype == DType::kFloat4E2m1fnX2) {
    const auto& values = float4_values();
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const auto codes = std::to_integer<unsigned>(elements[i]);
      out[2 * i] = values[codes & 0xFU];
      out[2 * i + 1] = values[codes >> 4U];
    }
  } else {
    const auto& values = float8_values(dtype);
    for (std::size_t i = 0; i < elements.size(); ++i) out[i] = values[std::to_integer<unsigned>(elements[i])];
  }
}

}  // namespace msprobe
