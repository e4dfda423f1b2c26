#pragma once
// Walks over the elements of a tensor view as a sequence of contiguous blocks.
//
// A contiguous run of the view is handed out in place, without a copy. Short runs (a transposed or sliced view)
// are gathered into one buffer of block size, so that what follows always works on contiguous memory that is in
// cache. Sign flips of lazy views are applied in the gathered copy; the view's own memory is never written.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "msprobe/tensor_view.h"

namespace msprobe {

class StridedCursor;

// Fits in the L2 cache of every machine of interest, with room for what else is hot.
inline constexpr std::size_t kBlockBytes = 256 * 1024;

enum class ReadOrder : std::uint8_t {
  kAny,      // every element once, in the order that memory is fastest; a broadcast dimension is read once
  kStored,   // C order of the shape, a broadcast dimension is read once: what a .pt file stores
  kLogical,  // C order of the shape, a broadcast dimension is repeated: what a checksum covers
};

// A stretch of the elements of a view, counted in reading order.
struct ElementRange {
  std::int64_t first = 0;
  std::int64_t count = std::numeric_limits<std::int64_t>::max();  // cut to what is there
};

class BlockReader {
 public:
  // Borrows `view` and its memory for its own lifetime. Any shape; no elements: `next` is empty at once.
  // Throws: Error if the size of the view overflows.
  BlockReader(const TensorView& view, ReadOrder order, std::size_t block_bytes = kBlockBytes);
  // Only the elements of `range`, which begins within the view.
  BlockReader(const TensorView& view, ReadOrder order, ElementRange range, std::size_t block_bytes = kBlockBytes);
  ~BlockReader();
  BlockReader(const BlockReader&) = delete;
  BlockReader& operator=(const BlockReader&) = delete;

  // Returns the next block, a whole number of elements and at most `block_bytes` long, or an empty span at the end.
  // The span is valid until the next call.
  [[nodiscard]] std::span<const std::byte> next();

  // How many elements of the view each element read stands for: the product of the broadcast dimensions for kAny
  // and kStored, 1 for kLogical.
  [[nodiscard]] std::int64_t repeat() const noexcept { return repeat_; }

  // Number of bytes that all blocks together have.
  [[nodiscard]] std::int64_t total_bytes() const noexcept { return total_bytes_; }

 private:
  // Cuts up to a block off the front of `pending_`.
  std::span<const std::byte> take_pending() noexcept;

  const TensorView view_;
  const std::size_t block_bytes_;  // a whole number of elements
  std::int64_t repeat_ = 1;
  std::int64_t total_bytes_ = 0;
  std::span<const std::byte> pending_;     // contiguous bytes that are not handed out yet
  std::unique_ptr<StridedCursor> cursor_;  // nothing: all that is left is in `pending_`
  std::unique_ptr<std::byte[]> buffer_;    // nothing: runs are handed out in place
  std::size_t buffer_bytes_ = 0;
};

// Elements that a BlockReader delivers of the whole view. Throws: Error if the size of the view overflows.
[[nodiscard]] std::int64_t read_count(const TensorView& view, ReadOrder order);

// Shape and strides (in elements) of a dense copy of `view` in C order in which broadcast dimensions keep stride 0:
// the layout of the bytes that ReadOrder::kStored delivers.
[[nodiscard]] std::vector<std::int64_t> stored_strides(const TensorView& view);

// Copies the elements of `view` in kStored order from element `first` on to `out`, as many as fit there; there are that
// many. Flips are applied.
void copy_stored(const TensorView& view, std::span<std::byte> out, std::int64_t first = 0);

}  // namespace msprobe
