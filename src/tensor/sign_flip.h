#pragma once
// The lazy sign flips of a view, applied to a copy of its elements.

#include <cstddef>
#include <span>

#include "msprobe/tensor_view.h"

namespace msprobe {

// True if the flags of `view` change any element of its dtype (bool and float8_e8m0fnu have no sign).
[[nodiscard]] bool needs_sign_flip(const TensorView& view) noexcept;

// Negates `elements` in place as the flags of `view` say: real and imaginary parts of complex dtypes by their own
// flag, all other dtypes by `negate_real`. Integers wrap. `elements`: whole elements of that dtype, any alignment.
void flip_signs(const TensorView& view, std::span<std::byte> elements) noexcept;

}  // namespace msprobe
