#include "tensor/strided_cursor.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tensor/element_copy.h"

namespace msprobe {
namespace {

constexpr std::int64_t kCacheLineBytes = 64;

}  // namespace

StridedCursor::StridedCursor(Layout layout) : layout_(std::move(layout)), remaining_(layout_.count) {
  while (layout_.dims.size() < 2) layout_.dims.push_back({1, static_cast<std::int64_t>(layout_.item_bytes)});
  index_.assign(layout_.dims.size(), 0);
}

void StridedCursor::seek(std::int64_t first, std::int64_t count) noexcept {
  remaining_ = count;
  row_ = 0;
  for (std::size_t i = 0; i < index_.size(); ++i) {
    const Dim& dim = layout_.dims[i];
    index_[i] = first % dim.size;
    first /= dim.size;
    if (i > 0) row_ += index_[i] * dim.stride_bytes;
  }
}

std::size_t StridedCursor::run_bytes() const noexcept {
  const Dim& columns = layout_.dims[0];
  const bool dense = columns.stride_bytes == static_cast<std::int64_t>(layout_.item_bytes);
  return dense ? static_cast<std::size_t>(columns.size) * layout_.item_bytes : layout_.item_bytes;
}

std::size_t StridedCursor::preferred_bytes() const noexcept {
  const auto item = static_cast<std::int64_t>(layout_.item_bytes);
  const Dim& columns = layout_.dims[0];
  const Dim& rows = layout_.dims[1];
  if (rows.size == 1 || std::abs(rows.stride_bytes) >= std::abs(columns.stride_bytes)) return layout_.item_bytes;
  // The rows of a transposed matrix that share one line of the source.
  const std::int64_t rows_per_line =
      std::max<std::int64_t>(1, kCacheLineBytes / std::max(item, std::abs(rows.stride_bytes)));
  return static_cast<std::size_t>(std::min(rows.size, rows_per_line) * columns.size * item);
}

std::span<const std::byte> StridedCursor::take_run(std::size_t max_bytes) noexcept {
  if (remaining_ == 0) return {};
  const auto item = static_cast<std::int64_t>(layout_.item_bytes);
  const std::int64_t left_in_run = run_bytes() == layout_.item_bytes ? 1 : layout_.dims[0].size - index_[0];
  const std::int64_t count = std::min({left_in_run, static_cast<std::int64_t>(max_bytes) / item, remaining_});
  const std::byte* start = layout_.data + row_ + index_[0] * layout_.dims[0].stride_bytes;
  advance(count);
  return {start, static_cast<std::size_t>(count * item)};
}

Rectangle StridedCursor::take_rectangle(std::int64_t max_elements) noexcept {
  const Dim& columns = layout_.dims[0];
  const Dim& rows = layout_.dims[1];
  max_elements = std::min(max_elements, remaining_);
  const std::int64_t offset = row_ + index_[0] * columns.stride_bytes;
  const std::int64_t whole_rows = std::min(max_elements / columns.size, rows.size - index_[1]);
  if (index_[0] == 0 && whole_rows > 0) {
    advance_rows(whole_rows);
    return {offset, {whole_rows, rows.stride_bytes}, columns};
  }
  const std::int64_t count = std::min(max_elements, columns.size - index_[0]);
  advance(count);
  return {offset, {1, 0}, {count, columns.stride_bytes}};
}

std::span<std::byte> StridedCursor::fill(std::span<std::byte> out) noexcept {
  const auto item = static_cast<std::int64_t>(layout_.item_bytes);
  std::byte* to = out.data();
  std::int64_t space = static_cast<std::int64_t>(out.size()) / item;
  while (space > 0 && remaining_ > 0) {
    const Rectangle part = take_rectangle(space);
    copy_rectangle(to, layout_.data + part.offset_bytes, part.rows, part.columns, layout_.item_bytes);
    const std::int64_t written = part.rows.size * part.columns.size;
    to += written * item;
    space -= written;
  }
  return out.first(static_cast<std::size_t>(to - out.data()));
}

void StridedCursor::advance(std::int64_t columns) noexcept {
  index_[0] += columns;
  if (index_[0] < layout_.dims[0].size) {
    remaining_ -= columns;
    return;
  }
  remaining_ += layout_.dims[0].size - columns;  // advance_rows takes a whole row off
  index_[0] = 0;
  advance_rows(1);
}

void StridedCursor::advance_rows(std::int64_t rows) noexcept {
  remaining_ -= rows * layout_.dims[0].size;
  index_[1] += rows;
  row_ += rows * layout_.dims[1].stride_bytes;
  for (std::size_t i = 1; i + 1 < index_.size() && index_[i] == layout_.dims[i].size; ++i) {
    row_ += layout_.dims[i + 1].stride_bytes - layout_.dims[i].size * layout_.dims[i].stride_bytes;
    index_[i] = 0;
    ++index_[i + 1];
  }
}

}  // namespace msprobe
