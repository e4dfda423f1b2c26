// Every pair of dtypes on every vector instruction set of this CPU, against the oracle.

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <algorithm>
#include <random>
#include <string>

#include "../statistics/oracle.h"
#include "pair_oracle.h"

namespace msprobe {
namespace {

using testing_oracle::errors_of;
using testing_oracle::expect_pair_errors;
using testing_oracle::random_elements;
using testing_oracle::Side;

class PairTargets : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    ASSERT_EQ(pair_kernels().target, GetParam()) << hwy::TargetName(pair_kernels().target);
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

constexpr Tolerance kTolerance{.rtol = 0.25, .atol = 1e-6};

// `count` values (even) of random bits.
std::vector<std::byte> random_values(DType dtype, std::size_t count, std::uint64_t seed, bool any_bits) {
  return random_elements(dtype, count / dtype_info(dtype).values_per_item, seed, any_bits);
}

// The bytes from an address that is no multiple of anything.
class Misaligned {
 public:
  Misaligned(DType dtype, const std::vector<std::byte>& bytes, std::size_t shift)
      : dtype_(dtype), shift_(shift), storage_(bytes.size() + shift) {
    std::ranges::copy(bytes, storage_.begin() + static_cast<std::ptrdiff_t>(shift));
  }
  [[nodiscard]] Side side() const { return {dtype_, std::span(storage_).subspan(shift_)}; }

 private:
  DType dtype_;
  std::size_t shift_;
  std::vector<std::byte> storage_;
};

void expect_oracle(DType golden, const std::vector<std::byte>& golden_bytes, DType target,
                   const std::vector<std::byte>& target_bytes) {
  const Misaligned g(golden, golden_bytes, 1);
  const Misaligned t(target, target_bytes, 3);
  expect_pair_errors(g.side(), t.side(), kTolerance, errors_of(g.side(), t.side(), kTolerance));
}

template <class Check>
void for_each_dtype(Check check) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) check(static_cast<DType>(i));
}

TEST_P(PairTargets, FiniteValuesOfAllDtypePairsEqualOracle) {
  for_each_dtype([](DType golden) {
    for_each_dtype([&](DType target) {
      for (const std::size_t count : {2, 6, 14, 34, 130}) {
        expect_oracle(golden, random_values(golden, count, count, false), target,
                      random_values(target, count, 2 * count + 1, false));
      }
    });
  });
}

TEST_P(PairTargets, AnyBitPatternsOfAllDtypePairsEqualOracle) {
  for_each_dtype([](DType golden) {
    for_each_dtype([&](DType target) {
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        const std::size_t count = 2 + 2 * (seed * 7 % 20);
        expect_oracle(golden, random_values(golden, count, seed, true), target,
                      random_values(target, count, seed + 100, true));
      }
    });
  });
}

TEST_P(PairTargets, NearlyEqualElementsEqualOracle) {
  for_each_dtype([](DType dtype) {
    for (const std::size_t count : {2, 62, 66, 5000}) {
      for (const bool any_bits : {false, true}) {
        const std::vector<std::byte> golden = random_values(dtype, count, count, any_bits);
        std::vector<std::byte> target = golden;
        std::mt19937 random(static_cast<unsigned>(count));
        // Low bits of the first byte of some elements.
        for (std::size_t i = 0; i < target.size(); i += dtype_info(dtype).item_bytes) {
          if (random() % 2 == 0) target[i] ^= static_cast<std::byte>(random() % 4);
        }
        expect_oracle(dtype, golden, dtype, target);
      }
    }
  });
}

TEST_P(PairTargets, AllPairsOfCodesOfAFormatEqualOracle) {
  for (const DType dtype : {DType::kFloat8E4m3fn, DType::kFloat8E5m2, DType::kFloat8E4m3fnuz, DType::kFloat8E5m2fnuz,
                            DType::kFloat8E8m0fnu, DType::kFloat4E2m1fnX2}) {
    std::vector<std::byte> golden;
    std::vector<std::byte> target;
    for (unsigned pair = 0; pair < 65536; ++pair) {
      golden.push_back(static_cast<std::byte>(pair & 0xFFU));
      target.push_back(static_cast<std::byte>(pair >> 8U));
    }
    expect_oracle(dtype, golden, dtype, target);
    // One by one too: the sums over all hide nothing there.
    for (unsigned pair = 0; pair < 65536; pair += 37) {
      expect_oracle(dtype, {golden[pair]}, dtype, {target[pair]});
    }
  }
}

TEST_P(PairTargets, EveryHalfRoundsToEveryNarrowerFormatAsTheOracle) {
  std::vector<std::byte> halves;
  for (unsigned code = 0; code < 65536; ++code) {
    halves.push_back(static_cast<std::byte>(code & 0xFFU));
    halves.push_back(static_cast<std::byte>(code >> 8U));
  }
  for (const DType half : {DType::kFloat16, DType::kBfloat16}) {
    for_each_dtype([&](DType narrow) {
      if (dtype_info(narrow).kind != DTypeKind::kFloat) return;
      for (const std::size_t length : {3, 64}) {
        const std::size_t step = length * 2 * 331;
        for (std::size_t first = 0; first + length * 2 * 2 <= halves.size(); first += step) {
          const std::vector<std::byte> some(halves.begin() + static_cast<std::ptrdiff_t>(first),
                                            halves.begin() + static_cast<std::ptrdiff_t>(first + length * 2 * 2));
          expect_oracle(half, some, narrow, random_values(narrow, 2 * length, first, true));
        }
      }
    });
  }
}

// float64 values at and beside the points half way between two neighbours of a format.
TEST_P(PairTargets, TiesOfFloat64RoundAsTheOracle) {
  for (const DType narrow : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat8E4m3fn,
                             DType::kFloat8E5m2, DType::kFloat8E8m0fnu}) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const std::vector<std::byte> target = random_values(narrow, 2, seed, false);
      const std::vector<long double> values = testing_oracle::decode(narrow, target);
      const auto middle = static_cast<double>((values[0] + values[1]) / 2);
      std::vector<double> golden{middle, std::nextafter(middle, 1e300)};
      for (int bits = 1; bits < 12; ++bits) {  // ties of ever more mantissa bits
        golden[0] = std::ldexp(std::trunc(std::ldexp(1 + std::abs(middle), bits)) + 0.5, -bits);
        golden[1] = std::nextafter(golden[0], bits % 2 == 0 ? 0 : 1e300);
        expect_oracle(DType::kFloat64,
                      {std::as_bytes(std::span(golden)).begin(), std::as_bytes(std::span(golden)).end()}, narrow,
                      target);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, PairTargets, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

}  // namespace
}  // namespace msprobe
