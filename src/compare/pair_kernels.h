#pragma once
// The inner loops over pairs of elements, compiled for every vector instruction set of the target architecture and
// chosen at run time. Pointers may have any alignment. All run in the caller's floating-point mode. Thread: any.

#include <cstddef>
#include <cstdint>
#include <limits>

namespace msprobe {

// Where nothing was found.
inline constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

// What is known already, so that a kernel stops only at what changes it.
struct PairLimits {
  double rtol = 0;  // both >= 0
  double atol = 0;
  double max_abs = 0;  // the largest errors so far
  double max_relative = 0;
  bool seek_beyond = true;  // whether the first pair beyond the tolerance is still wanted
};

struct PairPartial {
  double golden_squares = 0;
  double target_squares = 0;
  double products = 0;
  double error_squares = 0;
  std::int64_t over_thousandth = 0;  // pairs that differ and have 1000 * error >= |g|
  std::int64_t over_five_thousandths = 0;
  std::int64_t beyond_tolerance = 0;
  std::size_t first_beyond = kNowhere;        // where `seek_beyond`
  std::size_t max_abs_index = kNowhere;       // the first of the largest errors, where beyond `max_abs`
  std::size_t max_relative_index = kNowhere;  // likewise
  double max_abs = 0;                         // these errors, else what came in
  double max_relative = 0;
};

// Compares `count` <= 65,536 pairs of finite elements; with others among them, or where float64 overflows, one of the
// sums is infinite or NaN. Each lane adds at most `count` terms.
using CompareKernel = PairPartial (*)(const void* golden, const void* target, std::size_t count,
                                      const PairLimits& limits);

// A binary float format whose values are all in float32, or float64 (as far as `mantissa_bits`).
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  std::uint32_t overflow_code;  // magnitude of the code after that of the greatest finite value
};

struct UlpPartial {
  std::uint64_t max = 0;
  std::int64_t over_one = 0;  // elements more than one step apart
};

// Distances, in steps of `format`, of `count` < 65,536 pairs without NaN, each rounded to it first. float64 elements
// and halves (float16 or bfloat16, their own bits) are not rounded.
using UlpKernel = UlpPartial (*)(const void* golden, const void* target, std::size_t count, const FloatFormat& format);

using WidenKernel = void (*)(const void* elements, std::size_t count, float* out);

struct PairKernels {
  std::int64_t target;  // of Highway: HWY_AVX2, ...

  // Complex: interleaved parts; the errors are magnitudes, the distance of an element is the larger one of its parts.
  CompareKernel compare_float32, compare_float64, compare_complex128;
  UlpKernel ulp_halves, ulp_float32, ulp_float64, ulp_complex64, ulp_complex128;
  WidenKernel widen_float16, widen_bfloat16;
};

// Returns the kernels for this CPU. Constant time.
[[nodiscard]] const PairKernels& pair_kernels();

}  // namespace msprobe
