#include "statistics/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "statistics/float_mode.h"
#include "tensor/small_float.h"

namespace msprobe {
namespace {

// Elements that a kernel sums on its own. Each lane then adds at most 4,096 values, whose rounding stays below 1e-12
// (at most 4.6e-13) on every target; chunks are combined with compensation. A chunk is still in cache when it has to
// be read a second time.
constexpr std::size_t kChunkElements = 16 * 1024;

// Elements that are decoded at once into a buffer on the stack.
constexpr std::size_t kPieceElements = 1024;

template <class Visit>
void for_each_part(std::span<const std::byte> block, std::size_t part_bytes, Visit visit) {
  for (; block.size() > part_bytes; block = block.subspan(part_bytes)) visit(block.first(part_bytes));
  if (!block.empty()) visit(block);
}

using Histogram = std::array<std::int64_t, 256>;

// Eight tables, so that equal bytes in a row do not wait for each other's increment.
Histogram count_bytes(std::span<const std::byte> block) {
  constexpr std::size_t kTables = sizeof(std::uint64_t);
  constexpr std::size_t kPart = std::size_t{1} << 30;  // no counter overflows
  Histogram total{};
  for_each_part(block, kPart, [&](std::span<const std::byte> part) {
    std::array<std::array<std::uint32_t, 256>, kTables> counts{};
    for (; part.size() >= kTables; part = part.subspan(kTables)) {
      std::uint64_t word = 0;
      std::memcpy(&word, part.data(), sizeof word);
      for (std::size_t table = 0; table < kTables; ++table, word >>= 8U) ++counts[table][word & 0xFFU];
    }
    for (const std::byte b : part) ++counts[0][std::to_integer<std::size_t>(b)];
    for (const auto& table : counts) {
      for (std::size_t code = 0; code < total.size(); ++code) total[code] += table[code];
    }
  });
  return total;
}

}  // namespace

StatisticsAccumulator::StatisticsAccumulator(DType dtype) : dtype_(dtype) {}

void StatisticsAccumulator::add(std::span<const std::byte> block, std::int64_t repeat) {
  if (block.empty() || repeat <= 0) return;
  const ScopedDefaultFloatMode mode;
  const Kernels& table = kernels();
  switch (dtype_) {
    case DType::kBool:
      return add_bools(block, repeat);
    case DType::kUint8:
      return add_integers(table.uint8, block, repeat);
    case DType::kInt8:
      return add_integers(table.int8, block, repeat);
    case DType::kUint16:
      return add_integers(table.uint16, block, repeat);
    case DType::kInt16:
      return add_integers(table.int16, block, repeat);
    case DType::kUint32:
      return add_integers(table.uint32, block, repeat);
    case DType::kInt32:
      return add_integers(table.int32, block, repeat);
    case DType::kUint64:
      return add_integers(table.uint64, block, repeat);
    case DType::kInt64:
      return add_integers(table.int64, block, repeat);
    case DType::kFloat16:
      return add_reals(table.float16, block, repeat);
    case DType::kBfloat16:
      return add_reals(table.bfloat16, block, repeat);
    case DType::kFloat32:
      return add_reals(table.float32, block, repeat);
    case DType::kFloat64:
      return add_reals(table.float64, block, repeat);
    case DType::kComplex32:
      return add_complex(table.complex32, block, repeat);
    case DType::kComplex64:
      return add_complex(table.complex64, block, repeat);
    case DType::kComplex128:
      return add_complex(table.complex128, block, repeat);
    case DType::kFloat8E4m3fn:
      return add_float8(table.float8_e4m3fn, block, repeat);
    case DType::kFloat8E5m2:
      return add_float8(table.float8_e5m2, block, repeat);
    case DType::kFloat8E4m3fnuz:
      return add_float8(table.float8_e4m3fnuz, block, repeat);
    case DType::kFloat8E5m2fnuz:
      return add_float8(table.float8_e5m2fnuz, block, repeat);
    case DType::kFloat8E8m0fnu:
      return add_float8_codes(block, repeat);
    case DType::kFloat4E2m1fnX2:
      return add_float4(block, repeat);
  }
}

void StatisticsAccumulator::add_zeros(std::int64_t count) {
  if (count <= 0) return;
  switch (dtype_info(dtype_).kind) {
    case DTypeKind::kBool:
    case DTypeKind::kUnsigned:
      widen<std::uint64_t>(unsigned_, 0, 0);
      break;
    case DTypeKind::kSigned:
      widen<std::int64_t>(signed_, 0, 0);
      break;
    case DTypeKind::kFloat:
    case DTypeKind::kComplex:
      widen<double>(real_, 0, 0);
      break;
  }
  count_ += count;
}

void StatisticsAccumulator::merge(const StatisticsAccumulator& next) {
  if (next.count_ == 0) return;
  const ScopedDefaultFloatMode mode;
  // All but the one that fits the dtype are zero on both sides.
  widen(real_, next.real_.min, next.real_.max);
  widen(signed_, next.signed_.min, next.signed_.max);
  widen(unsigned_, next.unsigned_.min, next.unsigned_.max);
  moments_.merge(next.moments_);
  non_finite_.nan += next.non_finite_.nan;
  non_finite_.pos_inf += next.non_finite_.pos_inf;
  non_finite_.neg_inf += next.non_finite_.neg_inf;
  count_ += next.count_;
}

void StatisticsAccumulator::add_bools(std::span<const std::byte> block, std::int64_t repeat) {
  const std::size_t trues = kernels().count_nonzero_bytes(block.data(), block.size());
  widen<std::uint64_t>(unsigned_, trues == block.size() ? 1 : 0, trues != 0 ? 1 : 0);
  moments_.add_normal(static_cast<double>(trues), static_cast<double>(trues), repeat);
  count_ += static_cast<std::int64_t>(block.size()) * repeat;
}

template <class Value>
void StatisticsAccumulator::add_integers(const ReduceKernel<Value>& kernel, std::span<const std::byte> block,
                                         std::int64_t repeat) {
  for_each_part(block, kChunkElements * kernel.item_bytes, [&](std::span<const std::byte> chunk) {
    const std::size_t elements = chunk.size() / kernel.item_bytes;
    const Partial<Value> partial = kernel.reduce(chunk.data(), elements);
    if constexpr (std::is_signed_v<Value>) {
      widen(signed_, partial.min, partial.max);
    } else {
      widen(unsigned_, partial.min, partial.max);
    }
    moments_.add_normal(partial.sum, partial.sum_squares, repeat);
    count_ += static_cast<std::int64_t>(elements) * repeat;
  });
}

bool StatisticsAccumulator::add_normal(const Partial<double>& partial, std::size_t elements, std::int64_t repeat) {
  const bool in_range =
      partial.sum_squares >= Moments::kSmallestSquares && partial.sum_squares <= Moments::kLargestSquares;
  const bool all_zero = partial.sum_squares == 0 && partial.min == 0 && partial.max == 0;
  if (!in_range && !all_zero) return false;
  widen(real_, partial.min, partial.max);
  moments_.add_normal(partial.sum, partial.sum_squares, repeat);
  count_ += static_cast<std::int64_t>(elements) * repeat;
  return true;
}

void StatisticsAccumulator::add_reals(const RealKernel& kernel, std::span<const std::byte> block, std::int64_t repeat) {
  for_each_part(block, kChunkElements * kernel.item_bytes, [&](std::span<const std::byte> chunk) {
    const std::size_t elements = chunk.size() / kernel.item_bytes;
    const Partial<double> partial = kernel.reduce(chunk.data(), elements);
    if (add_normal(partial, elements, repeat)) return;
    widen(real_, partial.min, partial.max);
    add_out_of_range(kernel, chunk, partial, repeat);
    count_ += static_cast<std::int64_t>(elements) * repeat;
  });
}

void StatisticsAccumulator::add_out_of_range(const RealKernel& kernel, std::span<const std::byte> chunk,
                                             const Partial<double>& partial, std::int64_t repeat) {
  const bool tiny = partial.sum_squares < Moments::kSmallestSquares;
  if (!tiny) {
    const NonFiniteCounts found = kernel.count_non_finite(chunk.data(), chunk.size() / kernel.item_bytes);
    non_finite_.nan += found.nan * repeat;
    non_finite_.pos_inf += found.pos_inf * repeat;
    non_finite_.neg_inf += found.neg_inf * repeat;
    // Then no finite value matters any more for Mean and Norm.
    if (found.nan != 0 || found.pos_inf != 0 || found.neg_inf != 0) return;
  }
  // Only float64 gets here: the squares of all other dtypes are in range.
  const double scale = 1 / (tiny ? Moments::kTinyUnit : Moments::kHugeUnit);
  std::array<double, kPieceElements> values;
  for_each_part(chunk, sizeof values, [&](std::span<const std::byte> piece) {
    const std::size_t elements = piece.size() / sizeof(double);
    std::memcpy(values.data(), piece.data(), piece.size());
    for (double& value : std::span(values).first(elements)) value *= scale;
    const Partial<double> scaled = kernel.reduce(reinterpret_cast<const std::byte*>(values.data()), elements);
    if (tiny) {
      moments_.add_tiny(scaled.sum, scaled.sum_squares, repeat);
    } else {
      moments_.add_huge(scaled.sum, scaled.sum_squares, repeat);
    }
  });
}

void StatisticsAccumulator::add_complex(const ComplexKernel& kernel, std::span<const std::byte> block,
                                        std::int64_t repeat) {
  std::array<double, kPieceElements> magnitudes;
  for_each_part(block, kPieceElements * kernel.item_bytes, [&](std::span<const std::byte> piece) {
    const std::size_t elements = piece.size() / kernel.item_bytes;
    if (kernel.reduce != nullptr && add_normal(kernel.reduce(piece.data(), elements), elements, repeat)) return;
    kernel.write_magnitudes(piece.data(), elements, magnitudes.data());
    add_reals(kernels().float64, std::as_bytes(std::span(magnitudes).first(elements)), repeat);
  });
}

void StatisticsAccumulator::add_float8(const ReduceKernel<double>& kernel, std::span<const std::byte> block,
                                       std::int64_t repeat) {
  for_each_part(block, kChunkElements, [&](std::span<const std::byte> chunk) {
    if (!add_normal(kernel.reduce(chunk.data(), chunk.size()), chunk.size(), repeat)) add_float8_codes(chunk, repeat);
  });
}

// A byte has 256 values, so that they are counted, and each code is looked at once: exact for any code.
void StatisticsAccumulator::add_float8_codes(std::span<const std::byte> block, std::int64_t repeat) {
  const std::array<float, 256>& table = float8_values(dtype_);
  const Histogram counts = count_bytes(block);
  for (std::size_t code = 0; code < counts.size(); ++code) add_equal(table[code], counts[code], repeat);
}

void StatisticsAccumulator::add_float4(std::span<const std::byte> block, std::int64_t repeat) {
  const std::array<float, 16>& table = float4_values();
  const Histogram counts = count_bytes(block);
  for (std::size_t codes = 0; codes < counts.size(); ++codes) {
    add_equal(table[codes % 16], counts[codes], repeat);
    add_equal(table[codes / 16], counts[codes], repeat);
  }
}

// `count` elements of one value of at most 8 significant bits: the products are exact.
void StatisticsAccumulator::add_equal(float value, std::int64_t count, std::int64_t repeat) {
  if (count == 0) return;
  const double exact = value;
  if (std::isnan(exact)) {
    non_finite_.nan += count * repeat;
  } else {
    widen(real_, exact, exact);
    if (std::isinf(exact)) {
      (exact > 0 ? non_finite_.pos_inf : non_finite_.neg_inf) += count * repeat;
    } else {
      const auto times = static_cast<double>(count);
      moments_.add_normal(times * exact, times * exact * exact, repeat);
    }
  }
  count_ += count * repeat;
}

template <class Value>
void StatisticsAccumulator::widen(Range<Value>& range, Value min, Value max) noexcept {
  range.min = count_ == 0 ? min : std::min(range.min, min);
  range.max = count_ == 0 ? max : std::max(range.max, max);
}

template <class Value>
Statistics StatisticsAccumulator::finish(const Range<Value>& range) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  Statistics result;
  result.nan_count = non_finite_.nan;
  result.pos_inf_count = non_finite_.pos_inf;
  result.neg_inf_count = non_finite_.neg_inf;
  if (non_finite_.nan != 0) {
    result.max = result.min = kNan;
    result.mean = result.norm = kNan;
    return result;
  }
  result.max = range.max;
  result.min = range.min;
  if (non_finite_.pos_inf != 0 || non_finite_.neg_inf != 0) {
    result.mean = non_finite_.neg_inf == 0 ? kInfinity : non_finite_.pos_inf == 0 ? -kInfinity : kNan;
    result.norm = kInfinity;
    return result;
  }
  // Rounding must not carry the mean past the largest value, where it could overflow.
  result.mean = std::clamp(moments_.mean(count_), static_cast<double>(range.min), static_cast<double>(range.max));
  result.norm = moments_.norm();
  return result;
}

Statistics StatisticsAccumulator::result() const {
  if (count_ == 0) return {};
  const ScopedDefaultFloatMode mode;
  switch (dtype_info(dtype_).kind) {
    case DTypeKind::kBool: {
      Statistics result = finish(unsigned_);
      result.max = unsigned_.max != 0;
      result.min = unsigned_.min != 0;
      return result;
    }
    case DTypeKind::kUnsigned:
      return finish(unsigned_);
    case DTypeKind::kSigned:
      return finish(signed_);
    case DTypeKind::kFloat:
    case DTypeKind::kComplex:
      break;
  }
  return finish(real_);
}

}  // namespace msprobe
