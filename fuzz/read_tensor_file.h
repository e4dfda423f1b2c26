#pragma once
// What both targets do with the bytes of a file.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/file_io.h"
#include "format/tensor_reader.h"

namespace msprobe::fuzz {

// Writes `bytes` to a file in memory and reads all that it holds through the path that every caller takes. Aborts if
// the elements read in small parts are not those read at once.
inline void read_tensor_file(std::span<const std::byte> bytes) {
  const FileDescriptor memory(memfd_create("tensor", MFD_CLOEXEC));
  if (write(memory.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  std::optional<TensorFileReader> reader;
  try {
    reader.emplace("/proc/self/fd/" + std::to_string(memory.get()));
    reader->verify_checksums();
  } catch (const Error&) {
    if (!reader) return;
  }
  // A broadcast tensor can be long; its elements repeat.
  constexpr std::uint64_t kMostBytes = 1U << 16U;
  const std::size_t item = dtype_info(reader->info().dtype).item_bytes;
  const std::uint64_t total = std::min(reader->total_bytes(), kMostBytes);
  try {
    std::vector<std::byte> whole(static_cast<std::size_t>(total));
    reader->read(0, whole);
    std::vector<std::byte> parts(whole.size());
    const std::size_t part_bytes = item * 7;
    for (std::size_t at = 0; at < parts.size(); at += part_bytes) {
      reader->read(at, std::span(parts).subspan(at, std::min(part_bytes, parts.size() - at)));
    }
    if (whole != parts) std::abort();
    std::vector<std::byte> last(std::min<std::size_t>(item, whole.size()));
    reader->read(reader->total_bytes() - last.size(), last);
  } catch (const Error&) {
    return;
  }
}

}  // namespace msprobe::fuzz
