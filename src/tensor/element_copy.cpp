#include "tensor/element_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace msprobe {
namespace {

// Columns of one tile of a transposed read. Eight lines fit in one set of a first-level cache even where a stride that
// is a power of two sends all of them there.
constexpr std::int64_t kTileColumns = 8;

template <std::size_t kItemBytes>
void copy_row(std::byte* out, const std::byte* in, const Dim& columns) noexcept {
  for (std::int64_t c = 0; c < columns.size; ++c) {
    std::memcpy(out, in, kItemBytes);
    out += kItemBytes;
    in += columns.stride_bytes;
  }
}

template <std::size_t kItemBytes>
void copy_strided(std::byte* out, const std::byte* in, const Dim& rows, const Dim& columns) noexcept {
  constexpr auto kItem = static_cast<std::int64_t>(kItemBytes);
  const bool transposed = rows.size > 1 && std::abs(rows.stride_bytes) < std::abs(columns.stride_bytes);
  const std::int64_t tile_columns = transposed ? kTileColumns : columns.size;
  for (std::int64_t first = 0; first < columns.size; first += tile_columns) {
    const Dim tile{std::min(tile_columns, columns.size - first), columns.stride_bytes};
    for (std::int64_t r = 0; r < rows.size; ++r) {
      copy_row<kItemBytes>(out + (r * columns.size + first) * kItem,
                           in + r * rows.stride_bytes + first * columns.stride_bytes, tile);
    }
  }
}

void copy_runs(std::byte* out, const std::byte* in, const Dim& rows, std::size_t run_bytes) noexcept {
  for (std::int64_t r = 0; r < rows.size; ++r) {
    std::memcpy(out, in, run_bytes);
    out += run_bytes;
    in += rows.stride_bytes;
  }
}

}  // namespace

void copy_rectangle(std::byte* out, const std::byte* in, const Dim& rows, const Dim& columns,
                    std::size_t item_bytes) noexcept {
  if (columns.stride_bytes == static_cast<std::int64_t>(item_bytes)) {
    return copy_runs(out, in, rows, static_cast<std::size_t>(columns.size) * item_bytes);
  }
  switch (item_bytes) {
    case 1:
      return copy_strided<1>(out, in, rows, columns);
    case 2:
      return copy_strided<2>(out, in, rows, columns);
    case 4:
      return copy_strided<4>(out, in, rows, columns);
    case 8:
      return copy_strided<8>(out, in, rows, columns);
    default:
      return copy_strided<16>(out, in, rows, columns);
  }
}

}  // namespace msprobe
