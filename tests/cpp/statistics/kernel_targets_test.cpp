// Every dtype on every vector instruction set of this CPU, over lengths around the numbers of lanes.

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <algorithm>
#include <string>

#include "oracle.h"
#include "statistics/kernels.h"

namespace msprobe {
namespace {

using testing_oracle::decode;
using testing_oracle::expect_statistics;
using testing_oracle::random_elements;

class KernelTargets : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    ASSERT_EQ(kernels().target, GetParam()) << hwy::TargetName(kernels().target);
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  template <class Check>
  static void for_each_dtype(Check check) {
    for (std::size_t i = 0; i < kDTypeCount; ++i) check(static_cast<DType>(i));
  }

  // Statistics of `bytes` read from an address `shift` bytes after an aligned one.
  static Statistics at_misaligned_address(DType dtype, std::span<const std::byte> bytes, std::size_t shift) {
    std::vector<std::byte> storage(bytes.size() + shift + 1);
    std::ranges::copy(bytes, storage.begin() + static_cast<std::ptrdiff_t>(shift));
    StatisticsAccumulator accumulator(dtype);
    accumulator.add({storage.data() + shift, bytes.size()});
    return accumulator.result();
  }
};

constexpr std::size_t kLengths[] = {0,  1,  2,  3,  5,  7,   8,   9,   15,  16,  17,  18,   31,    33,    34,
                                    63, 64, 65, 66, 67, 127, 129, 255, 257, 258, 513, 1025, 16383, 16385, 40000};

TEST_P(KernelTargets, FiniteValuesOfEveryLengthEqualOracle) {
  for_each_dtype([](DType dtype) {
    for (const std::size_t length : kLengths) {
      const std::vector<std::byte> bytes = random_elements(dtype, length, 17 + length, false);
      const std::vector<long double> values = decode(dtype, bytes);
      for (const std::size_t shift : {0, 1, 3})
        expect_statistics(dtype, at_misaligned_address(dtype, bytes, shift), values);
    }
  });
}

TEST_P(KernelTargets, AnyBitPatternsEqualOracle) {
  for_each_dtype([](DType dtype) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const std::size_t length = 1 + seed % 20;
      const std::vector<std::byte> bytes = random_elements(dtype, length, seed, true);
      expect_statistics(dtype, at_misaligned_address(dtype, bytes, 1), decode(dtype, bytes));
    }
  });
}

TEST_P(KernelTargets, EachCodeOfSmallDtypesAloneEqualsOracle) {
  for_each_dtype([](DType dtype) {
    if (dtype_info(dtype).item_bytes > 2) return;
    const unsigned codes = dtype_info(dtype).item_bytes == 1 ? 256 : 65536;
    for (unsigned code = 0; code < codes; code += codes == 256 ? 1 : 7) {
      const auto bytes = std::as_bytes(std::span(&code, 1)).first(dtype_info(dtype).item_bytes);
      expect_statistics(dtype, at_misaligned_address(dtype, bytes, 0), decode(dtype, bytes));
    }
  });
}

TEST_P(KernelTargets, OneSpecialValueAtAnyPlaceIsSeen) {
  for (const double special : {double{NAN}, double{INFINITY}, -double{INFINITY}, 1e9, -1e9}) {
    for (const std::size_t length : {1, 9, 63, 64, 70, 200}) {
      for (std::size_t place = 0; place < length; ++place) {
        std::vector<float> floats(length, 0.5F);
        std::vector<double> doubles(length, 0.5);
        floats[place] = static_cast<float>(special);
        doubles[place] = special;
        const auto float_bytes = std::as_bytes(std::span(floats));
        const auto double_bytes = std::as_bytes(std::span(doubles));
        expect_statistics(DType::kFloat32, at_misaligned_address(DType::kFloat32, float_bytes, 0),
                          decode(DType::kFloat32, float_bytes));
        expect_statistics(DType::kFloat64, at_misaligned_address(DType::kFloat64, double_bytes, 0),
                          decode(DType::kFloat64, double_bytes));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, KernelTargets, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

}  // namespace
}  // namespace msprobe
