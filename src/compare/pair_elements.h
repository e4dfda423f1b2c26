#pragma once
// Elements of every dtype as numbers that can be compared with those of another dtype.

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "compare/pair_kernels.h"
#include "msprobe/dtype.h"

namespace msprobe {

// An element without rounding: bool, integers and real floats as such, complex numbers of any width in float64.
using Number = std::variant<bool, std::int64_t, std::uint64_t, double, std::complex<double>>;

// Returns the value at `index` (float4_e2m1fn_x2: two values a byte).
[[nodiscard]] Number number_at(DType dtype, std::span<const std::byte> elements, std::size_t index);

// Returns |a - b| where both are bool or integers and 64 bits hold it.
[[nodiscard]] std::optional<std::uint64_t> exact_difference(const Number& a, const Number& b);

// Returns the format of a float dtype, of the parts of a complex one, else nothing. Constant time.
[[nodiscard]] std::optional<FloatFormat> float_format(DType dtype);

// Returns whether float32 holds all values of `dtype`. Constant time.
[[nodiscard]] bool fits_float32(DType dtype);

// Returns all values as float32, or float64, exactly: in place where they are so already, else in `buffer`, which has
// room for them. 64-bit integers beyond 2^53 are rounded. The address may be misaligned.
[[nodiscard]] const void* widen(DType dtype, std::span<const std::byte> elements, float* buffer);
[[nodiscard]] const void* widen(DType dtype, std::span<const std::byte> elements, double* buffer);

// Likewise as complex numbers: real and imaginary parts in turn. `dtype`: any.
[[nodiscard]] const void* widen_complex(DType dtype, std::span<const std::byte> elements, double* buffer);

// A number as an unevaluated sum, so that 64-bit integers are exact: hi + lo + im * i, |lo| at most half an ulp of hi.
struct WideNumber {
  double hi;
  double lo;
  double im;
};
[[nodiscard]] WideNumber widen(const Number& number);

}  // namespace msprobe
