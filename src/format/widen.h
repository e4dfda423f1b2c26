#pragma once
// dtypes that NumPy does not know, as the wider ones that hold each of their values exactly.

#include <cstddef>
#include <span>

#include "msprobe/dtype.h"

namespace msprobe {

// Returns float32 for bfloat16, float8 and float4, complex64 for complex32, else `dtype` itself.
[[nodiscard]] DType widened_dtype(DType dtype) noexcept;

// Returns how many float32 one element of `dtype` becomes: 2 for float4_e2m1fn_x2 (the low four bits first) and for
// complex32 (real, imaginary), 1 for the others that are widened, 0 for those that are not.
[[nodiscard]] std::size_t floats_per_item(DType dtype) noexcept;

// Writes the values of `elements` to `out`, which has floats_per_item() > 0 floats for each of them. Exact; NaN stays
// NaN. Uses no floating-point arithmetic, so that the mode of the calling thread does not matter.
void widen(DType dtype, std::span<const std::byte> elements, std::span<float> out) noexcept;

}  // namespace msprobe
