#pragma once
// How far apart two tensors are, element by element. In the formulas g is an element of the golden tensor, t that of
// the target at the same place, both widened without rounding; an element of a complex tensor is one number.
//
// Pairs are of three kinds:
//   finite   both elements are finite: these alone are in sums and in max_abs, max_relative and max_ulp
//   equal    not finite, and the same on both sides: NaN and NaN (also with other bits), an infinity of one sign.
//            Within every tolerance and share
//   unequal  not finite, and different: beyond every tolerance and share
// A complex element with a NaN part is NaN; its infinities are compared part by part, and where they are the same the
// other part has to be equal too.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "compare/pair_elements.h"
#include "compare/pair_kernels.h"
#include "msprobe/dtype.h"
#include "statistics/moments.h"

namespace msprobe {

// A pair is within it where |t - g| <= atol + rtol * |g|. Both are finite and >= 0.
struct Tolerance {
  double rtol = 0;
  double atol = 0;
};

struct WorstElement {
  std::int64_t index = 0;
  double error = 0;
  // |t - g| of two integers, as it is, where 64 bits hold it; nothing for other dtypes.
  std::optional<std::uint64_t> exact_difference;
  Number golden;
  Number target;
};

// Absolute error |t - g|: in float64, rounded once (integers beyond 2^53 are told apart all the same).
// Relative error |t - g| / |g|: the quotient of the rounded numbers; g = 0: 0 where t = 0 too, else +infinity.
// Sums have a relative error of at most 1e-12, on any number of elements and over the whole range of float64; `cosine`
// has that as its absolute error. Errors of complex numbers may differ in their last bits between CPUs; nothing else.
struct PairErrors {
  std::int64_t count = 0;           // pairs; an item of float4_e2m1fn_x2 has two
  bool bit_equal = true;            // one dtype, and every bit the same
  std::int64_t nan_mismatches = 0;  // NaN on one side only
  std::int64_t inf_mismatches = 0;  // no NaN, and an infinity on one side only or of the other sign

  // Over the finite pairs: Re sum(conj(g) * t) / (golden_norm * target_norm), in [-1, 1]. Both norms zero: 1; one of
  // them: 0. Nothing where no pair is finite.
  std::optional<double> cosine;
  double euclidean_distance = 0;  // sqrt(sum |t - g|^2)
  double golden_norm = 0;         // sqrt(sum |g|^2)
  double target_norm = 0;

  // The first of the finite pairs with the largest error; nothing where no pair is finite.
  std::optional<WorstElement> max_abs;
  std::optional<WorstElement> max_relative;

  // Shares of all pairs, 1 of none: relative error below 1/1000, evaluated as 1000 * |t - g| < |g|, and below 5/1000.
  double share_within_thousandth = 1;
  double share_within_five_thousandths = 1;

  // Where both dtypes are floats or complex: both elements are rounded (to nearest, ties to even) to the narrower
  // format (fewer mantissa bits, then fewer exponent bits, then the first in DType); the distance is the number of
  // representable steps from one to the other. -0 and +0 are one; what rounds beyond the greatest finite value counts
  // as the code after it. e8m0fnu counts all up to 2^-127 as code 0, what follows up to 2^-126 as code 1, and negative
  // values as negative codes. Of complex numbers: the larger distance of the two parts.
  std::optional<std::uint64_t> max_ulp;        // of the finite pairs
  std::optional<double> share_within_one_ulp;  // of all pairs
  std::optional<bool> equal_after_rounding;    // where these formats differ: all equal in the narrower one

  std::int64_t beyond_tolerance = 0;
  std::optional<std::int64_t> first_beyond;  // index
};

// sum * 2^exponent, for terms whose range exceeds that of float64.
class ScaledSum {
 public:
  void add(double term, int exponent) noexcept;  // term * 2^exponent
  void add(const ScaledSum& other) noexcept { add(other.sum_.value(), other.exponent_); }
  [[nodiscard]] double root() const noexcept;  // of a sum >= 0
  // products / sqrt(a * b) for sums a, b > 0; exactly 1 where all three are the same.
  [[nodiscard]] static double cosine(const ScaledSum& products, const ScaledSum& a, const ScaledSum& b) noexcept;
  [[nodiscard]] bool is_zero() const noexcept { return sum_.value() == 0; }

 private:
  CompensatedSum sum_;
  int exponent_ = 0;
};

// What the values of both sides were before a file widened them: a .npy file holds bfloat16 as float32.
struct SavedDtypes {
  DType golden;
  DType target;
};

// Accumulates the errors of one segment of consecutive elements. All 22 dtypes compare with each other. The caller's
// floating-point mode does not matter. However the elements are cut into calls and segments: sums may differ in their
// last bits, all else is the same.
// Thread: one at a time.
class PairAccumulator {
 public:
  // `first_index`: of the segment's first element. `saved`: the dtypes that ULP distances go by; nothing: `golden` and
  // `target`.
  PairAccumulator(DType golden, DType target, Tolerance tolerance, std::int64_t first_index = 0,
                  std::optional<SavedDtypes> saved = {});

  // The next elements of both: whole items, as many values on both sides, any alignment.
  void add(std::span<const std::byte> golden, std::span<const std::byte> target);

  // The next elements, the same bits on both sides, which have one dtype. Reads them once, for the norms alone.
  void add_equal(std::span<const std::byte> bytes);

  // Appends the segment that follows this one, made with the same dtypes and tolerance.
  void merge(const PairAccumulator& next);

  // The errors so far.
  [[nodiscard]] PairErrors result() const;

 private:
  struct Chunk {  // some elements of both sides
    std::span<const std::byte> golden;
    std::span<const std::byte> target;
    std::size_t count;
  };
  struct Worst {
    double error = 0;
    double rest = 0;  // exact error - `error`, of integers
    std::int64_t index = 0;
    Number golden;
    Number target;
  };
  enum class Compared : std::uint8_t { kFloat32, kFloat64, kComplex };  // what both sides are widened to

  template <class Visit>
  void for_each_chunk(const Chunk& pairs, std::size_t values, Visit visit);
  void add_chunk(const Chunk& chunk);
  void add_equal_chunk(const Chunk& chunk);
  template <class T, std::size_t kParts>
  void add_widened(const Chunk& chunk);
  void add_wide_integers(const Chunk& chunk);
  template <class T>
  void take_out_non_finite(const Chunk& chunk, std::size_t parts, T* golden, T* target);
  template <class T>
  void count_unless_equal(std::size_t index, std::size_t parts, const T* golden, const T* target);
  template <class T>
  [[nodiscard]] UlpPartial ulp_of(std::size_t count, std::size_t parts, const void* golden, const void* target) const;
  void add_sums(const PairPartial& partial);
  void add_scaled_sums(std::span<const double> golden, std::span<const double> target, std::span<const double> errors,
                       int error_exponent);
  void note_finite(const Chunk& chunk, std::size_t index);
  void note_beyond(std::size_t index);
  [[nodiscard]] Worst worst_at(const Chunk& chunk, std::size_t index, double error, double rest) const;

  DType golden_;
  DType target_;
  Tolerance tolerance_;
  Compared compared_;
  std::optional<FloatFormat> ulp_format_;  // of the narrower side
  bool rounds_ = false;                    // the formats differ

  std::int64_t first_index_;
  std::int64_t count_ = 0;
  bool bit_equal_;
  std::int64_t nan_mismatches_ = 0;
  std::int64_t inf_mismatches_ = 0;
  std::int64_t over_thousandth_ = 0;
  std::int64_t over_five_thousandths_ = 0;
  std::int64_t over_one_ulp_ = 0;
  std::uint64_t max_ulp_ = 0;
  bool equal_after_rounding_ = true;
  std::int64_t beyond_tolerance_ = 0;
  std::optional<std::int64_t> first_beyond_;
  ScaledSum golden_squares_;
  ScaledSum target_squares_;
  ScaledSum products_;
  ScaledSum error_squares_;
  std::optional<Worst> first_finite_;
  Worst max_abs_;       // of errors above zero
  Worst max_relative_;  // likewise
};

}  // namespace msprobe
