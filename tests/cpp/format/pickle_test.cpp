// Golden bytes are those that torch.save of PyTorch 2.13 wrote, and Python's pickle for integers.

#include "format/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tensor_file_support.h"

namespace msprobe {
namespace {

using test::bytes;
using test::Sizes;

TEST(PickleTensor, IsWhatTorchSavesForFloat32) {
  const std::string expected = bytes(
      "\x80\x02"
      "ctorch._utils\n_rebuild_tensor_v2\n"
      "q\x00"
      "(("
      "X\x07\x00\x00\x00"
      "storage"
      "q\x01"
      "ctorch\nFloatStorage\n"
      "q\x02"
      "X\x01\x00\x00\x00"
      "0"
      "q\x03"
      "X\x03\x00\x00\x00"
      "cpu"
      "q\x04"
      "K\x06"
      "tq\x05"
      "Q"
      "K\x00"
      "K\x02"
      "K\x03"
      "\x86q\x06"
      "K\x03"
      "K\x01"
      "\x86q\x07"
      "\x89"
      "ccollections\nOrderedDict\n"
      "q\x08"
      ")Rq\x09"
      "tq\x0A"
      "Rq\x0B"
      ".");
  EXPECT_EQ(pickle_tensor(DType::kFloat32, Sizes{2, 3}, Sizes{3, 1}, 6), expected);
}

TEST(PickleTensor, IsWhatTorchSavesForUint16) {
  const std::string expected = bytes(
      "\x80\x02"
      "ctorch._utils\n_rebuild_tensor_v3\n"
      "q\x00"
      "(("
      "X\x07\x00\x00\x00"
      "storage"
      "q\x01"
      "ctorch.storage\nUntypedStorage\n"
      "q\x02"
      "X\x01\x00\x00\x00"
      "0"
      "q\x03"
      "X\x03\x00\x00\x00"
      "cpu"
      "q\x04"
      "K\x0C"
      "tq\x05"
      "Q"
      "K\x00"
      "K\x02"
      "K\x03"
      "\x86q\x06"
      "K\x03"
      "K\x01"
      "\x86q\x07"
      "\x89"
      "ccollections\nOrderedDict\n"
      "q\x08"
      ")Rq\x09"
      "ctorch\nuint16\n"
      "q\x0A"
      "tq\x0B"
      "Rq\x0C"
      ".");
  EXPECT_EQ(pickle_tensor(DType::kUint16, Sizes{2, 3}, Sizes{3, 1}, 6), expected);
}

// The part from the offset in the storage to requires_grad.
std::string geometry(const Sizes& shape, const Sizes& strides) {
  const std::string pickle = pickle_tensor(DType::kFloat32, shape, strides, 1);
  const std::size_t begin = pickle.find('Q') + 1;
  return pickle.substr(begin, pickle.find("\x89"
                                          "ccollections") -
                                  begin);
}

TEST(PickleTensor, WritesTuplesOfEveryLength) {
  EXPECT_EQ(geometry({}, {}), bytes("K\x00))"));
  EXPECT_EQ(geometry({1}, {1}), bytes("K\x00"
                                      "K\x01\x85q\x06"
                                      "K\x01\x85q\x07"));
  EXPECT_EQ(geometry({1, 2, 1}, {2, 1, 1}), bytes("K\x00"
                                                  "K\x01K\x02K\x01\x87q\x06"
                                                  "K\x02K\x01K\x01\x87q\x07"));
  EXPECT_EQ(geometry({1, 1, 1, 1}, {1, 1, 1, 1}), bytes("K\x00"
                                                        "(K\x01K\x01K\x01K\x01tq\x06"
                                                        "(K\x01K\x01K\x01K\x01tq\x07"));
}

TEST(PickleTensor, WritesIntegersOfEveryLength) {
  const auto integer = [](std::int64_t value) {
    const std::string text = geometry({value}, {1});
    return text.substr(2, text.find('\x85') - 2);
  };
  EXPECT_EQ(integer(0), bytes("K\x00"));
  EXPECT_EQ(integer(255), bytes("K\xFF"));
  EXPECT_EQ(integer(256), bytes("M\x00\x01"));
  EXPECT_EQ(integer(65535), bytes("M\xFF\xFF"));
  EXPECT_EQ(integer(65536), bytes("J\x00\x00\x01\x00"));
  EXPECT_EQ(integer(2147483647), bytes("J\xFF\xFF\xFF\x7F"));
  EXPECT_EQ(integer(2147483648), bytes("\x8A\x05\x00\x00\x00\x80\x00"));
  EXPECT_EQ(integer(549755813887), bytes("\x8A\x05\xFF\xFF\xFF\xFF\x7F"));
  EXPECT_EQ(integer(9223372036854775807), bytes("\x8A\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F"));
}

TEST(PickleTensor, NamesTheStorageOrTheDtype) {
  const std::vector<std::pair<DType, std::string>> cases = {
      {DType::kBool, "torch\nBoolStorage\n"},
      {DType::kUint8, "torch\nByteStorage\n"},
      {DType::kInt8, "torch\nCharStorage\n"},
      {DType::kInt16, "torch\nShortStorage\n"},
      {DType::kInt32, "torch\nIntStorage\n"},
      {DType::kInt64, "torch\nLongStorage\n"},
      {DType::kFloat16, "torch\nHalfStorage\n"},
      {DType::kBfloat16, "torch\nBFloat16Storage\n"},
      {DType::kFloat32, "torch\nFloatStorage\n"},
      {DType::kFloat64, "torch\nDoubleStorage\n"},
      {DType::kComplex64, "torch\nComplexFloatStorage\n"},
      {DType::kComplex128, "torch\nComplexDoubleStorage\n"},
      {DType::kUint16, "torch\nuint16\n"},
      {DType::kUint32, "torch\nuint32\n"},
      {DType::kUint64, "torch\nuint64\n"},
      {DType::kComplex32, "torch\ncomplex32\n"},
      {DType::kFloat8E4m3fn, "torch\nfloat8_e4m3fn\n"},
      {DType::kFloat8E5m2, "torch\nfloat8_e5m2\n"},
      {DType::kFloat8E4m3fnuz, "torch\nfloat8_e4m3fnuz\n"},
      {DType::kFloat8E5m2fnuz, "torch\nfloat8_e5m2fnuz\n"},
      {DType::kFloat8E8m0fnu, "torch\nfloat8_e8m0fnu\n"},
      {DType::kFloat4E2m1fnX2, "torch\nfloat4_e2m1fn_x2\n"},
  };
  ASSERT_EQ(cases.size(), kDTypeCount);
  for (const auto& [dtype, global] : cases) {
    EXPECT_THAT(pickle_tensor(dtype, Sizes{1}, Sizes{1}, 1), testing::HasSubstr("c" + global));
  }
}

}  // namespace
}  // namespace msprobe
