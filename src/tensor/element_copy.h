#pragma once
// Copies a rectangle of strided elements into dense memory: the inner loop of every gather.

#include <cstddef>

#include "tensor/layout.h"

namespace msprobe {

// Writes rows.size x columns.size elements of `item_bytes` (1, 2, 4, 8 or 16) each to `out`, row after row.
// Any strides; rows that are closer together than columns (a transposed matrix) are read in tiles, so that each cache
// line of the source is loaded once.
void copy_rectangle(std::byte* out, const std::byte* in, const Dim& rows, const Dim& columns,
                    std::size_t item_bytes) noexcept;

}  // namespace msprobe
