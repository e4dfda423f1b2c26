#pragma once
// Sum and sum of squares of float64 values over the whole range of float64.

#include <cstdint>

namespace msprobe {

// A sum that carries its own rounding error. Source: A. Neumaier, ZAMM 54 (1974), with Knuth's TwoSum.
class CompensatedSum {
 public:
  void add(double term) noexcept {
    const double sum = sum_ + term;
    const double term_part = sum - sum_;
    error_ += (sum_ - (sum - term_part)) + (term - term_part);
    sum_ = sum;
  }
  void add(const CompensatedSum& other) noexcept {
    add(other.sum_);
    error_ += other.error_;
  }
  [[nodiscard]] double value() const noexcept { return sum_ + error_; }

 private:
  double sum_ = 0;
  double error_ = 0;
};

// Squares of very large or small values leave the range of float64, so that such chunks are summed in units of a power
// of two. Source: J. L. Blue, "A Portable Fortran Program to Find the Euclidean Norm of a Vector", ACM TOMS 4 (1978);
// here whole chunks are sorted into the three accumulators, not single values.
//
//   sum of squares of the chunk:   0 ... 2^-1000     2^-1000 ... 2^900    above
//   values are in units of:            2^-600                1            2^600
class Moments {
 public:
  static constexpr double kSmallestSquares = 0x1p-1000;
  static constexpr double kLargestSquares = 0x1p900;
  static constexpr double kTinyUnit = 0x1p-600;
  static constexpr double kHugeUnit = 0x1p600;

  // Sums of one chunk, in the units above. `repeat`: how often the chunk counts.
  void add_normal(double sum, double squares, std::int64_t repeat) noexcept;
  void add_tiny(double sum, double squares, std::int64_t repeat) noexcept;
  void add_huge(double sum, double squares, std::int64_t repeat) noexcept;

  // Adds the sums of other chunks.
  void merge(const Moments& other) noexcept;

  // `count` > 0 values in all. Does not overflow while the result is representable.
  [[nodiscard]] double mean(std::int64_t count) const noexcept;
  [[nodiscard]] double norm() const noexcept;

 private:
  CompensatedSum sum_;  // of tiny chunks too, in units of 1: no bit of a sum is lost down there
  CompensatedSum huge_sum_;
  CompensatedSum squares_;
  CompensatedSum tiny_squares_;
  CompensatedSum huge_squares_;
};

}  // namespace msprobe
