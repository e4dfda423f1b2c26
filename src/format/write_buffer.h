#pragma once
// Gathers small writes, so that a small file costs one system call.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "format/file_io.h"

namespace msprobe {

// One thread at a time.
class WriteBuffer {
 public:
  // Small enough to stay in cache; a block from memory is larger as a rule and goes through without a copy.
  static constexpr std::size_t kCapacityBytes = 64 * 1024;

  // Borrows `file`, which must be empty and outlive the buffer.
  explicit WriteBuffer(NewFile& file) noexcept : file_(file) {}

  // All of these throw IoError.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes);
  // Overwrites bytes that were written before, at `offset`; they lie on one side of what is flushed already.
  void overwrite(std::uint64_t offset, std::string_view bytes);
  // Hands everything to the file. Without it the end of the file is lost.
  void flush();

  // Bytes written so far.
  [[nodiscard]] std::uint64_t size() const noexcept { return file_.size() + pending_.size(); }

 private:
  NewFile& file_;
  std::vector<std::byte> pending_;
};

}  // namespace msprobe
