#pragma once
// Max, Min, Mean and L2 Norm of the values of a tensor, with float64 accuracy whatever the dtype.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "msprobe/dtype.h"
#include "msprobe/tensor_view.h"
#include "statistics/kernels.h"
#include "statistics/moments.h"

namespace msprobe {

// Nothing: null in the record. bool for bool, exact integers for integer dtypes, double for the rest.
using Extremum = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double>;

struct Statistics {
  Extremum max;
  Extremum min;
  std::optional<double> mean;
  std::optional<double> norm;
  std::int64_t nan_count = 0;
  std::int64_t pos_inf_count = 0;
  std::int64_t neg_inf_count = 0;
};

// Accumulates blocks of elements of one dtype.
// NaN anywhere makes all four NaN; an infinity gives the IEEE result. Complex dtypes: of the magnitude, NaN if a part
// is. bool: Max and Min bool, Mean the fraction of true, Norm the square root of the count of true.
// Accuracy: relative error of Norm, and of Mean against the mean of |x|, at most 1e-12 on 1e8 elements. No overflow
// or underflow in between while the result itself is representable. Subnormals count whatever the caller's
// floating-point mode (flush-to-zero) is.
class StatisticsAccumulator {
 public:
  explicit StatisticsAccumulator(DType dtype);

  // `block`: whole elements, any alignment; each counts `repeat` times. An empty block changes nothing.
  void add(std::span<const std::byte> block, std::int64_t repeat = 1);

  // Counts `count` elements with value zero (the ones that a sparse tensor does not store).
  void add_zeros(std::int64_t count);

  // Adds what `next`, of the same dtype, has accumulated. Blocks shared out over several accumulators give the same
  // result, to the bit, whenever the same ones are merged in the same order.
  void merge(const StatisticsAccumulator& next);

  // The statistics so far. No elements: all four are nothing.
  [[nodiscard]] Statistics result() const;

 private:
  // Smallest and largest value so far; meaningless before the first one.
  template <class Value>
  struct Range {
    Value min{};
    Value max{};
  };

  void add_bools(std::span<const std::byte> block, std::int64_t repeat);
  void add_reals(const RealKernel& kernel, std::span<const std::byte> block, std::int64_t repeat);
  void add_complex(const ComplexKernel& kernel, std::span<const std::byte> block, std::int64_t repeat);
  void add_float8(const ReduceKernel<double>& kernel, std::span<const std::byte> block, std::int64_t repeat);
  void add_float8_codes(std::span<const std::byte> block, std::int64_t repeat);
  void add_float4(std::span<const std::byte> block, std::int64_t repeat);
  void add_equal(float value, std::int64_t count, std::int64_t repeat);
  template <class Value>
  void add_integers(const ReduceKernel<Value>& kernel, std::span<const std::byte> block, std::int64_t repeat);
  // False, and nothing is added, where the squares are out of the range of Moments::add_normal, NaN included.
  bool add_normal(const Partial<double>& partial, std::size_t elements, std::int64_t repeat);
  void add_out_of_range(const RealKernel& kernel, std::span<const std::byte> chunk, const Partial<double>& partial,
                        std::int64_t repeat);
  template <class Value>
  void widen(Range<Value>& range, Value min, Value max) noexcept;
  template <class Value>
  [[nodiscard]] Statistics finish(const Range<Value>& range) const;

  DType dtype_;
  std::int64_t count_ = 0;  // values, with their weights
  Moments moments_;         // of the chunks that hold finite values only
  NonFiniteCounts non_finite_;
  // The one that fits the dtype; bool counts as unsigned.
  Range<double> real_;
  Range<std::int64_t> signed_;
  Range<std::uint64_t> unsigned_;
};

// Statistics of a whole view, read in the fastest order. Thread: any; borrows `view` for the call.
[[nodiscard]] Statistics compute_statistics(const TensorView& view);

}  // namespace msprobe
