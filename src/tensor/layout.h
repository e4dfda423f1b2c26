#pragma once
// The memory layout of a view, reduced to what matters for walking over it.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "msprobe/tensor_view.h"
#include "tensor/block_reader.h"

namespace msprobe {

struct Dim {
  std::int64_t size;
  std::int64_t stride_bytes;
};

struct Layout {
  const std::byte* data = nullptr;  // the first element in reading order
  std::size_t item_bytes = 1;
  std::int64_t count = 0;   // elements to read
  std::int64_t repeat = 1;  // elements of the view that each of them stands for
  std::vector<Dim> dims;    // innermost first, sizes above 1; none: one element, or count == 0
};

// True if the elements of `view` lie one after the other in C order. Allocates nothing.
[[nodiscard]] bool is_contiguous(const TensorView& view) noexcept;

// Returns the bytes that `elements` take. Throws: Error if they do not fit in an int64.
[[nodiscard]] std::int64_t byte_size(std::int64_t elements, DType dtype);

// Drops dimensions of size 1, takes broadcast dimensions out into `repeat` (not for kLogical) and merges neighbours
// that together are one. For kAny it also turns negative strides round and sorts by stride, so that a dense view in
// any order of dimensions becomes a single run. Sign flips are not looked at. Throws: Error if the number of
// elements of the view, or of bytes to read, overflows.
[[nodiscard]] Layout make_layout(const TensorView& view, ReadOrder order);

}  // namespace msprobe
