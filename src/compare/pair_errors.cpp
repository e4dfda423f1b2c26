#include "compare/pair_errors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <tuple>
#include <type_traits>

#include "statistics/float_mode.h"
#include "statistics/kernels.h"

namespace msprobe {
namespace {

// Values (parts of complex numbers) that are compared at once: both sides as float64 are as large as an L1 cache, and
// the sums of one lane stay within 2.3e-13.
constexpr std::size_t kChunkValues = 2048;

// Values that are only summed: as many as in src/statistics, which gives the reason.
constexpr std::size_t kEqualChunkValues = std::size_t{16} * 1024;

std::size_t parts_of(DType dtype) { return dtype_info(dtype).kind == DTypeKind::kComplex ? 2 : 1; }

std::size_t count_of(DType dtype, std::span<const std::byte> elements) {
  return elements.size() / dtype_info(dtype).item_bytes * dtype_info(dtype).values_per_item;
}

std::span<const std::byte> part_of(DType dtype, std::span<const std::byte> elements, std::size_t first,
                                   std::size_t count) {
  const DTypeInfo& info = dtype_info(dtype);
  return elements.subspan(first / info.values_per_item * info.item_bytes,
                          count / info.values_per_item * info.item_bytes);
}

bool in_range(double squares) { return squares >= Moments::kSmallestSquares && squares <= Moments::kLargestSquares; }

template <class T>
bool has_large_element(std::span<const std::byte> elements) {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 52U;  // differences are in float64 without rounding
  std::uint64_t beyond = 0;
  for (std::size_t i = 0; i < elements.size(); i += sizeof(T)) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, elements.data() + i, sizeof bits);
    if constexpr (std::is_signed_v<T>) {
      beyond |= (bits + kLimit) & ~(2 * kLimit - 1);
    } else {
      beyond |= bits & ~(kLimit - 1);
    }
  }
  return beyond != 0;
}

bool has_large_element(DType dtype, std::span<const std::byte> elements) {
  if (dtype == DType::kInt64) return has_large_element<std::int64_t>(elements);
  if (dtype == DType::kUint64) return has_large_element<std::uint64_t>(elements);
  return false;
}

// Sum of the squares of the values of a tensor; infinite or NaN with such values among them.
double sum_of_squares(DType dtype, std::span<const std::byte> elements) {
  const Kernels& table = kernels();
  const auto sum = [&](const auto& kernel) {
    return kernel.reduce(elements.data(), elements.size() / kernel.item_bytes).sum_squares;
  };
  switch (dtype) {
    case DType::kBool:
      return static_cast<double>(table.count_nonzero_bytes(elements.data(), elements.size()));
    case DType::kUint8:
      return sum(table.uint8);
    case DType::kInt8:
      return sum(table.int8);
    case DType::kUint16:
      return sum(table.uint16);
    case DType::kInt16:
      return sum(table.int16);
    case DType::kUint32:
      return sum(table.uint32);
    case DType::kInt32:
      return sum(table.int32);
    case DType::kUint64:
      return sum(table.uint64);
    case DType::kInt64:
      return sum(table.int64);
    case DType::kFloat16:
    case DType::kComplex32:
      return sum(table.float16);
    case DType::kBfloat16:
      return sum(table.bfloat16);
    case DType::kFloat32:
    case DType::kComplex64:
      return sum(table.float32);
    case DType::kFloat64:
    case DType::kComplex128:
      return sum(table.float64);
    default: {
      std::array<float, kEqualChunkValues> values;
      const std::size_t count = count_of(dtype, elements);
      static_cast<void>(widen(dtype, elements, values.data()));
      return table.float32.reduce(reinterpret_cast<const std::byte*>(values.data()), count).sum_squares;
    }
  }
}

// `to_odd`: an inexact result has an odd last bit, so that rounding it once more to fewer bits is as if that were the
// only time. Source: S. Boldo, G. Melquiond, "When double rounding is odd", 2005.
float narrow(double value, bool to_odd) {
  const auto nearest = static_cast<float>(value);
  if (!to_odd || nearest == value) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(double{nearest}) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1U);
}

double largest_magnitude(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// A power of two that brings `largest` near 1, and is one itself.
int unit_exponent(double largest) { return largest == 0 ? 0 : std::clamp(std::ilogb(largest), -1000, 1000); }

struct TwoSum {
  double sum;
  double rest;
};
TwoSum two_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

}  // namespace

void ScaledSum::add(double term, int exponent) noexcept {
  if (term == 0) return;
  if (sum_.value() == 0 || exponent > exponent_) {
    const double so_far = sum_.value();
    sum_ = {};
    sum_.add(std::ldexp(so_far, exponent_ - exponent));
    exponent_ = exponent;
  }
  sum_.add(std::ldexp(term, exponent - exponent_));
}

double ScaledSum::root() const noexcept {
  int exponent = 0;
  double value = std::frexp(sum_.value(), &exponent);
  exponent += exponent_;
  if (exponent % 2 != 0) {
    value *= 2;
    --exponent;
  }
  return std::ldexp(std::sqrt(value), exponent / 2);
}

double ScaledSum::cosine(const ScaledSum& products, const ScaledSum& a, const ScaledSum& b) noexcept {
  int product_exponent = 0;
  int a_exponent = 0;
  int b_exponent = 0;
  const double product = std::frexp(products.sum_.value(), &product_exponent);
  double squares = std::frexp(a.sum_.value(), &a_exponent) * std::frexp(b.sum_.value(), &b_exponent);
  product_exponent += products.exponent_;
  int exponent = a_exponent + a.exponent_ + b_exponent + b.exponent_;
  if (exponent % 2 != 0) {
    squares *= 2;
    --exponent;
  }
  return std::clamp(std::ldexp(product / std::sqrt(squares), product_exponent - exponent / 2), -1.0, 1.0);
}

PairAccumulator::PairAccumulator(DType golden, DType target, Tolerance tolerance, std::int64_t first_index,
                                 std::optional<SavedDtypes> saved)
    : golden_(golden),
      target_(target),
      tolerance_(tolerance),
      compared_(parts_of(golden) == 2 || parts_of(target) == 2 ? Compared::kComplex
                : fits_float32(golden) && fits_float32(target) ? Compared::kFloat32
                                                               : Compared::kFloat64),
      first_index_(first_index),
      bit_equal_(golden == target) {
  const auto a = float_format(saved ? saved->golden : golden);
  const auto b = float_format(saved ? saved->target : target);
  if (!a || !b) return;
  const auto width = [](const FloatFormat& format) {
    return std::tuple(format.mantissa_bits, format.exponent_bits, format.bias);
  };
  ulp_format_ = width(*b) < width(*a) ? b : a;
  rounds_ = width(*a) != width(*b);
}

template <class Visit>
void PairAccumulator::for_each_chunk(const Chunk& pairs, std::size_t values, Visit visit) {
  const std::size_t step = compared_ == Compared::kComplex ? values / 2 : values;
  for (std::size_t first = 0; first < pairs.count; first += step) {
    const std::size_t count = std::min(step, pairs.count - first);
    visit(Chunk{part_of(golden_, pairs.golden, first, count), part_of(target_, pairs.target, first, count), count});
  }
}

void PairAccumulator::add(std::span<const std::byte> golden, std::span<const std::byte> target) {
  const ScopedDefaultFloatMode mode;
  assert(count_of(golden_, golden) == count_of(target_, target));
  for_each_chunk({golden, target, count_of(golden_, golden)}, kChunkValues, [&](const Chunk& chunk) {
    if (golden_ == target_ && std::memcmp(chunk.golden.data(), chunk.target.data(), chunk.golden.size()) == 0) {
      add_equal_chunk(chunk);
    } else {
      bit_equal_ = false;
      add_chunk(chunk);
    }
  });
}

void PairAccumulator::add_equal(std::span<const std::byte> bytes) {
  const ScopedDefaultFloatMode mode;
  assert(golden_ == target_);
  for_each_chunk({bytes, bytes, count_of(golden_, bytes)}, kEqualChunkValues,
                 [&](const Chunk& chunk) { add_equal_chunk(chunk); });
}

void PairAccumulator::add_equal_chunk(const Chunk& chunk) {
  const double squares = sum_of_squares(golden_, chunk.golden);
  const bool zero_means_zeros = golden_ != DType::kFloat64 && golden_ != DType::kComplex128;  // no square underflows
  if (!in_range(squares) && !(squares == 0 && zero_means_zeros)) {
    for_each_chunk(chunk, kChunkValues, [&](const Chunk& part) { add_chunk(part); });
    return;
  }
  add_sums({.golden_squares = squares, .target_squares = squares, .products = squares});
  note_finite(chunk, 0);
  count_ += static_cast<std::int64_t>(chunk.count);
}

void PairAccumulator::add_chunk(const Chunk& chunk) {
  if (has_large_element(golden_, chunk.golden) || has_large_element(target_, chunk.target)) {
    add_wide_integers(chunk);
  } else if (compared_ == Compared::kFloat32) {
    add_widened<float, 1>(chunk);
  } else if (compared_ == Compared::kFloat64) {
    add_widened<double, 1>(chunk);
  } else {
    add_widened<double, 2>(chunk);
  }
  count_ += static_cast<std::int64_t>(chunk.count);
}

template <class T, std::size_t kParts>
void PairAccumulator::add_widened(const Chunk& chunk) {
  const auto kernel = std::is_same_v<T, float> ? pair_kernels().compare_float32
                      : kParts == 1            ? pair_kernels().compare_float64
                                               : pair_kernels().compare_complex128;
  const std::size_t values = kParts * chunk.count;
  std::array<T, kChunkValues> golden_buffer;
  std::array<T, kChunkValues> target_buffer;
  const auto widened = [](DType dtype, std::span<const std::byte> elements, T* buffer) {
    if constexpr (kParts == 2) {
      return widen_complex(dtype, elements, buffer);
    } else {
      return widen(dtype, elements, buffer);
    }
  };
  const void* golden = widened(golden_, chunk.golden, golden_buffer.data());
  const void* target = widened(target_, chunk.target, target_buffer.data());
  const auto copy_to_buffers = [&] {
    std::memmove(golden_buffer.data(), golden, values * sizeof(T));
    std::memmove(target_buffer.data(), target, values * sizeof(T));
    golden = golden_buffer.data();
    target = target_buffer.data();
  };

  const PairLimits limits{.rtol = tolerance_.rtol,
                          .atol = tolerance_.atol,
                          .max_abs = max_abs_.error,
                          .max_relative = max_relative_.error,
                          .seek_beyond = !first_beyond_};
  PairPartial partial = kernel(golden, target, chunk.count, limits);
  const bool all_finite = std::isfinite(partial.golden_squares) && std::isfinite(partial.target_squares);
  if (all_finite) {
    note_finite(chunk, 0);
  } else {
    copy_to_buffers();
    take_out_non_finite(chunk, kParts, golden_buffer.data(), target_buffer.data());
    partial = kernel(golden, target, chunk.count, limits);
  }
  if (partial.max_abs_index != kNowhere) max_abs_ = worst_at(chunk, partial.max_abs_index, partial.max_abs, 0);
  if (partial.max_relative_index != kNowhere) {
    max_relative_ = worst_at(chunk, partial.max_relative_index, partial.max_relative, 0);
  }
  over_thousandth_ += partial.over_thousandth;
  over_five_thousandths_ += partial.over_five_thousandths;
  beyond_tolerance_ += partial.beyond_tolerance;
  if (partial.first_beyond != kNowhere) note_beyond(partial.first_beyond);
  if (ulp_format_) {
    const bool halves = golden_ == target_ && (golden_ == DType::kFloat16 || golden_ == DType::kBfloat16);
    const UlpPartial ulp = halves && all_finite ? pair_kernels().ulp_halves(chunk.golden.data(), chunk.target.data(),
                                                                            chunk.count, *ulp_format_)
                                                : ulp_of<T>(chunk.count, kParts, golden, target);
    max_ulp_ = std::max(max_ulp_, ulp.max);
    over_one_ulp_ += ulp.over_one;
  }

  constexpr bool kAlwaysInRange = std::is_same_v<T, float>;  // float64 holds all squares of float32
  if (kAlwaysInRange ||
      (in_range(partial.golden_squares) && in_range(partial.target_squares) && in_range(partial.error_squares))) {
    add_sums(partial);
  } else if constexpr (!kAlwaysInRange) {
    copy_to_buffers();
    std::array<double, kChunkValues> errors;
    const std::span differences = std::span(errors).first(values);
    for (std::size_t i = 0; i < values; ++i) differences[i] = target_buffer[i] - golden_buffer[i];
    int exponent = 0;
    if (std::isinf(largest_magnitude(differences))) {
      for (std::size_t i = 0; i < values; ++i) differences[i] = target_buffer[i] / 2 - golden_buffer[i] / 2;
      exponent = 1;
    }
    add_scaled_sums(std::span(golden_buffer).first(values), std::span(target_buffer).first(values), differences,
                    exponent);
  }
}

// The slow way, exact for 64-bit integers of any size.
void PairAccumulator::add_wide_integers(const Chunk& chunk) {
  const std::size_t parts = compared_ == Compared::kComplex ? 2 : 1;
  std::array<double, kChunkValues> golden{};
  std::array<double, kChunkValues> target{};
  std::array<double, kChunkValues> errors{};
  for (std::size_t i = 0; i < chunk.count; ++i) {
    const Number golden_number = number_at(golden_, chunk.golden, i);
    const Number target_number = number_at(target_, chunk.target, i);
    const WideNumber g = widen(golden_number);
    const WideNumber t = widen(target_number);
    if (!std::isfinite(g.hi) || !std::isfinite(g.im) || !std::isfinite(t.hi) || !std::isfinite(t.im)) {
      const std::array golden_parts{g.hi, g.im};
      const std::array target_parts{t.hi, t.im};
      count_unless_equal(i, parts, golden_parts.data(), target_parts.data());
      continue;
    }
    note_finite(chunk, i);
    const TwoSum high = two_sum(t.hi, -g.hi);
    const TwoSum difference = two_sum(high.sum, high.rest + (t.lo - g.lo));
    double error = std::abs(difference.sum);
    double rest = difference.sum < 0 ? -difference.rest : difference.rest;
    double magnitude = std::abs(g.hi);
    golden[parts * i] = g.hi;
    target[parts * i] = t.hi;
    errors[parts * i] = difference.sum;
    if (parts == 2) {
      golden[2 * i + 1] = g.im;
      target[2 * i + 1] = t.im;
      errors[2 * i + 1] = t.im - g.im;
      error = std::hypot(error, t.im - g.im);
      magnitude = std::hypot(magnitude, g.im);
    }
    const auto is_float = [](DType dtype) { return float_format(dtype).has_value(); };
    if (is_float(golden_) || is_float(target_)) rest = 0;
    if (error == 0) continue;
    if (std::tie(error, rest) > std::tie(max_abs_.error, max_abs_.rest)) max_abs_ = worst_at(chunk, i, error, rest);
    const double relative = error / magnitude;
    if (relative > max_relative_.error) max_relative_ = worst_at(chunk, i, relative, 0);
    if (1000 * error >= magnitude) ++over_thousandth_;
    if (200 * error >= magnitude) ++over_five_thousandths_;
    const double allowed = tolerance_.rtol * magnitude;
    if (error > tolerance_.atol + allowed) {
      ++beyond_tolerance_;
      note_beyond(i);
    }
  }
  const std::size_t values = parts * chunk.count;
  add_scaled_sums(std::span(golden).first(values), std::span(target).first(values), std::span(errors).first(values), 0);
}

// Replaces the pairs that are not finite by zeros, which change nothing but the count.
template <class T>
void PairAccumulator::take_out_non_finite(const Chunk& chunk, std::size_t parts, T* golden, T* target) {
  for (std::size_t i = 0; i < chunk.count; ++i, golden += parts, target += parts) {
    bool finite = true;
    for (std::size_t part = 0; part < parts; ++part) {
      finite = finite && std::isfinite(golden[part]) && std::isfinite(target[part]);
    }
    if (finite) {
      note_finite(chunk, i);
      continue;
    }
    count_unless_equal(i, parts, golden, target);
    std::fill_n(golden, parts, T{0});
    std::fill_n(target, parts, T{0});
  }
}

// One pair that is not finite.
template <class T>
void PairAccumulator::count_unless_equal(std::size_t index, std::size_t parts, const T* golden, const T* target) {
  const auto is_nan = [](T part) { return std::isnan(part); };
  const bool golden_nan = std::any_of(golden, golden + parts, is_nan);
  const bool target_nan = std::any_of(target, target + parts, is_nan);
  if ((golden_nan && target_nan) || std::equal(golden, golden + parts, target)) return;
  const auto infinities_differ = [](T g, T t) { return g != t && (std::isinf(g) || std::isinf(t)); };
  if (golden_nan || target_nan) {
    ++nan_mismatches_;
  } else if (std::inner_product(golden, golden + parts, target, false, std::logical_or<>(), infinities_differ)) {
    ++inf_mismatches_;
  }
  ++over_thousandth_;
  ++over_five_thousandths_;
  ++beyond_tolerance_;
  note_beyond(index);
  if (!ulp_format_) return;
  ++over_one_ulp_;
  if (golden_nan || target_nan || ulp_of<T>(1, parts, golden, target).max != 0) equal_after_rounding_ = false;
}

template <class T>
UlpPartial PairAccumulator::ulp_of(std::size_t count, std::size_t parts, const void* golden, const void* target) const {
  const PairKernels& table = pair_kernels();
  if constexpr (std::is_same_v<T, double>) {
    if (ulp_format_->mantissa_bits <= 23) {
      std::array<float, kChunkValues> golden_floats;
      std::array<float, kChunkValues> target_floats;
      const auto narrow_all = [&](const void* values, float* out) {
        for (std::size_t i = 0; i < parts * count; ++i) {
          double value = 0;
          std::memcpy(&value, static_cast<const std::byte*>(values) + i * sizeof value, sizeof value);
          out[i] = narrow(value, ulp_format_->mantissa_bits < 23);
        }
      };
      narrow_all(golden, golden_floats.data());
      narrow_all(target, target_floats.data());
      return ulp_of<float>(count, parts, golden_floats.data(), target_floats.data());
    }
    return (parts == 2 ? table.ulp_complex128 : table.ulp_float64)(golden, target, count, *ulp_format_);
  } else {
    return (parts == 2 ? table.ulp_complex64 : table.ulp_float32)(golden, target, count, *ulp_format_);
  }
}

void PairAccumulator::add_sums(const PairPartial& partial) {
  golden_squares_.add(partial.golden_squares, 0);
  target_squares_.add(partial.target_squares, 0);
  products_.add(partial.products, 0);
  error_squares_.add(partial.error_squares, 0);
}

// In units in which no square of a largest value overflows or underflows. `errors` are in units of 2^error_exponent.
void PairAccumulator::add_scaled_sums(std::span<const double> golden, std::span<const double> target,
                                      std::span<const double> errors, int error_exponent) {
  const int g = unit_exponent(largest_magnitude(golden));
  const int t = unit_exponent(largest_magnitude(target));
  const int e = unit_exponent(largest_magnitude(errors));
  const auto dot = [](std::span<const double> a, int a_unit, std::span<const double> b, int b_unit) {
    const double a_scale = std::ldexp(1.0, -a_unit);
    const double b_scale = std::ldexp(1.0, -b_unit);
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] * a_scale) * (b[i] * b_scale);
    return sum;
  };
  golden_squares_.add(dot(golden, g, golden, g), 2 * g);
  target_squares_.add(dot(target, t, target, t), 2 * t);
  products_.add(dot(golden, g, target, t), g + t);
  error_squares_.add(dot(errors, e, errors, e), 2 * (e + error_exponent));
}

void PairAccumulator::note_finite(const Chunk& chunk, std::size_t index) {
  if (!first_finite_) first_finite_ = worst_at(chunk, index, 0, 0);
}

void PairAccumulator::note_beyond(std::size_t index) {
  const std::int64_t place = first_index_ + count_ + static_cast<std::int64_t>(index);
  first_beyond_ = std::min(first_beyond_.value_or(place), place);
}

PairAccumulator::Worst PairAccumulator::worst_at(const Chunk& chunk, std::size_t index, double error,
                                                 double rest) const {
  return {error, rest, first_index_ + count_ + static_cast<std::int64_t>(index),
          number_at(golden_, chunk.golden, index), number_at(target_, chunk.target, index)};
}

void PairAccumulator::merge(const PairAccumulator& next) {
  const ScopedDefaultFloatMode mode;
  count_ += next.count_;
  bit_equal_ = bit_equal_ && next.bit_equal_;
  nan_mismatches_ += next.nan_mismatches_;
  inf_mismatches_ += next.inf_mismatches_;
  over_thousandth_ += next.over_thousandth_;
  over_five_thousandths_ += next.over_five_thousandths_;
  over_one_ulp_ += next.over_one_ulp_;
  max_ulp_ = std::max(max_ulp_, next.max_ulp_);
  equal_after_rounding_ = equal_after_rounding_ && next.equal_after_rounding_;
  beyond_tolerance_ += next.beyond_tolerance_;
  if (!first_beyond_) first_beyond_ = next.first_beyond_;
  golden_squares_.add(next.golden_squares_);
  target_squares_.add(next.target_squares_);
  products_.add(next.products_);
  error_squares_.add(next.error_squares_);
  if (!first_finite_) first_finite_ = next.first_finite_;
  const auto take_larger = [](Worst& worst, const Worst& other) {
    if (std::tie(other.error, other.rest) > std::tie(worst.error, worst.rest)) worst = other;
  };
  take_larger(max_abs_, next.max_abs_);
  take_larger(max_relative_, next.max_relative_);
}

PairErrors PairAccumulator::result() const {
  const ScopedDefaultFloatMode mode;
  const auto share_without = [this](std::int64_t left_out) {
    return count_ == 0 ? 1.0 : static_cast<double>(count_ - left_out) / static_cast<double>(count_);
  };
  PairErrors result;
  result.count = count_;
  result.bit_equal = bit_equal_;
  result.nan_mismatches = nan_mismatches_;
  result.inf_mismatches = inf_mismatches_;
  result.euclidean_distance = error_squares_.root();
  result.golden_norm = golden_squares_.root();
  result.target_norm = target_squares_.root();
  if (first_finite_) {
    if (golden_squares_.is_zero() || target_squares_.is_zero()) {
      result.cosine = golden_squares_.is_zero() && target_squares_.is_zero() ? 1 : 0;
    } else {
      result.cosine = ScaledSum::cosine(products_, golden_squares_, target_squares_);
    }
    const auto finish = [this](const Worst& worst) {
      const Worst& found = worst.error > 0 ? worst : *first_finite_;
      return WorstElement{found.index, found.error, exact_difference(found.golden, found.target), found.golden,
                          found.target};
    };
    result.max_abs = finish(max_abs_);
    result.max_relative = finish(max_relative_);
  }
  result.share_within_thousandth = share_without(over_thousandth_);
  result.share_within_five_thousandths = share_without(over_five_thousandths_);
  if (ulp_format_) {
    result.max_ulp = max_ulp_;
    result.share_within_one_ulp = share_without(over_one_ulp_);
    if (rounds_) result.equal_after_rounding = equal_after_rounding_ && max_ulp_ == 0;
  }
  result.beyond_tolerance = beyond_tolerance_;
  result.first_beyond = first_beyond_;
  return result;
}

}  // namespace msprobe
