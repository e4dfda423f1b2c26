#include "compare/tolerance.h"

namespace msprobe {

std::optional<int> precision_bits(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      return 53;
    case DType::kFloat32:
    case DType::kComplex64:
      return 24;
    case DType::kFloat16:
    case DType::kComplex32:
      return 11;
    case DType::kBfloat16:
      return 8;
    case DType::kFloat8E4m3fn:
    case DType::kFloat8E4m3fnuz:
      return 4;
    case DType::kFloat8E5m2:
    case DType::kFloat8E5m2fnuz:
      return 3;
    case DType::kFloat4E2m1fnX2:
      return 2;
    case DType::kFloat8E8m0fnu:
      return 1;
    default:
      return std::nullopt;
  }
}

DType less_exact(DType first, DType second) noexcept {
  constexpr int kExact = 1000;
  return precision_bits(second).value_or(kExact) < precision_bits(first).value_or(kExact) ? second : first;
}

double default_rtol(DType dtype) noexcept {
  switch (dtype) {
    // Sums of thousands of terms in another order: some hundred units in the last place.
    case DType::kFloat64:
    case DType::kComplex128:
      return 1e-12;
    case DType::kFloat32:
    case DType::kComplex64:
      return 3e-5;
    // Sums run in float32 and are rounded once: a step or two of the narrow dtype.
    case DType::kFloat16:
    case DType::kComplex32:
      return 0x1p-9;
    case DType::kBfloat16:
      return 0x1p-6;
    case DType::kFloat8E4m3fn:
    case DType::kFloat8E4m3fnuz:
      return 0x1p-3;
    case DType::kFloat8E5m2:
    case DType::kFloat8E5m2fnuz:
      return 0x1p-2;
    case DType::kFloat4E2m1fnX2:
      return 0x1p-1;
    case DType::kFloat8E8m0fnu:  // a scale: the next one is twice as large
      return 1;
    default:
      return 0;
  }
}

Tolerance element_tolerance(const ToleranceOptions& options, DType dtype, double scale) noexcept {
  const double rtol = options.rtol.value_or(default_rtol(dtype));
  return {rtol, options.atol.value_or(rtol * scale)};
}

}  // namespace msprobe
