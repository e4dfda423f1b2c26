#pragma once
// A position in a layout that moves forward through its elements in reading order.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/layout.h"

namespace msprobe {

// A part of a layout that is regular in two dimensions, read row after row.
struct Rectangle {
  std::int64_t offset_bytes;  // of its first element from the first one of the layout
  Dim rows;
  Dim columns;
};

class StridedCursor {
 public:
  // Stands before the first element. Borrows the memory of `layout`, which only take_run() and fill() touch.
  explicit StridedCursor(Layout layout);

  // From now on stands before element `first` of the layout, with `count` elements to go.
  void seek(std::int64_t first, std::int64_t count) noexcept;

  [[nodiscard]] std::int64_t remaining() const noexcept { return remaining_; }

  // Bytes of a contiguous run: the innermost dimension where it is dense, else one element.
  [[nodiscard]] std::size_t run_bytes() const noexcept;
  // Bytes that fill() should be given at least so that each cache line of the source is loaded about once.
  [[nodiscard]] std::size_t preferred_bytes() const noexcept;

  // Returns the rest of the current run, cut to whole elements within `max_bytes`, and steps over it.
  [[nodiscard]] std::span<const std::byte> take_run(std::size_t max_bytes) noexcept;

  // Returns the next elements, as many as form a rectangle of at most `max_elements` > 0, and steps over them.
  // Precondition: remaining() > 0.
  [[nodiscard]] Rectangle take_rectangle(std::int64_t max_elements) noexcept;

  // Copies the next elements to `out`, as many as are left and fit; returns the part of `out` that was written.
  std::span<std::byte> fill(std::span<std::byte> out) noexcept;

 private:
  // Steps over `columns` elements of the innermost dimension, or over whole rows of it.
  void advance(std::int64_t columns) noexcept;
  void advance_rows(std::int64_t rows) noexcept;

  Layout layout_;                    // at least two dimensions, the outer ones of size 1 where there are none
  std::vector<std::int64_t> index_;  // one for each dimension
  std::int64_t row_ = 0;             // where the innermost index is 0, in bytes from the first element
  std::int64_t remaining_;
};

}  // namespace msprobe
