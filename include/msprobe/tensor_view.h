#pragma once
// A borrowed n-dimensional array in host memory.

#include <cstddef>
#include <cstdint>
#include <span>

#include "msprobe/dtype.h"

namespace msprobe {

// Borrows everything it points to; whoever makes one keeps data, shape and strides alive.
struct TensorView {
  const std::byte* data = nullptr;  // the element at index (0, 0, ...)
  DType dtype = DType::kFloat32;
  std::span<const std::int64_t> shape;    // no negative entries; empty: one element (0-dim)
  std::span<const std::int64_t> strides;  // in elements, any sign, 0 = broadcast; same length as shape
  // Lazy sign flips of PyTorch: a negated view flips both, a conjugated one the imaginary part.
  bool negate_real = false;  // also the flag of a real dtype
  bool negate_imag = false;
};

// Returns the number of elements: the product of `shape`, 1 for 0-dim.
// Throws: Error if the number of values does not fit in an int64.
[[nodiscard]] std::int64_t numel(const TensorView& view);

}  // namespace msprobe
