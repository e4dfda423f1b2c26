#include "tensor/strided_cursor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace msprobe {
namespace {

struct Case {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

const std::vector<Case> kCases = {{{}, {}},
                                  {{7}, {3}},
                                  {{5, 6}, {6, 1}},
                                  {{5, 6}, {1, 5}},
                                  {{4, 6}, {0, 1}},
                                  {{3, 4, 5}, {1, 15, 3}},
                                  {{2, 3, 2, 4}, {40, 9, 20, 2}},
                                  {{3, 1, 4}, {4, 7, 0}}};

class StridedCursorTest : public testing::Test {
 protected:
  StridedCursorTest() { std::iota(storage_.begin(), storage_.end(), 0); }

  Layout layout(const Case& c) const {
    const TensorView view{reinterpret_cast<const std::byte*>(storage_.data()), DType::kInt32, c.shape, c.strides};
    return make_layout(view, ReadOrder::kLogical);
  }
  std::vector<std::int32_t> filled(StridedCursor cursor) const {
    std::vector<std::int32_t> out(static_cast<std::size_t>(cursor.remaining()));
    cursor.fill(std::as_writable_bytes(std::span(out)));
    return out;
  }

  std::vector<std::int32_t> storage_ = std::vector<std::int32_t>(500);
};

TEST_F(StridedCursorTest, SeekEqualsReadingUpToThere) {
  for (const Case& c : kCases) {
    const std::vector<std::int32_t> all = filled(StridedCursor(layout(c)));
    StridedCursor cursor(layout(c));
    for (std::size_t from = all.size() + 1; from-- > 0;) {
      cursor.seek(static_cast<std::int64_t>(from), static_cast<std::int64_t>(all.size() - from));
      EXPECT_EQ(cursor.remaining(), static_cast<std::int64_t>(all.size() - from));
      EXPECT_EQ(filled(cursor), std::vector<std::int32_t>(all.begin() + static_cast<std::ptrdiff_t>(from), all.end()));
    }
  }
}

TEST_F(StridedCursorTest, EndsAfterTheCountThatItSeeks) {
  for (const Case& c : kCases) {
    const std::vector<std::int32_t> all = filled(StridedCursor(layout(c)));
    StridedCursor cursor(layout(c));
    for (std::size_t count = 0; count <= all.size(); ++count) {
      cursor.seek(0, static_cast<std::int64_t>(count));
      EXPECT_EQ(filled(cursor),
                std::vector<std::int32_t>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)));
    }
  }
}

TEST_F(StridedCursorTest, RectanglesCoverTheElementsInOrder) {
  for (const Case& c : kCases) {
    const std::vector<std::int32_t> all = filled(StridedCursor(layout(c)));
    for (const std::int64_t most : {1, 2, 5, 7, 1000}) {
      StridedCursor cursor(layout(c));
      std::vector<std::int32_t> found;
      while (cursor.remaining() > 0) {
        const Rectangle part = cursor.take_rectangle(most);
        EXPECT_LE(part.rows.size * part.columns.size, most);
        for (std::int64_t row = 0; row < part.rows.size; ++row) {
          for (std::int64_t column = 0; column < part.columns.size; ++column) {
            const std::int64_t at =
                part.offset_bytes + row * part.rows.stride_bytes + column * part.columns.stride_bytes;
            found.push_back(storage_.at(static_cast<std::size_t>(at) / sizeof(std::int32_t)));
          }
        }
      }
      EXPECT_EQ(found, all);
    }
  }
}

}  // namespace
}  // namespace msprobe
