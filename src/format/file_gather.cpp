#include "format/file_gather.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace msprobe {
namespace {

// Elements within this many bytes come with one pread, whatever lies between them.
constexpr std::int64_t kPieceBytes = 16 * 1024;

// Reads `part` row after row into `out`. `piece` has at least kPieceBytes.
void read_rectangle(const InputFile& file, std::int64_t base, const Rectangle& part, std::int64_t item,
                    std::span<std::byte> piece, std::byte* out) {
  // Along the axis whose neighbours are close in the file, a piece at a time.
  const bool by_rows = part.rows.size > 1 && std::abs(part.rows.stride_bytes) < std::abs(part.columns.stride_bytes);
  const Dim& near = by_rows ? part.rows : part.columns;
  const Dim& far = by_rows ? part.columns : part.rows;
  const std::int64_t row_bytes = part.columns.size * item;
  const std::int64_t near_out = by_rows ? row_bytes : item;
  const std::int64_t far_out = by_rows ? item : row_bytes;
  const bool in_place = !by_rows && near.stride_bytes == item;
  const std::int64_t distance = std::max<std::int64_t>(std::abs(near.stride_bytes), 1);
  const std::int64_t at_once =
      in_place ? near.size : std::clamp<std::int64_t>((kPieceBytes - item) / distance + 1, 1, near.size);

  for (std::int64_t f = 0; f < far.size; ++f) {
    for (std::int64_t n = 0; n < near.size; n += at_once) {
      const std::int64_t count = std::min(at_once, near.size - n);
      const std::int64_t first = part.offset_bytes + f * far.stride_bytes + n * near.stride_bytes;
      const std::int64_t last = first + (count - 1) * near.stride_bytes;
      const std::int64_t lowest = std::min(first, last);
      const auto span_bytes = static_cast<std::size_t>(std::abs(last - first) + item);
      std::byte* to = out + f * far_out + n * near_out;
      const std::span<std::byte> read = in_place ? std::span(to, span_bytes) : piece.first(span_bytes);
      file.read_at(static_cast<std::uint64_t>(base + lowest), read);
      for (std::int64_t i = 0; !in_place && i < count; ++i) {
        std::memcpy(to + i * near_out, piece.data() + (first - lowest) + i * near.stride_bytes,
                    static_cast<std::size_t>(item));
      }
    }
  }
}

}  // namespace

void gather_from_file(const InputFile& file, std::uint64_t base, std::size_t item_bytes, StridedCursor& cursor,
                      std::span<std::byte> out) {
  std::vector<std::byte> piece(static_cast<std::size_t>(kPieceBytes));
  while (!out.empty() && cursor.remaining() > 0) {
    const Rectangle part = cursor.take_rectangle(static_cast<std::int64_t>(out.size() / item_bytes));
    read_rectangle(file, static_cast<std::int64_t>(base), part, static_cast<std::int64_t>(item_bytes), piece,
                   out.data());
    out = out.subspan(static_cast<std::size_t>(part.rows.size * part.columns.size) * item_bytes);
  }
}

}  // namespace msprobe
