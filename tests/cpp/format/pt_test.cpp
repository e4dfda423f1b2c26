// The archive is read here by a reader of its own, written after PKWARE APPNOTE 6.3.10.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "format/pickle.h"
#include "format/write_buffer.h"
#include "tensor_file_support.h"

namespace msprobe {
namespace {

using test::memory_of;
using test::pattern;
using test::Sizes;
using testing::ElementsAre;

std::string pt(DType dtype, const Sizes& shape, const Sizes& strides, std::string_view data,
               std::size_t block_bytes = 1U << 18U) {
  return test::written([&](NewFile& file) { return make_pt_writer(file, dtype, shape, strides); }, data, block_bytes);
}

std::uint64_t number(std::string_view bytes, std::size_t offset, std::size_t length) {
  std::uint64_t value = 0;
  for (std::size_t i = length; i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes.at(offset + i));
  return value;
}

// Bit by bit, after the definition.
std::uint32_t crc32_of(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

struct Entry {
  std::string name;
  std::string data;
  std::uint64_t data_offset;
};

// Reads an archive from its end, and checks that all that is said twice agrees.
std::vector<Entry> read_zip(const std::string& file) {
  constexpr std::size_t kEndBytes = 22;
  const std::size_t end = file.size() - kEndBytes;
  EXPECT_EQ(number(file, end, 4), 0x06054B50U);
  const std::uint64_t count = number(file, end + 10, 2);
  const std::uint64_t directory_bytes = number(file, end + 12, 4);
  std::uint64_t at = number(file, end + 16, 4);
  const std::uint64_t end64 = at + directory_bytes;
  EXPECT_EQ(number(file, end64, 4), 0x06064B50U);
  EXPECT_EQ(number(file, end64 + 32, 8), count);
  EXPECT_EQ(number(file, end64 + 40, 8), directory_bytes);
  EXPECT_EQ(number(file, end64 + 48, 8), at);
  EXPECT_EQ(number(file, end64 + 56, 4), 0x07064B50U);
  EXPECT_EQ(number(file, end64 + 64, 8), end64);
  EXPECT_EQ(end64 + 76, end);

  std::vector<Entry> entries;
  for (std::uint64_t i = 0; i < count; ++i) {
    EXPECT_EQ(number(file, at, 4), 0x02014B50U);
    const std::uint64_t size = number(file, at + 24, 4);
    const std::uint64_t name_bytes = number(file, at + 28, 2);
    const std::uint64_t local = number(file, at + 42, 4);
    const std::string name = file.substr(at + 46, name_bytes);
    EXPECT_EQ(number(file, local, 4), 0x04034B50U);
    // Version, flags, method, time, date, CRC-32, sizes and length of the name stand in both headers.
    EXPECT_EQ(file.substr(local + 4, 24), file.substr(at + 6, 24));
    EXPECT_EQ(file.substr(local + 30, name_bytes), name);
    const std::uint64_t data_offset = local + 30 + name_bytes + number(file, local + 28, 2);
    const std::string data = file.substr(data_offset, size);
    EXPECT_EQ(crc32_of(data), number(file, at + 16, 4)) << name;
    entries.push_back({name, data, data_offset});
    at += 46 + name_bytes + number(file, at + 30, 2);
  }
  EXPECT_EQ(at, end64);
  return entries;
}

std::map<std::string, std::string> contents(const std::string& file) {
  std::map<std::string, std::string> by_name;
  for (const Entry& entry : read_zip(file)) by_name[entry.name] = entry.data;
  return by_name;
}

TEST(PtWriter, HoldsTheRecordsOfTorchSave) {
  const std::string data = memory_of<float>({0, 1, 2, 3, 4, 5});
  const std::string file = pt(DType::kFloat32, {2, 3}, {3, 1}, data);
  const std::vector<Entry> entries = read_zip(file);
  std::vector<std::string> names;
  for (const Entry& entry : entries) {
    names.push_back(entry.name);
    EXPECT_EQ(entry.data_offset % 64, 0U) << entry.name;
  }
  EXPECT_THAT(names,
              ElementsAre("archive/data.pkl", "archive/.format_version", "archive/.storage_alignment",
                          "archive/byteorder", "archive/data/0", "archive/version", "archive/.data/serialization_id"));
  EXPECT_EQ(entries[0].data, pickle_tensor(DType::kFloat32, Sizes{2, 3}, Sizes{3, 1}, 6));
  EXPECT_EQ(entries[1].data, "1");
  EXPECT_EQ(entries[2].data, "64");
  EXPECT_EQ(entries[3].data, "little");
  EXPECT_EQ(entries[4].data, data);
  EXPECT_EQ(entries[5].data, "3\n");
  EXPECT_EQ(entries[6].data.size(), 40U);
  EXPECT_EQ(entries[6].data.find_first_not_of("0123456789"), std::string::npos);
}

TEST(PtWriter, SerializationIdNamesSizeAndChecksums) {
  const auto records = contents(pt(DType::kUint8, {3}, {1}, "abc"));
  // CRC-32 of "abc": 0x352441C2, as published with zlib.
  const std::uint64_t checksums = std::uint64_t{crc32_of(records.at("archive/data.pkl"))} << 32U | 0x352441C2U;
  const std::string digits = std::to_string(checksums);
  EXPECT_EQ(records.at("archive/.data/serialization_id"),
            "00000000000000000003" + std::string(20 - digits.size(), '0') + digits);
}

TEST(PtWriter, EqualTensorsGiveEqualFiles) {
  const std::string data = pattern(200'000);
  EXPECT_EQ(pt(DType::kUint8, {200'000}, {1}, data, 1000), pt(DType::kUint8, {200'000}, {1}, data, 150'000));
}

TEST(PtWriter, PatchesTheChecksumWhateverIsFlushed) {
  // All in one write; flushed by the data; data passed through past the buffer.
  for (const std::size_t size : {std::size_t{10}, WriteBuffer::kCapacityBytes - 300, WriteBuffer::kCapacityBytes + 1,
                                 3 * WriteBuffer::kCapacityBytes}) {
    const std::string data = pattern(size);
    const Sizes shape = {static_cast<std::int64_t>(size)};
    for (const std::size_t block : {std::size_t{5000}, size}) {
      EXPECT_EQ(contents(pt(DType::kUint8, shape, {1}, data, block)).at("archive/data/0"), data)
          << size << " " << block;
    }
  }
}

TEST(PtWriter, StoresABroadcastDimensionOnce) {
  const std::string data = memory_of<std::int16_t>({1, 2, 3});
  const auto records = contents(pt(DType::kInt16, {5, 3}, {0, 1}, data));
  EXPECT_EQ(records.at("archive/data/0"), data);
  EXPECT_EQ(records.at("archive/data.pkl"), pickle_tensor(DType::kInt16, Sizes{5, 3}, Sizes{0, 1}, 3));
}

TEST(PtWriter, HandlesScalarAndEmptyTensors) {
  const auto scalar = contents(pt(DType::kFloat64, {}, {}, memory_of<double>({1.5})));
  EXPECT_EQ(scalar.at("archive/data/0"), memory_of<double>({1.5}));
  const auto empty = contents(pt(DType::kFloat64, {2, 0, 3}, {3, 3, 1}, ""));
  EXPECT_EQ(empty.at("archive/data/0"), "");
  EXPECT_EQ(empty.at("archive/data.pkl"), pickle_tensor(DType::kFloat64, Sizes{2, 0, 3}, Sizes{3, 3, 1}, 0));
}

TEST(PtWriter, RefusesToFinishWithMissingData) {
  const test::ScratchFolder scratch;
  NewFile file(scratch.open());
  const Sizes shape = {4};
  const Sizes strides = {1};
  const auto writer = make_pt_writer(file, DType::kUint8, shape, strides);
  writer->write(test::bytes_of("abc"));
  EXPECT_THROW(writer->finish(0), StateError);
}

TEST(PtWriter, ReportsFullDisk) {
  const test::ScratchFolder scratch;
  NewFile file(scratch.open());
  const Sizes shape = {1'000'000};
  const Sizes strides = {1};
  const auto writer = make_pt_writer(file, DType::kUint8, shape, strides);
  const test::FileSizeLimit limit(100'000);
  const std::string data = pattern(1'000'000);
  EXPECT_EQ(test::error_of([&] { writer->write(test::bytes_of(data)); }), EFBIG);
}

}  // namespace
}  // namespace msprobe
