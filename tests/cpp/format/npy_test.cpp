// Golden bytes are written by hand after numpy.lib.format, versions 1.0 and 2.0.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "format/write_buffer.h"
#include "tensor_file_support.h"

namespace msprobe {
namespace {

using test::memory_of;
using test::pattern;
using test::Sizes;
using testing::StartsWith;

std::string npy(DType dtype, const Sizes& shape, std::string_view data, std::size_t block_bytes = 1U << 18U) {
  return test::written([&](NewFile& file) { return make_npy_writer(file, dtype, shape); }, data, block_bytes);
}

// The text of the header, without its padding.
std::string dictionary(const std::string& file) {
  const std::size_t length =
      static_cast<unsigned char>(file[8]) + 256 * static_cast<std::size_t>(static_cast<unsigned char>(file[9]));
  const std::string header = file.substr(10, length);
  return header.substr(0, header.find_last_not_of(" \n") + 1);
}

template <class Value>
std::vector<Value> data_of(const std::string& file) {
  const std::size_t begin = file.find('\n') + 1;
  std::vector<Value> values((file.size() - begin) / sizeof(Value));
  std::memcpy(values.data(), file.data() + begin, values.size() * sizeof(Value));
  return values;
}

TEST(NpyWriter, WritesGoldenBytes) {
  std::string expected("\x93NUMPY\x01\x00\x76\x00", 10);  // 0x76: 128 - 10 bytes of header
  expected += "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";
  expected += std::string(128 - 1 - expected.size(), ' ') + '\n';
  expected += std::string("\x00\x00\x80\x3F\x00\x00\x00\xC0", 8);  // 1, -2
  EXPECT_EQ(npy(DType::kFloat32, {2, 1}, memory_of<float>({1, -2})), expected);
}

TEST(NpyWriter, SpellsShapesAsPythonTuples) {
  EXPECT_THAT(dictionary(npy(DType::kInt8, {}, "a")), testing::EndsWith("'shape': (), }"));
  EXPECT_THAT(dictionary(npy(DType::kInt8, {1}, "a")), testing::EndsWith("'shape': (1,), }"));
  EXPECT_THAT(dictionary(npy(DType::kInt8, {2, 0, 3}, "")), testing::EndsWith("'shape': (2, 0, 3), }"));
}

TEST(NpyWriter, SpellsDtypesAsNumpyDoes) {
  const std::vector<std::pair<DType, std::string>> cases = {
      {DType::kBool, "|b1"},           {DType::kInt8, "|i1"},          {DType::kUint8, "|u1"},
      {DType::kInt16, "<i2"},          {DType::kUint16, "<u2"},        {DType::kInt32, "<i4"},
      {DType::kUint32, "<u4"},         {DType::kInt64, "<i8"},         {DType::kUint64, "<u8"},
      {DType::kFloat16, "<f2"},        {DType::kFloat32, "<f4"},       {DType::kFloat64, "<f8"},
      {DType::kComplex64, "<c8"},      {DType::kComplex128, "<c16"},   {DType::kBfloat16, "<f4"},
      {DType::kFloat8E4m3fn, "<f4"},   {DType::kFloat8E5m2, "<f4"},    {DType::kFloat8E4m3fnuz, "<f4"},
      {DType::kFloat8E5m2fnuz, "<f4"}, {DType::kFloat8E8m0fnu, "<f4"}, {DType::kFloat4E2m1fnX2, "<f4"},
      {DType::kComplex32, "<c8"},
  };
  ASSERT_EQ(cases.size(), kDTypeCount);
  for (const auto& [dtype, descr] : cases) {
    EXPECT_THAT(dictionary(npy(dtype, {0}, "")), StartsWith("{'descr': '" + descr + "', 'fortran_order': False"));
  }
}

TEST(NpyWriter, PadsHeaderTo64BytesForEveryLengthOfShape) {
  Sizes shape;
  for (int dims = 0; dims < 70; ++dims, shape.push_back(1)) {
    const std::string file = npy(DType::kInt8, shape, "x");
    EXPECT_EQ((file.size() - 1) % 64, 0U) << dims;
    EXPECT_EQ(file[file.size() - 2], '\n') << dims;
  }
}

TEST(NpyWriter, UsesVersion2ForHeadersOver65535Bytes) {
  const Sizes shape(30'000, 1);  // 90,000 characters
  const std::string file = npy(DType::kInt8, shape, "x");
  ASSERT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x02\x00", 8));
  std::uint32_t length = 0;
  std::memcpy(&length, file.data() + 8, sizeof length);
  EXPECT_EQ((12 + length) % 64, 0U);
  EXPECT_EQ(file.size(), 12 + length + 1);
  EXPECT_EQ(file[12 + length - 1], '\n');
}

TEST(NpyWriter, PassesBlocksOfEverySizeThrough) {
  const std::string data = pattern(3 * WriteBuffer::kCapacityBytes + 17);
  const Sizes shape = {static_cast<std::int64_t>(data.size())};
  for (const std::size_t block : {std::size_t{1000}, WriteBuffer::kCapacityBytes, data.size()}) {
    const std::string file = npy(DType::kUint8, shape, data, block);
    EXPECT_EQ(file.substr(file.find('\n') + 1), data) << block;
  }
}

TEST(NpyWriter, WidensBfloat16) {
  const std::string file =
      npy(DType::kBfloat16, {4}, memory_of<std::uint16_t>({0x3F80, 0xC049, 0x0001, 0xFF80}));  // 1, -3.140625, ...
  EXPECT_THAT(data_of<float>(file),
              testing::ElementsAre(1.0F, -3.140625F, 0x1p-133F, -std::numeric_limits<float>::infinity()));
}

TEST(NpyWriter, KeepsEveryBitOfBfloat16) {
  std::vector<std::uint16_t> codes(65536);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  const auto bits = data_of<std::uint32_t>(npy(DType::kBfloat16, {65536}, memory_of(codes), 50'000));
  ASSERT_EQ(bits.size(), codes.size());
  for (std::size_t i = 0; i < bits.size(); ++i) ASSERT_EQ(bits[i], i << 16U);
}

TEST(NpyWriter, WidensFloat8) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(data_of<float>(npy(DType::kFloat8E4m3fn, {4}, std::string("\x38\x01\x7E\x80", 4))),
              testing::ElementsAre(1.0F, 0x1p-9F, 448.0F, -0.0F));
  EXPECT_THAT(data_of<float>(npy(DType::kFloat8E5m2, {3}, "\x3C\x7B\xFC")),
              testing::ElementsAre(1.0F, 57344.0F, -infinity));
  EXPECT_THAT(data_of<float>(npy(DType::kFloat8E4m3fnuz, {2}, "\x40\x7F")), testing::ElementsAre(1.0F, 240.0F));
  EXPECT_THAT(data_of<float>(npy(DType::kFloat8E5m2fnuz, {2}, "\x40\x7F")), testing::ElementsAre(1.0F, 57344.0F));
  EXPECT_THAT(data_of<float>(npy(DType::kFloat8E8m0fnu, {2}, "\x7F\x80")), testing::ElementsAre(1.0F, 2.0F));
  EXPECT_TRUE(std::isnan(data_of<float>(npy(DType::kFloat8E4m3fn, {1}, "\x7F"))[0]));
}

TEST(NpyWriter, UnpacksFloat4LowNibbleFirst) {
  const std::string file = npy(DType::kFloat4E2m1fnX2, {2, 1}, "\x21\xF7");
  EXPECT_THAT(dictionary(file), testing::HasSubstr("'shape': (2, 2)"));
  EXPECT_THAT(data_of<float>(file), testing::ElementsAre(0.5F, 1.0F, 6.0F, -6.0F));
}

TEST(NpyWriter, GivesScalarFloat4OneDimension) {
  const std::string file = npy(DType::kFloat4E2m1fnX2, {}, "\x42");
  EXPECT_THAT(dictionary(file), testing::HasSubstr("'shape': (2,)"));
  EXPECT_THAT(data_of<float>(file), testing::ElementsAre(1.0F, 2.0F));
}

// The value of a float16 after IEEE 754, by arithmetic.
double half_value(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 10U & 0x1FU);
  const double mantissa = bits & 0x3FFU;
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == 0x1F) return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

TEST(NpyWriter, WidensEveryPartOfComplex32) {
  std::vector<std::uint16_t> parts(65536);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = static_cast<std::uint16_t>(i);
  const std::string file = npy(DType::kComplex32, {32768}, memory_of(parts), 40'000);
  EXPECT_THAT(dictionary(file), testing::HasSubstr("'shape': (32768,)"));
  const auto values = data_of<float>(file);
  ASSERT_EQ(values.size(), parts.size());
  for (unsigned i = 0; i < values.size(); ++i) {
    const double expected = half_value(i);
    ASSERT_TRUE(std::isnan(expected) ? std::isnan(values[i]) : values[i] == expected) << i;
    ASSERT_EQ(std::signbit(values[i]), i >= 0x8000U) << i;
  }
}

TEST(NpyWriter, ReportsFullDisk) {
  const test::ScratchFolder scratch;
  NewFile file(scratch.open());
  const Sizes shape = {1'000'000};
  const auto writer = make_npy_writer(file, DType::kUint8, shape);
  const test::FileSizeLimit limit(100'000);
  const std::string data = pattern(1'000'000);
  EXPECT_EQ(test::error_of([&] { writer->write(test::bytes_of(data)); }), EFBIG);
}

}  // namespace
}  // namespace msprobe
