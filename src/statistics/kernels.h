#pragma once
// The inner loops over memory, compiled for every vector instruction set of the target architecture and chosen at run
// time. All take `count` elements of any alignment and run in the caller's floating-point mode.

#include <cstddef>
#include <cstdint>

namespace msprobe {

template <class Value>
struct Partial {
  double sum = 0;
  double sum_squares = 0;
  Value min{};
  Value max{};
};

// Minimum, maximum and sums of `count` elements, the sums exact up to the rounding of at most count / 4 additions in
// float64 each. With a NaN among the elements `min` and `max` mean nothing; an infinity or NaN, or an overflow of
// float64, makes `sum_squares` infinite or NaN. count == 0: zero sums, the rest means nothing.
template <class Value>
struct ReduceKernel {
  Partial<Value> (*reduce)(const std::byte* data, std::size_t count);
  std::size_t item_bytes;
};

struct NonFiniteCounts {
  std::int64_t nan = 0;
  std::int64_t pos_inf = 0;
  std::int64_t neg_inf = 0;
};

struct RealKernel : ReduceKernel<double> {
  NonFiniteCounts (*count_non_finite)(const std::byte* data, std::size_t count);
};

struct ComplexKernel {
  // As ReduceKernel, of the magnitudes; each sum is one of at most `count` additions. Null: of complex128, whose
  // squares may leave the range of float64.
  Partial<double> (*reduce)(const std::byte* data, std::size_t count);
  // Writes the magnitude of each element to `out`: NaN if a part is NaN, without overflow or underflow in between.
  void (*write_magnitudes)(const std::byte* data, std::size_t count, double* out);
  std::size_t item_bytes;
};

struct Kernels {
  std::int64_t target;  // of Highway: HWY_AVX2, ...

  RealKernel float16, bfloat16, float32, float64;
  // Here an element that is not finite makes `sum_squares` NaN, and nothing else means anything.
  ReduceKernel<double> float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz;
  ReduceKernel<std::int64_t> int8, int16, int32, int64;
  ReduceKernel<std::uint64_t> uint8, uint16, uint32, uint64;
  ComplexKernel complex32, complex64, complex128;
  std::size_t (*count_nonzero_bytes)(const std::byte* data, std::size_t count);
};

// Returns the kernels for this CPU. Constant time. Thread: any.
[[nodiscard]] const Kernels& kernels();

}  // namespace msprobe
