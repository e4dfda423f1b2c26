#pragma once
// What the tests of .pt and .npy share.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checksum/crc32.h"
#include "format/tensor_file.h"
#include "scratch.h"

namespace msprobe::test {

using Sizes = std::vector<std::int64_t>;

// The bytes of the file that `make_writer` writes from `data`, handed to it in blocks of `block_bytes`.
template <class MakeWriter>
std::string written(MakeWriter make_writer, std::string_view data, std::size_t block_bytes) {
  const ScratchFolder scratch;
  NewFile file(scratch.open());
  const std::unique_ptr<TensorFileWriter> writer = make_writer(file);
  auto rest = bytes_of(data);
  Crc32 crc;
  while (!rest.empty()) {
    const auto block = rest.first(std::min(rest.size(), block_bytes));
    writer->write(block);
    crc.update(block);
    rest = rest.subspan(block.size());
  }
  writer->finish(crc.value());
  EXPECT_TRUE(file.commit("tensor"));
  return read_file(scratch / "tensor");
}

// The memory of `values`.
template <class Value>
std::string memory_of(const std::vector<Value>& values) {
  std::string out(values.size() * sizeof(Value), '\0');
  if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

// A literal with NUL bytes in it.
template <std::size_t kSize>
std::string bytes(const char (&literal)[kSize]) {
  return {literal, kSize - 1};
}

// Bytes that differ from their neighbours.
inline std::string pattern(std::size_t count) {
  std::string out(count, '\0');
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<char>((i * 31 + i / 251) & 0x7F);
  return out;
}

}  // namespace msprobe::test
