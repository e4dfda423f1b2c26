#include "checksum/crc32.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace msprobe {
namespace {

std::uint32_t crc_of(std::span<const std::byte> bytes) {
  Crc32 crc;
  crc.update(bytes);
  return crc.value();
}

std::uint32_t crc_of(std::string_view text) { return crc_of(std::as_bytes(std::span(text))); }

std::vector<std::byte> numbered_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((i * 2654435761U) >> 16);
  return bytes;
}

// Source: the check value is that of CRC-32/ISO-HDLC in reveng.sourceforge.io/crc-catalogue; the others were computed
// with zlib.crc32 of Python.
TEST(Crc32, EqualsPublishedVectors) {
  EXPECT_EQ(crc_of(""), 0U);
  EXPECT_EQ(crc_of("123456789"), 0xCBF43926U);
  EXPECT_EQ(crc_of("The quick brown fox jumps over the lazy dog"), 0x414FA339U);
  EXPECT_EQ(crc_of(std::string_view("\0\0\0\0", 4)), 0x2144DF1CU);
}

TEST(Crc32, SplitInputEqualsWhole) {
  const std::vector<std::byte> bytes = numbered_bytes(1000);
  const std::span<const std::byte> all(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 37) {
    Crc32 crc;
    crc.update(all.first(cut));
    crc.update(all.subspan(cut));
    EXPECT_EQ(crc.value(), crc_of(all)) << cut;
  }
}

TEST(Crc32, ZerosEqualRealZeros) {
  const std::vector<std::byte> prefix = numbered_bytes(13);
  for (const std::size_t count : {0, 1, 2, 3, 7, 8, 255, 256, 65537, 1000003}) {
    Crc32 skipped;
    skipped.update(prefix);
    skipped.update_zeros(count);
    skipped.update(prefix);
    Crc32 real;
    real.update(prefix);
    real.update(std::vector<std::byte>(count));
    real.update(prefix);
    EXPECT_EQ(skipped.value(), real.value()) << count;
  }
}

TEST(Crc32, ZerosFromTheStartEqualRealZeros) {
  Crc32 crc;
  crc.update_zeros(4);
  EXPECT_EQ(crc.value(), 0x2144DF1CU);
}

TEST(Crc32, HugeCountsOfZerosAddUp) {
  constexpr std::uint64_t kCount = (std::uint64_t{1} << 45) + 12345;
  Crc32 once;
  once.update_zeros(2 * kCount);
  Crc32 twice;
  twice.update_zeros(kCount);
  twice.update_zeros(kCount);
  EXPECT_EQ(once.value(), twice.value());
}

TEST(Crc32, PartsPutTogetherEqualTheWhole) {
  const std::vector<std::byte> bytes = numbered_bytes(1000);
  for (const std::size_t split : {0, 1, 9, 500, 999, 1000}) {
    Crc32 whole;
    whole.update(std::span(bytes).first(split));
    Crc32 rest;
    rest.update(std::span(bytes).subspan(split));
    whole.append(rest, bytes.size() - split);
    EXPECT_EQ(whole.value(), crc_of(bytes)) << split;
  }
}

TEST(Crc32, ManyPartsPutTogetherGoOnLikeTheWhole) {
  const std::vector<std::byte> bytes = numbered_bytes(5000);
  Crc32 whole;
  for (std::size_t at = 0; at < 4000; at += 1000) {
    Crc32 part;
    part.update(std::span(bytes).subspan(at, 1000));
    whole.append(part, 1000);
  }
  whole.update(std::span(bytes).subspan(4000));
  EXPECT_EQ(whole.value(), crc_of(bytes));
}

TEST(ComputeCrc32, CoversTheLogicalBytesInCOrder) {
  const std::vector<std::byte> storage = numbered_bytes(6);
  const std::int64_t shape[] = {2, 2, 3};
  const std::int64_t strides[] = {0, 1, 2};  // a transposed 3 x 2 matrix, twice
  const std::vector<std::byte> logical{storage[0], storage[2], storage[4], storage[1], storage[3], storage[5],
                                       storage[0], storage[2], storage[4], storage[1], storage[3], storage[5]};
  EXPECT_EQ(compute_crc32({storage.data(), DType::kUint8, shape, strides}), crc_of(logical));
}

TEST(ComputeCrc32, OfNoElementsIsZero) {
  const std::int64_t shape[] = {0};
  const std::int64_t strides[] = {1};
  EXPECT_EQ(compute_crc32({nullptr, DType::kFloat32, shape, strides}), 0U);
}

TEST(ComputeCrc32, CoversFlippedSigns) {
  const float value = 1.5F;
  const float negated = -1.5F;
  TensorView view{reinterpret_cast<const std::byte*>(&value), DType::kFloat32, {}, {}};
  view.negate_real = true;
  EXPECT_EQ(compute_crc32(view), crc_of(std::as_bytes(std::span(&negated, 1))));
}

}  // namespace
}  // namespace msprobe
