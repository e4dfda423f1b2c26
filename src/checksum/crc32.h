#pragma once
// CRC-32 (IEEE 802.3, polynomial 0x04C11DB7, reflected: that of zlib, zip and Python's zlib.crc32).

#include <cstddef>
#include <cstdint>
#include <span>

#include "msprobe/tensor_view.h"

namespace msprobe {

class Crc32 {
 public:
  void update(std::span<const std::byte> bytes) noexcept;
  // As if `count` zero bytes had been added; O(log count).
  void update_zeros(std::uint64_t count) noexcept;
  // As if the `count` bytes had been added of which `next` is the checksum; O(log count).
  // With x^n for n zero bits modulo the CRC's polynomial: crc(A B) = crc(A) x^(8 |B|) + crc(B).
  // Source: M. Adler, crc32_combine() in zlib 1.2.12.
  void append(const Crc32& next, std::uint64_t count) noexcept;
  // The checksum of all bytes so far; of none: 0.
  [[nodiscard]] std::uint32_t value() const noexcept { return value_; }

 private:
  std::uint32_t value_ = 0;
};

// CRC-32 of the logical bytes of `view` in C order.
[[nodiscard]] std::uint32_t compute_crc32(const TensorView& view);

}  // namespace msprobe
