#pragma once
// How far two values may be apart and still be the same computation. The reasoning stands in docs/compare.md.

#include <optional>

#include "compare/pair_errors.h"
#include "msprobe/dtype.h"

namespace msprobe {

// What the user has set; nothing: the default of the dtype.
struct ToleranceOptions {
  std::optional<double> rtol{};
  std::optional<double> atol{};
  std::optional<double> cosine{};  // least cosine of two tensors
};

// Significant bits of a float dtype, the hidden one included, a complex one by its parts; nothing for others.
[[nodiscard]] std::optional<int> precision_bits(DType dtype) noexcept;

// Returns the dtype of two in which a result is less exact; `first` where both are as exact. Integers are exact.
[[nodiscard]] DType less_exact(DType first, DType second) noexcept;

// The default: 0 for integers and bool, for floats a multiple of the unit roundoff.
[[nodiscard]] double default_rtol(DType dtype) noexcept;

// `scale`: root mean square of the finite golden values. Without --atol an element may be off by rtol * scale as well:
// where a sum cancels, what is left is as inexact as its terms, and these are of that size.
[[nodiscard]] Tolerance element_tolerance(const ToleranceOptions& options, DType dtype, double scale) noexcept;

// Python's int and float have no dtype: floats are mostly losses and norms of float32 or narrower, read with item().
inline constexpr DType kDTypeOfPythonFloats = DType::kFloat32;

}  // namespace msprobe
