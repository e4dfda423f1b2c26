#include "msprobe/tensor_view.h"

#include <gtest/gtest.h>

#include <vector>

#include "msprobe/error.h"

namespace msprobe {
namespace {

std::int64_t numel_of(const std::vector<std::int64_t>& shape, DType dtype = DType::kUint8) {
  const std::vector<std::int64_t> strides(shape.size(), 0);
  return numel({nullptr, dtype, shape, strides});
}

constexpr std::int64_t kHalfRange = std::int64_t{1} << 62;

TEST(Numel, IsTheProductOfTheShape) {
  EXPECT_EQ(numel_of({}), 1);
  EXPECT_EQ(numel_of({7}), 7);
  EXPECT_EQ(numel_of({2, 3, 5}), 30);
  EXPECT_EQ(numel_of({kHalfRange}), kHalfRange);
}

TEST(Numel, IsZeroBesideDimensionsThatWouldOverflow) { EXPECT_EQ(numel_of({kHalfRange, kHalfRange, 0}), 0); }

TEST(Numel, ThrowsIfTheCountOverflows) {
  EXPECT_THROW(numel_of({kHalfRange, 2}), Error);
  EXPECT_THROW(numel_of({kHalfRange, kHalfRange, kHalfRange}), Error);
}

TEST(Numel, ThrowsIfTheNumberOfValuesOverflows) { EXPECT_THROW(numel_of({kHalfRange}, DType::kFloat4E2m1fnX2), Error); }

TEST(Numel, CountsABroadcastWhoseBytesWouldOverflow) { EXPECT_EQ(numel_of({kHalfRange}, DType::kFloat32), kHalfRange); }

TEST(Numel, NamesShapeAndDtypeInTheError) {
  try {
    numel_of({kHalfRange, 2}, DType::kInt16);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("numel: shape (4611686018427387904, 2) of int16:"), 0U) << error.what();
  }
}

}  // namespace
}  // namespace msprobe
