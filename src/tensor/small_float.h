#pragma once
// Exact values of the float formats of 8 and 4 bits.
// Source: OCP 8-bit Floating Point Specification 1.0 (e4m3fn, e5m2); OCP Microscaling Formats 1.0 (e8m0fnu, e2m1fn);
// Noune et al., "8-bit Numerical Formats for Deep Neural Networks", 2022 (the fnuz variants).

#include <array>
#include <cstdint>

#include "msprobe/dtype.h"

namespace msprobe {

// Returns the value of each byte of a float8 dtype (e4m3fn, e5m2, e4m3fnuz, e5m2fnuz, e8m0fnu); float32 holds all of
// them exactly. Constant time. `dtype` is one of the five.
[[nodiscard]] const std::array<float, 256>& float8_values(DType dtype) noexcept;

// Returns the value of each code of four bits of float4_e2m1fn. A byte of float4_e2m1fn_x2 holds two codes, the low
// four bits first.
[[nodiscard]] const std::array<float, 16>& float4_values() noexcept;

}  // namespace msprobe
