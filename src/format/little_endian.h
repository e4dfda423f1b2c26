#pragma once
// Numbers as the bytes of a file, the low one first.

#include <bit>
#include <concepts>
#include <cstddef>
#include <string>

namespace msprobe {

// Tensor files hold the memory of tensors as it is.
static_assert(std::endian::native == std::endian::little, "tensor files are written on little-endian hosts only");

template <std::unsigned_integral Number>
void append_little_endian(std::string& out, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    out += static_cast<char>(static_cast<unsigned char>(number >> (8 * i)));
  }
}

}  // namespace msprobe
