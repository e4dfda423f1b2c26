#include "tensor/block_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "msprobe/error.h"

namespace msprobe {
namespace {

struct Case {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;  // of the first element
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

using Element = std::string;  // the bytes of one element

std::vector<std::byte> numbered_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((i * 2654435761U) >> 16);
  return bytes;
}

// The elements of `view` in C order by a plain loop over all indexes; broadcast dimensions once if `stored`.
std::vector<Element> naive_elements(const TensorView& view, bool stored) {
  const std::size_t item = dtype_info(view.dtype).item_bytes;
  std::vector<std::int64_t> sizes(view.shape.begin(), view.shape.end());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (stored && view.strides[i] == 0 && sizes[i] > 1) sizes[i] = 1;
  }
  std::vector<Element> elements;
  std::vector<std::int64_t> index(sizes.size(), 0);
  if (std::ranges::find(sizes, 0) != sizes.end()) return elements;
  while (true) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < index.size(); ++i) at += index[i] * view.strides[i];
    const std::byte* element = view.data + at * static_cast<std::int64_t>(item);
    elements.emplace_back(reinterpret_cast<const char*>(element), item);
    std::size_t i = index.size();
    while (i > 0 && ++index[i - 1] == sizes[i - 1]) index[--i] = 0;
    if (i == 0) return elements;
  }
}

std::vector<Element> read_elements(const TensorView& view, ReadOrder order, std::size_t block_bytes) {
  const std::size_t item = dtype_info(view.dtype).item_bytes;
  BlockReader reader(view, order, block_bytes);
  std::vector<Element> elements;
  for (auto block = reader.next(); !block.empty(); block = reader.next()) {
    EXPECT_EQ(block.size() % item, 0U);
    EXPECT_LE(block.size(), std::max(block_bytes, item));
    for (std::size_t at = 0; at < block.size(); at += item) {
      elements.emplace_back(reinterpret_cast<const char*>(block.data() + at), item);
    }
  }
  EXPECT_EQ(static_cast<std::int64_t>(elements.size() * item), reader.total_bytes());
  EXPECT_TRUE(reader.next().empty());
  return elements;
}

class BlockReaderLayouts : public testing::TestWithParam<Case> {
 protected:
  template <class Check>
  void for_each_view(Check check) {
    const Case& c = GetParam();
    for (const DType dtype : {DType::kUint8, DType::kInt16, DType::kFloat32, DType::kFloat64, DType::kComplex128}) {
      const std::size_t item = dtype_info(dtype).item_bytes;
      const std::byte* first = storage_.data() + c.offset * static_cast<std::int64_t>(item);
      check(TensorView{first, dtype, c.shape, c.strides});
    }
  }

  const std::vector<std::byte> storage_ = numbered_bytes(std::size_t{16} * 70000);
  const std::vector<std::size_t> block_sizes_{1, 24, 100, 4096, kBlockBytes};
};

TEST_P(BlockReaderLayouts, LogicalOrderEqualsIndexLoop) {
  for_each_view([&](const TensorView& view) {
    for (const std::size_t block_bytes : block_sizes_) {
      EXPECT_EQ(read_elements(view, ReadOrder::kLogical, block_bytes), naive_elements(view, false)) << block_bytes;
      EXPECT_EQ(BlockReader(view, ReadOrder::kLogical).repeat(), 1);
    }
  });
}

TEST_P(BlockReaderLayouts, StoredOrderReadsBroadcastsOnce) {
  for_each_view([&](const TensorView& view) {
    const std::vector<Element> expected = naive_elements(view, true);
    for (const std::size_t block_bytes : block_sizes_) {
      EXPECT_EQ(read_elements(view, ReadOrder::kStored, block_bytes), expected) << block_bytes;
    }
    const BlockReader reader(view, ReadOrder::kStored);
    EXPECT_EQ(reader.repeat() * static_cast<std::int64_t>(expected.size()), numel(view));
  });
}

TEST_P(BlockReaderLayouts, AnyOrderReadsTheSameElements) {
  for_each_view([&](const TensorView& view) {
    std::vector<Element> expected = naive_elements(view, true);
    std::ranges::sort(expected);
    for (const std::size_t block_bytes : block_sizes_) {
      std::vector<Element> found = read_elements(view, ReadOrder::kAny, block_bytes);
      std::ranges::sort(found);
      EXPECT_EQ(found, expected) << block_bytes;
    }
    const BlockReader reader(view, ReadOrder::kAny);
    EXPECT_EQ(reader.repeat() * static_cast<std::int64_t>(expected.size()), numel(view));
  });
}

TEST_P(BlockReaderLayouts, CopyStoredEqualsIndexLoop) {
  for_each_view([&](const TensorView& view) {
    const std::vector<Element> expected = naive_elements(view, true);
    std::vector<std::byte> copy(expected.size() * dtype_info(view.dtype).item_bytes);
    copy_stored(view, copy);
    std::string joined;
    for (const Element& element : expected) joined += element;
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(copy.data()), copy.size()), joined);
  });
}

TEST_P(BlockReaderLayouts, ARangeIsThatPartOfTheWhole) {
  for_each_view([&](const TensorView& view) {
    const auto item = static_cast<std::int64_t>(dtype_info(view.dtype).item_bytes);
    for (const ReadOrder order : {ReadOrder::kAny, ReadOrder::kStored, ReadOrder::kLogical}) {
      const std::vector<Element> expected = read_elements(view, order, 4096);
      const auto all = static_cast<std::int64_t>(expected.size());
      EXPECT_EQ(read_count(view, order), all);
      for (const std::int64_t length : {std::int64_t{1}, std::int64_t{7}, all / 2 + 1}) {
        // A thousand ranges of a large view are as good as all of them.
        const std::int64_t step = std::max(length, all / 1000);
        for (std::int64_t first = 0; first < all; first += step) {
          const std::int64_t count = std::min(length, all - first);
          BlockReader reader(view, order, {first, length}, 100);
          EXPECT_EQ(reader.total_bytes(), count * item);
          std::string bytes;
          for (auto block = reader.next(); !block.empty(); block = reader.next()) {
            bytes.append(reinterpret_cast<const char*>(block.data()), block.size());
          }
          std::string joined;
          for (std::int64_t i = first; i < first + count; ++i) joined += expected[static_cast<std::size_t>(i)];
          ASSERT_EQ(bytes, joined) << first << " + " << count;
        }
      }
    }
  });
}

TEST_P(BlockReaderLayouts, CopiesFromTheMiddleEqualThoseOfTheWhole) {
  for_each_view([&](const TensorView& view) {
    const std::size_t item = dtype_info(view.dtype).item_bytes;
    const auto all = static_cast<std::size_t>(read_count(view, ReadOrder::kStored));
    std::vector<std::byte> whole(all * item);
    copy_stored(view, whole);
    for (const std::size_t first : {std::size_t{0}, all / 3, all / 2}) {
      const std::size_t count = (all - first) / 2;
      std::vector<std::byte> piece(count * item);
      copy_stored(view, piece, static_cast<std::int64_t>(first));
      EXPECT_TRUE(std::ranges::equal(piece, std::span(whole).subspan(first * item, piece.size()))) << first;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Views, BlockReaderLayouts,
                         testing::Values(Case{"ZeroDim", {}, {}},                              //
                                         Case{"Empty", {3, 0, 2}, {2, 2, 1}},                  //
                                         Case{"OneElement", {1, 1, 1}, {5, 0, 9}},             //
                                         Case{"Contiguous", {5, 7, 3}, {21, 3, 1}},            //
                                         Case{"OddStridesOfSizeOne", {1, 6, 1}, {99, 1, 77}},  //
                                         Case{"Transposed", {7, 5}, {1, 7}},                   //
                                         Case{"TransposedLongRows", {6, 3000}, {1, 6}},        //
                                         Case{"Permuted", {3, 4, 5, 2}, {1, 30, 6, 3}},        //
                                         Case{"Sliced", {6, 10}, {25, 1}, 3},                  //
                                         Case{"SlicedLongRuns", {3, 12000}, {20000, 1}, 5},    //
                                         Case{"EverySecond", {40, 9}, {20, 2}},                //
                                         Case{"Reversed", {50}, {-1}, 60},                     //
                                         Case{"ReversedRows", {5, 8}, {-8, 1}, 40},            //
                                         Case{"ReversedColumns", {5, 8}, {9, -1}, 8},          //
                                         Case{"Expanded", {4, 6}, {0, 1}},                     //
                                         Case{"ExpandedInside", {3, 5, 4}, {4, 0, 1}},         //
                                         Case{"ExpandedLast", {7, 30}, {1, 0}},                //
                                         Case{"ExpandedScalar", {9, 11}, {0, 0}, 4},           //
                                         Case{"OverlappingWindows", {20, 5}, {1, 1}},          //
                                         Case{"OverlappingStrides", {8, 6, 4}, {2, 3, 1}}),    //
                         [](const auto& info) { return info.param.name; });

TEST(BlockReader, HandsDenseRunsOutInPlace) {
  const std::vector<std::byte> storage = numbered_bytes(4 * 20000);
  const std::int64_t shape[] = {100, 200};
  const std::int64_t strides[] = {1, 100};
  BlockReader reader({storage.data(), DType::kFloat32, shape, strides}, ReadOrder::kAny);
  const auto block = reader.next();
  EXPECT_EQ(block.data(), storage.data());
  EXPECT_EQ(block.size(), storage.size());
}

TEST(BlockReader, ReadsReversedMemoryForwardInPlace) {
  const std::vector<std::byte> storage = numbered_bytes(4 * 20000);
  const std::int64_t shape[] = {20000};
  const std::int64_t strides[] = {-1};
  BlockReader reader({storage.data() + 4 * 19999, DType::kFloat32, shape, strides}, ReadOrder::kAny);
  EXPECT_EQ(reader.next().data(), storage.data());
}

TEST(BlockReader, ReadsHugeBroadcastOnceAndWeightsIt) {
  const double value = 3;
  const std::int64_t shape[] = {1 << 30, 1 << 20};
  const std::int64_t strides[] = {0, 0};
  const TensorView view{reinterpret_cast<const std::byte*>(&value), DType::kFloat64, shape, strides};
  BlockReader reader(view, ReadOrder::kAny);
  EXPECT_EQ(reader.repeat(), std::int64_t{1} << 50);
  EXPECT_EQ(reader.total_bytes(), 8);
  EXPECT_EQ(reader.next().size(), 8U);
}

TEST(BlockReader, AppliesSignFlipsToACopy) {
  const std::vector<float> values(5000, 2.5F);
  const std::int64_t shape[] = {5000};
  const std::int64_t strides[] = {1};
  TensorView view{reinterpret_cast<const std::byte*>(values.data()), DType::kFloat32, shape, strides};
  view.negate_real = true;
  for (const ReadOrder order : {ReadOrder::kAny, ReadOrder::kStored, ReadOrder::kLogical}) {
    BlockReader reader(view, order, 4096);
    std::int64_t count = 0;
    for (auto block = reader.next(); !block.empty(); block = reader.next()) {
      for (std::size_t at = 0; at < block.size(); at += sizeof(float), ++count) {
        float value = 0;
        std::memcpy(&value, block.data() + at, sizeof value);
        ASSERT_EQ(value, -2.5F);
      }
    }
    EXPECT_EQ(count, 5000);
  }
  EXPECT_EQ(values.front(), 2.5F);
  std::vector<float> copy(5000);
  copy_stored(view, std::as_writable_bytes(std::span(copy)));
  EXPECT_EQ(copy, std::vector<float>(5000, -2.5F));
}

TEST(BlockReader, ThrowsIfTheSizeOverflowsUnlessItIsBroadcast) {
  const std::int64_t shape[] = {std::int64_t{1} << 62};
  const std::int64_t dense[] = {1};
  const std::int64_t broadcast[] = {0};
  EXPECT_THROW(BlockReader({nullptr, DType::kFloat32, shape, dense}, ReadOrder::kAny), Error);
  EXPECT_THROW(BlockReader({nullptr, DType::kFloat32, shape, broadcast}, ReadOrder::kLogical), Error);
  EXPECT_EQ(BlockReader({nullptr, DType::kFloat32, shape, broadcast}, ReadOrder::kAny).total_bytes(), 4);
}

TEST(StoredStrides, KeepsBroadcastsAndPacksTheRest) {
  const std::int64_t shape[] = {3, 4, 1, 5};
  const std::int64_t strides[] = {40, 0, 0, 2};
  EXPECT_EQ(stored_strides({nullptr, DType::kFloat32, shape, strides}), (std::vector<std::int64_t>{5, 0, 5, 1}));
}

TEST(StoredStrides, OfNoElementsAreThoseOfAContiguousTensor) {
  const std::int64_t shape[] = {2, 0, 3};
  const std::int64_t strides[] = {3, 3, 1};
  EXPECT_EQ(stored_strides({nullptr, DType::kFloat32, shape, strides}), (std::vector<std::int64_t>{3, 3, 1}));
}

}  // namespace
}  // namespace msprobe
