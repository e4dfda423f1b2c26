#include "checksum/crc32.h"

#include <libdeflate.h>

#include "tensor/block_reader.h"

namespace msprobe {
namespace {

// Polynomials over GF(2) modulo that of the CRC, bit-reflected as the checksum itself: bit 31 is the term 1.
constexpr std::uint32_t kPolynomial = 0xEDB88320;
constexpr std::uint32_t kOne = std::uint32_t{1} << 31;
constexpr std::uint32_t kXToThe8 = kOne >> 8;

constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t product = 0;
  for (std::uint32_t term = kOne; term != 0; term >>= 1) {
    if ((a & term) != 0) product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kPolynomial : b >> 1;  // b times x
  }
  return product;
}

// x^(8 * bytes), by square and multiply.
// Source: M. Adler, crc32_combine() in zlib 1.2.12, multmodp() and x2nmodp().
constexpr std::uint32_t shift_factor(std::uint64_t bytes) noexcept {
  std::uint32_t factor = kOne;
  for (std::uint32_t square = kXToThe8; bytes != 0; bytes >>= 1) {
    if ((bytes & 1) != 0) factor = multiply(factor, square);
    square = multiply(square, square);
  }
  return factor;
}

}  // namespace

void Crc32::update(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return;  // libdeflate takes a null pointer as "start again"
  value_ = libdeflate_crc32(value_, bytes.data(), bytes.size());
}

void Crc32::update_zeros(std::uint64_t count) noexcept {
  // The register between updates is the inverted value; a zero byte multiplies it by x^8.
  value_ = ~multiply(~value_, shift_factor(count));
}

void Crc32::append(const Crc32& next, std::uint64_t count) noexcept {
  const std::uint32_t shifted = value_ == 0 ? 0 : multiply(value_, shift_factor(count));
  value_ = shifted ^ next.value_;
}

std::uint32_t compute_crc32(const TensorView& view) {
  Crc32 crc;
  BlockReader reader(view, ReadOrder::kLogical);
  for (auto block = reader.next(); !block.empty(); block = reader.next()) crc.update(block);
  return crc.value();
}

}  // namespace msprobe
