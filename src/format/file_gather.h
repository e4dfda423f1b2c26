#pragma once
// Gathers strided elements from a file that is too large to be in memory.

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/file_io.h"
#include "tensor/strided_cursor.h"

namespace msprobe {

// Reads the next elements of `cursor`, whose first one stands at byte `base` of `file`, to `out`: as many as fit, and
// no more than are left. Memory: some KiB. No mapping: a file that is cut off meanwhile is an error, not a SIGBUS, and
// pages that were touched count for no one.
// Throws: IoError; FormatError if the file ends before an element.
void gather_from_file(const InputFile& file, std::uint64_t base, std::size_t item_bytes, StridedCursor& cursor,
                      std::span<std::byte> out);

}  // namespace msprobe
