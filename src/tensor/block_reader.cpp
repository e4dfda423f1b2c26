#include "tensor/block_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tensor/layout.h"
#include "tensor/sign_flip.h"
#include "tensor/strided_cursor.h"

namespace msprobe {
namespace {

// Runs from this size on are handed out in place: what a consumer does once a block costs less than a copy.
constexpr std::size_t kInPlaceRunBytes = 8 * 1024;
// Largest gather buffer for a transposed matrix with long rows, unless the block itself is larger.
constexpr std::size_t kTransposeBufferBytes = 4 * 1024 * 1024;

std::size_t whole_items(std::size_t bytes, std::size_t item_bytes) noexcept {
  return std::max(bytes / item_bytes, std::size_t{1}) * item_bytes;
}

}  // namespace

BlockReader::BlockReader(const TensorView& view, ReadOrder order, std::size_t block_bytes)
    : BlockReader(view, order, ElementRange{}, block_bytes) {}

BlockReader::BlockReader(const TensorView& view, ReadOrder order, ElementRange range, std::size_t block_bytes)
    : view_(view), block_bytes_(whole_items(block_bytes, dtype_info(view.dtype).item_bytes)) {
  const std::size_t item_bytes = dtype_info(view.dtype).item_bytes;
  const std::int64_t elements = numel(view);
  if (elements == 0) return;

  const bool flips = needs_sign_flip(view);
  if (!flips && is_contiguous(view)) {
    const std::int64_t skipped = byte_size(range.first, view.dtype);
    total_bytes_ = byte_size(std::min(range.count, elements - range.first), view.dtype);
    pending_ = {view.data + skipped, static_cast<std::size_t>(total_bytes_)};
    return;
  }

  Layout layout = make_layout(view, order);
  repeat_ = layout.repeat;
  const std::int64_t all = layout.count;
  const std::int64_t count = std::min(range.count, all - range.first);
  total_bytes_ = byte_size(count, view.dtype);
  cursor_ = std::make_unique<StridedCursor>(std::move(layout));
  cursor_->seek(range.first, count);
  const std::size_t run = cursor_->run_bytes();
  const bool is_one_run = run == static_cast<std::size_t>(all) * item_bytes;
  if (!flips && (is_one_run || run >= std::min(kInPlaceRunBytes, block_bytes_))) return;

  const std::size_t unit = std::min(cursor_->preferred_bytes(), whole_items(kTransposeBufferBytes, item_bytes));
  buffer_bytes_ = std::min(static_cast<std::size_t>(total_bytes_), whole_items(std::max(block_bytes_, unit), unit));
  buffer_ = std::make_unique_for_overwrite<std::byte[]>(buffer_bytes_);
}

BlockReader::~BlockReader() = default;

std::span<const std::byte> BlockReader::take_pending() noexcept {
  const auto block = pending_.first(std::min(pending_.size(), block_bytes_));
  pending_ = pending_.subspan(block.size());
  return block;
}

std::span<const std::byte> BlockReader::next() {
  if (!pending_.empty() || !cursor_) return take_pending();
  if (!buffer_) return cursor_->take_run(block_bytes_);
  const std::span<std::byte> filled = cursor_->fill({buffer_.get(), buffer_bytes_});
  flip_signs(view_, filled);
  pending_ = filled;
  return take_pending();
}

std::int64_t read_count(const TensorView& view, ReadOrder order) {
  const bool has_broadcast = std::ranges::find(view.strides, 0) != view.strides.end();
  return has_broadcast ? make_layout(view, order).count : numel(view);
}

std::vector<std::int64_t> stored_strides(const TensorView& view) {
  std::vector<std::int64_t> strides(view.shape.size());
  std::int64_t next = 1;
  for (std::size_t i = strides.size(); i-- > 0;) {
    const bool broadcast = view.strides[i] == 0 && view.shape[i] > 1;
    strides[i] = broadcast ? 0 : next;
    if (!broadcast) next *= std::max<std::int64_t>(view.shape[i], 1);
  }
  return strides;
}

void copy_stored(const TensorView& view, std::span<std::byte> out, std::int64_t first) {
  if (out.empty()) return;
  const auto item_bytes = static_cast<std::int64_t>(dtype_info(view.dtype).item_bytes);
  if (is_contiguous(view)) {
    std::memcpy(out.data(), view.data + first * item_bytes, out.size());
  } else {
    StridedCursor cursor(make_layout(view, ReadOrder::kStored));
    cursor.seek(first, static_cast<std::int64_t>(out.size()) / item_bytes);
    cursor.fill(out);
  }
  flip_signs(view, out);
}

}  // namespace msprobe
