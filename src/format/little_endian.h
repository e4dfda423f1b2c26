#pragma once
// Numbers as the bytes of a file, the low one first.

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

namespace msprobe {

// Tensor files hold the memory of tensors as it is.
static_assert(std::endian::native == std::endian::little,
              "tensor files are written and read on little-endian hosts only");

template <std::unsigned_integral Number>
void append_little_endian(std::string& out, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    out += static_cast<char>(static_cast<unsigned char>(number >> (8 * i)));
  }
}

// Returns the number at the beginning of `bytes`, which are at least as many as it has.
template <std::unsigned_integral Number>
[[nodiscard]] Number load_little_endian(std::span<const std::byte> bytes) noexcept {
  Number number;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

}  // namespace msprobe
