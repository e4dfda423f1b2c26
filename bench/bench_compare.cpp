// The errors between two tensors by dtype, beside a plain read of the same bytes (both sides) in the same run.

#include <benchmark/benchmark.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "compare/pair_errors.h"

namespace {

using namespace msprobe;  // NOLINT(google-build-using-namespace): a program, not a header

// Finite in every dtype, and all signs and some magnitudes: exponents in the middle.
std::vector<std::byte> make_bytes(std::int64_t size, unsigned seed) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> byte(0x20, 0x3F);
  for (std::byte& b : bytes) b = static_cast<std::byte>(byte(random));
  return bytes;
}

// The same with other low bits in every second item.
std::vector<std::byte> nearly(std::vector<std::byte> bytes, std::size_t item_bytes) {
  std::mt19937 random(7);
  for (std::size_t i = 0; i < bytes.size(); i += item_bytes) bytes[i] ^= static_cast<std::byte>(random() % 8);
  return bytes;
}

void plain_read(benchmark::State& state) {
  const auto golden = make_bytes(state.range(0), 1);
  const auto target = make_bytes(state.range(0), 2);
  for (auto _ : state) {
    std::array<std::uint64_t, 16> sums{};
    for (std::size_t i = 0; i + sizeof sums <= golden.size(); i += sizeof sums) {
      std::array<std::uint64_t, 16> g;
      std::array<std::uint64_t, 16> t;
      std::memcpy(g.data(), &golden[i], sizeof g);
      std::memcpy(t.data(), &target[i], sizeof t);
      for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += g[k] + t[k];
    }
    benchmark::DoNotOptimize(sums);
  }
  state.SetBytesProcessed(2 * state.iterations() * state.range(0));
}

void pair_errors(benchmark::State& state, DType dtype) {
  const auto golden = make_bytes(state.range(0), 1);
  const auto target = nearly(golden, dtype_info(dtype).item_bytes);
  for (auto _ : state) {
    PairAccumulator accumulator(dtype, dtype, {.rtol = 1e-3, .atol = 1e-6});
    accumulator.add(golden, target);
    benchmark::DoNotOptimize(accumulator.result());
  }
  state.SetBytesProcessed(2 * state.iterations() * state.range(0));
}

void equal_pairs(benchmark::State& state, DType dtype) {
  const auto bytes = make_bytes(state.range(0), 1);
  for (auto _ : state) {
    PairAccumulator accumulator(dtype, dtype, {});
    accumulator.add_equal(bytes);
    benchmark::DoNotOptimize(accumulator.result());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

constexpr std::array kDTypes{DType::kFloat32,      DType::kFloat64, DType::kFloat16, DType::kBfloat16,
                             DType::kFloat8E4m3fn, DType::kInt64,   DType::kInt32,   DType::kComplex64};

}  // namespace

int main(int argc, char** argv) {
  constexpr std::int64_t kSmall = std::int64_t{1} << 20;  // each side
  constexpr std::int64_t kLarge = std::int64_t{64} << 20;
  for (const std::int64_t size : {kSmall, kLarge}) {
    benchmark::RegisterBenchmark("limit/read both", plain_read)->Arg(size);
    for (const DType dtype : kDTypes) {
      const std::string name(dtype_info(dtype).name);
      benchmark::RegisterBenchmark(("pair errors/" + name).c_str(), [dtype](auto& state) {
        pair_errors(state, dtype);
      })->Arg(size);
      benchmark::RegisterBenchmark(("equal pairs/" + name).c_str(), [dtype](auto& state) {
        equal_pairs(state, dtype);
      })->Arg(size);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
