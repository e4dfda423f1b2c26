// Golden bytes are written by hand after PKWARE APPNOTE 6.3.10, sections 4.3 and 4.5.3.

#include "format/zip.h"

#include <gtest/gtest.h>

#include <vector>

#include "tensor_file_support.h"

namespace msprobe {
namespace {

using test::bytes;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

TEST(ZipLocalHeader, WritesGoldenBytes) {
  const std::string expected = bytes(
                                   "PK\x03\x04"
                                   "\x0A\x00\x00\x00\x00\x00"  // version 1.0, no flags, stored
                                   "\x00\x00\x21\x00"          // 1980-01-01 00:00
                                   "\x78\x56\x34\x12"          // CRC-32
                                   "\x05\x00\x00\x00\x05\x00\x00\x00"
                                   "\x03\x00\x1F\x00"  // lengths of name and extra field
                                   "a/b"
                                   "FB\x1B\x00") +
                               std::string(27, 'Z');
  EXPECT_EQ(zip_local_header({"a/b", 5, 0x12345678, 0}), expected);
  EXPECT_EQ(expected.size(), 64U);
  EXPECT_EQ(expected.substr(kZipCrcOffset, 4), "\x78\x56\x34\x12");
}

TEST(ZipLocalHeader, AlignsTheDataWhereverItStands) {
  for (std::uint64_t offset = 0; offset < 130; ++offset) {
    const std::size_t length = zip_local_header({"name", 1, 0, offset}).size();
    EXPECT_EQ((offset + length) % kZipAlignment, 0U) << offset;
    EXPECT_LT(length, 30 + 4 + 4 + kZipAlignment) << offset;
  }
}

TEST(ZipLocalHeader, WritesSizesFrom4GiBInZip64Form) {
  const std::string header = zip_local_header({"a", 5 * kGiB, 0, 0});
  EXPECT_EQ(header.substr(4, 2), bytes("\x2D\x00"));  // version 4.5
  EXPECT_EQ(header.substr(18, 8), std::string(8, '\xFF'));
  EXPECT_EQ(header.substr(31, 20), bytes("\x01\x00\x10\x00"
                                         "\x00\x00\x00\x40\x01\x00\x00\x00"
                                         "\x00\x00\x00\x40\x01\x00\x00\x00"));
  EXPECT_EQ(header.substr(51, 2), "FB");
  EXPECT_EQ(header.size() % kZipAlignment, 0U);
}

TEST(ZipLocalHeader, TakesTheMarkerValueItselfAsLarge) {
  EXPECT_EQ(zip_local_header({"a", 0xFFFFFFFE, 0, 0}).substr(18, 4), bytes("\xFE\xFF\xFF\xFF"));
  EXPECT_EQ(zip_local_header({"a", 0xFFFFFFFF, 0, 0}).substr(31, 4), bytes("\x01\x00\x10\x00"));
}

TEST(ZipDirectory, WritesGoldenBytes) {
  const std::vector<ZipEntry> entries = {{"a/b", 5, 0x12345678, 64}};
  const std::string expected = bytes(
      "PK\x01\x02"
      "\x2D\x00"
      "\x0A\x00\x00\x00\x00\x00"
      "\x00\x00\x21\x00"
      "\x78\x56\x34\x12"
      "\x05\x00\x00\x00\x05\x00\x00\x00"
      "\x03\x00\x00\x00\x00\x00"  // lengths of name, extra field, comment
      "\x00\x00\x00\x00"
      "\x00\x00\x00\x00"
      "\x40\x00\x00\x00"
      "a/b"
      "PK\x06\x06"
      "\x2C\x00\x00\x00\x00\x00\x00\x00"
      "\x2D\x00\x2D\x00"
      "\x00\x00\x00\x00\x00\x00\x00\x00"
      "\x01\x00\x00\x00\x00\x00\x00\x00"
      "\x01\x00\x00\x00\x00\x00\x00\x00"
      "\x31\x00\x00\x00\x00\x00\x00\x00"
      "\x00\x02\x00\x00\x00\x00\x00\x00"
      "PK\x06\x07"
      "\x00\x00\x00\x00"
      "\x31\x02\x00\x00\x00\x00\x00\x00"
      "\x01\x00\x00\x00"
      "PK\x05\x06"
      "\x00\x00\x00\x00"
      "\x01\x00\x01\x00"
      "\x31\x00\x00\x00"
      "\x00\x02\x00\x00"
      "\x00\x00");
  EXPECT_EQ(zip_directory(entries, 0x200), expected);
}

TEST(ZipDirectory, WritesLargeSizesAndOffsetsInZip64Form) {
  const std::vector<ZipEntry> entries = {{"a", 5 * kGiB, 0, 64}, {"b", 1, 0, 6 * kGiB}, {"c", 5 * kGiB, 0, 6 * kGiB}};
  const std::string directory = zip_directory(entries, 11 * kGiB);

  // The size alone, the offset alone, both; the fields that are not large keep their place in the header.
  const std::string a = directory.substr(0, 67);
  EXPECT_EQ(a.substr(6, 2), bytes("\x2D\x00"));
  EXPECT_EQ(a.substr(20, 8), std::string(8, '\xFF'));
  EXPECT_EQ(a.substr(30, 2), bytes("\x14\x00"));
  EXPECT_EQ(a.substr(42, 4), bytes("\x40\x00\x00\x00"));
  EXPECT_EQ(a.substr(46), bytes("a\x01\x00\x10\x00"
                                "\x00\x00\x00\x40\x01\x00\x00\x00"
                                "\x00\x00\x00\x40\x01\x00\x00\x00"));
  const std::string b = directory.substr(67, 59);
  EXPECT_EQ(b.substr(20, 8), bytes("\x01\x00\x00\x00\x01\x00\x00\x00"));
  EXPECT_EQ(b.substr(42, 4), std::string(4, '\xFF'));
  EXPECT_EQ(b.substr(46), bytes("b\x01\x00\x08\x00\x00\x00\x00\x80\x01\x00\x00\x00"));
  const std::string c = directory.substr(126, 75);
  EXPECT_EQ(c.substr(46), bytes("c\x01\x00\x18\x00"
                                "\x00\x00\x00\x40\x01\x00\x00\x00"
                                "\x00\x00\x00\x40\x01\x00\x00\x00"
                                "\x00\x00\x00\x80\x01\x00\x00\x00"));

  const std::string end = directory.substr(201);
  EXPECT_EQ(end.substr(0, 4), bytes("PK\x06\x06"));
  EXPECT_EQ(end.substr(40, 16), bytes("\xC9\x00\x00\x00\x00\x00\x00\x00"
                                      "\x00\x00\x00\xC0\x02\x00\x00\x00"));
  EXPECT_EQ(end.substr(64, 8), bytes("\xC9\x00\x00\xC0\x02\x00\x00\x00"));
  EXPECT_EQ(end.substr(76 + 12), bytes("\xC9\x00\x00\x00\xFF\xFF\xFF\xFF\x00\x00"));
}

}  // namespace
}  // namespace msprobe
