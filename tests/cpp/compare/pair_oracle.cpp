#include "pair_oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>

#include "../statistics/oracle.h"

namespace msprobe::testing_oracle {
namespace {

struct Element {
  long double re;
  long double im = 0;
  [[nodiscard]] bool nan() const { return std::isnan(re) || std::isnan(im); }
  [[nodiscard]] bool finite() const { return std::isfinite(re) && std::isfinite(im); }
};

bool is_complex(DType dtype) { return dtype_info(dtype).kind == DTypeKind::kComplex; }
bool is_float(DType dtype) { return dtype_info(dtype).kind == DTypeKind::kFloat || is_complex(dtype); }
bool is_wide(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kUint64; }

DType part_dtype(DType dtype) {
  if (dtype == DType::kComplex32) return DType::kFloat16;
  if (dtype == DType::kComplex64) return DType::kFloat32;
  return dtype == DType::kComplex128 ? DType::kFloat64 : dtype;
}

std::vector<Element> elements_of(const Side& side) {
  const std::vector<long double> parts = decode(part_dtype(side.dtype), side.bytes);
  std::vector<Element> elements;
  for (std::size_t i = 0; i < parts.size(); i += is_complex(side.dtype) ? 2 : 1) {
    elements.push_back({parts[i], is_complex(side.dtype) ? parts[i + 1] : 0});
  }
  return elements;
}

double absolute_error(const Element& g, const Element& t, DType golden, DType target) {
  if (is_complex(golden) || is_complex(target)) return static_cast<double>(std::hypot(t.re - g.re, t.im - g.im));
  if (!is_float(golden) && !is_float(target)) {
    const __int128 difference = static_cast<__int128>(t.re) - static_cast<__int128>(g.re);
    return static_cast<double>(difference < 0 ? -difference : difference);
  }
  if (is_wide(golden) || is_wide(target)) return static_cast<double>(std::abs(t.re - g.re));
  return std::abs(static_cast<double>(t.re) - static_cast<double>(g.re));
}

// The values above or equal to zero of a format, by code.
std::vector<long double> values_by_code(DType dtype) {
  std::vector<long double> values;
  const unsigned codes = dtype == DType::kFloat4E2m1fnX2 ? 8 : dtype_info(dtype).item_bytes == 1 ? 256 : 65536;
  for (unsigned code = 0; code < codes; ++code) {
    const auto bytes = std::as_bytes(std::span(&code, 1)).first(dtype_info(dtype).item_bytes);
    const long double value = decode(dtype, bytes).front();
    if (!std::isfinite(value) || std::signbit(value)) break;
    values.push_back(value);
  }
  return values;
}

template <class Float, class Int>
long double code_by_bits(Float value) {
  Int bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits >= 0 ? static_cast<long double>(bits) : -static_cast<long double>(bits & std::numeric_limits<Int>::max());
}

long double code_of(DType format, long double value) {
  if (format == DType::kFloat64) return code_by_bits<double, std::int64_t>(static_cast<double>(value));
  if (format == DType::kFloat32) return code_by_bits<float, std::int32_t>(static_cast<float>(value));
  static std::array<std::vector<long double>, kDTypeCount> tables;
  std::vector<long double>& table = tables[static_cast<std::size_t>(format)];
  if (table.empty()) {
    table = values_by_code(format);
    if (format == DType::kFloat8E8m0fnu) table.front() = 0;  // as documented: all up to half of the next
    table.push_back(2 * table.back() - table[table.size() - 2]);
    if (format == DType::kFloat8E8m0fnu) table.back() = 0x1p128L;
  }
  const long double magnitude = std::abs(value);
  const auto above = std::ranges::lower_bound(table, magnitude);
  std::ptrdiff_t code = above - table.begin();
  if (above == table.end()) {
    --code;
  } else if (*above != magnitude) {
    const long double below = *(above - 1);
    const bool down = magnitude - below < *above - magnitude;
    const bool tie = magnitude - below == *above - magnitude;
    if (down || (tie && code % 2 != 0)) --code;
  }
  return std::copysign(static_cast<long double>(code), value);
}

int mantissa_bits(DType format) {
  switch (format) {
    case DType::kFloat8E8m0fnu:
      return 0;
    case DType::kFloat4E2m1fnX2:
      return 1;
    case DType::kFloat8E5m2:
    case DType::kFloat8E5m2fnuz:
      return 2;
    case DType::kFloat8E4m3fn:
    case DType::kFloat8E4m3fnuz:
      return 3;
    case DType::kBfloat16:
      return 7;
    case DType::kFloat16:
      return 10;
    case DType::kFloat32:
      return 23;
    default:
      return 52;
  }
}

std::optional<DType> ulp_format(DType golden, DType target) {
  if (!is_float(golden) || !is_float(target)) return std::nullopt;
  // No two formats have the same number of mantissa bits but those that come one before the other in DType.
  return std::min(part_dtype(golden), part_dtype(target), [](DType a, DType b) {
    return mantissa_bits(a) != mantissa_bits(b) ? mantissa_bits(a) < mantissa_bits(b) : a < b;
  });
}

void expect_number(const Number& found, DType dtype, const Element& element) {
  const bool same_kind = [&] {
    switch (dtype_info(dtype).kind) {
      case DTypeKind::kBool:
        return std::holds_alternative<bool>(found);
      case DTypeKind::kSigned:
        return std::holds_alternative<std::int64_t>(found);
      case DTypeKind::kUnsigned:
        return std::holds_alternative<std::uint64_t>(found);
      case DTypeKind::kFloat:
        return std::holds_alternative<double>(found);
      case DTypeKind::kComplex:
        return std::holds_alternative<std::complex<double>>(found);
    }
    return false;
  }();
  EXPECT_TRUE(same_kind);
  std::visit(
      [&](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::complex<double>>) {
          EXPECT_EQ(value.real(), element.re);
          EXPECT_EQ(value.imag(), element.im);
        } else {
          EXPECT_EQ(static_cast<long double>(value), element.re);
        }
      },
      found);
}

// The first largest of `errors` at the indices that are not nothing.
void expect_worst(const std::optional<WorstElement>& found, const std::vector<std::optional<double>>& errors,
                  bool exact, const Side& golden, const Side& target, const std::vector<Element>& g,
                  const std::vector<Element>& t) {
  std::optional<std::size_t> worst;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (errors[i] && (!worst || *errors[i] > *errors[*worst])) worst = i;
  }
  ASSERT_EQ(found.has_value(), worst.has_value());
  if (!worst) return;
  const auto index = static_cast<std::size_t>(found->index);
  if (exact) {
    EXPECT_EQ(index, *worst);
    EXPECT_EQ(found->error, *errors[*worst]);
  } else {
    ASSERT_TRUE(index < errors.size() && errors[index].has_value());
    const double largest = *errors[*worst];
    if (std::isinf(largest)) {
      EXPECT_EQ(*errors[index], largest);
      EXPECT_EQ(found->error, largest);
    } else {
      EXPECT_GE(*errors[index], largest * (1 - 4e-15));
      EXPECT_NEAR(found->error, largest, largest * 4e-15 + 1e-323);
    }
  }
  expect_number(found->golden, golden.dtype, g[index]);
  expect_number(found->target, target.dtype, t[index]);
  const bool integers = !is_float(golden.dtype) && !is_float(target.dtype);
  if (!integers) {
    EXPECT_FALSE(found->exact_difference.has_value());
  } else {
    const __int128 difference = static_cast<__int128>(t[index].re) - static_cast<__int128>(g[index].re);
    const auto magnitude = static_cast<unsigned __int128>(difference < 0 ? -difference : difference);
    EXPECT_EQ(found->exact_difference.has_value(), magnitude >> 64U == 0);
    const auto low_bits = static_cast<std::uint64_t>(magnitude);
    EXPECT_EQ(found->exact_difference.value_or(low_bits), low_bits);
  }
}

void expect_close(double found, long double expected, const char* what) {
  constexpr long double kSmallest = std::numeric_limits<double>::denorm_min();
  if (expected > std::numeric_limits<double>::max()) {
    EXPECT_EQ(found, INFINITY) << what;
  } else {
    EXPECT_LE(std::abs(found - expected), 1e-12L * expected + kSmallest)
        << what << " " << found << " " << static_cast<double>(expected);
  }
}

}  // namespace

void expect_pair_errors(const Side& golden, const Side& target, Tolerance tolerance, const PairErrors& found) {
  SCOPED_TRACE(testing::Message() << dtype_info(golden.dtype).name << " " << dtype_info(target.dtype).name << ", "
                                  << golden.bytes.size() << " bytes");
  const std::vector<Element> g = elements_of(golden);
  const std::vector<Element> t = elements_of(target);
  ASSERT_EQ(g.size(), t.size());
  const std::optional<DType> format = ulp_format(golden.dtype, target.dtype);
  const bool complex = is_complex(golden.dtype) || is_complex(target.dtype);
  const bool mixed =
      (is_wide(golden.dtype) && is_float(target.dtype)) || (is_wide(target.dtype) && is_float(golden.dtype));

  std::int64_t nan_mismatches = 0;
  std::int64_t inf_mismatches = 0;
  std::int64_t within1 = 0;
  std::int64_t within5 = 0;
  std::int64_t within_ulp = 0;
  std::int64_t beyond = 0;
  std::optional<std::int64_t> first_beyond;
  long double max_ulp = 0;
  bool rounded_equal = true;
  bool any_finite = false;
  long double gg = 0;
  long double tt = 0;
  long double gt = 0;
  long double ee = 0;
  std::vector<std::optional<double>> errors(g.size());
  std::vector<std::optional<double>> relatives(g.size());
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto note_beyond = [&] {
      ++beyond;
      if (!first_beyond) first_beyond = static_cast<std::int64_t>(i);
    };
    const auto steps = [&] {
      return std::max(std::abs(code_of(*format, g[i].re) - code_of(*format, t[i].re)),
                      std::abs(code_of(*format, g[i].im) - code_of(*format, t[i].im)));
    };
    if (!g[i].finite() || !t[i].finite()) {
      const bool same = (g[i].nan() && t[i].nan()) || (g[i].re == t[i].re && g[i].im == t[i].im);
      if (same) {
        ++within1;
        ++within5;
        ++within_ulp;
        continue;
      }
      note_beyond();
      const bool nan = g[i].nan() || t[i].nan();
      const auto differ = [](long double a, long double b) { return a != b && (std::isinf(a) || std::isinf(b)); };
      if (nan) ++nan_mismatches;
      if (!nan && (differ(g[i].re, t[i].re) || differ(g[i].im, t[i].im))) ++inf_mismatches;
      if (format && (nan || steps() != 0)) rounded_equal = false;
      continue;
    }
    any_finite = true;
    gg += g[i].re * g[i].re + g[i].im * g[i].im;
    tt += t[i].re * t[i].re + t[i].im * t[i].im;
    gt += g[i].re * t[i].re + g[i].im * t[i].im;
    const long double re = t[i].re - g[i].re;
    const long double im = t[i].im - g[i].im;
    ee += re * re + im * im;
    const double error = absolute_error(g[i], t[i], golden.dtype, target.dtype);
    const auto magnitude = static_cast<double>(complex ? std::hypot(g[i].re, g[i].im) : std::abs(g[i].re));
    errors[i] = error;
    relatives[i] = error == 0 ? 0 : error / magnitude;
    if (error == 0 || 1000 * error < magnitude) ++within1;
    if (error == 0 || 200 * error < magnitude) ++within5;
    if (error > tolerance.atol + tolerance.rtol * magnitude) note_beyond();
    if (!format) continue;
    max_ulp = std::max(max_ulp, steps());
    if (steps() <= 1) ++within_ulp;
  }

  const auto count = static_cast<std::int64_t>(g.size());
  const auto share = [&](std::int64_t within) {
    return count == 0 ? 1.0 : static_cast<double>(within) / static_cast<double>(count);
  };
  EXPECT_EQ(found.count, count);
  EXPECT_EQ(found.bit_equal, golden.dtype == target.dtype && std::ranges::equal(golden.bytes, target.bytes));
  EXPECT_EQ(found.nan_mismatches, nan_mismatches);
  EXPECT_EQ(found.inf_mismatches, inf_mismatches);
  EXPECT_EQ(found.beyond_tolerance, beyond);
  EXPECT_EQ(found.first_beyond, first_beyond);
  EXPECT_EQ(found.share_within_thousandth, share(within1));
  EXPECT_EQ(found.share_within_five_thousandths, share(within5));
  EXPECT_EQ(found.max_ulp.has_value(), format.has_value());
  EXPECT_EQ(found.share_within_one_ulp.has_value(), format.has_value());
  if (format && found.max_ulp && found.share_within_one_ulp) {
    EXPECT_EQ(static_cast<long double>(*found.max_ulp), max_ulp);
    EXPECT_EQ(*found.share_within_one_ulp, share(within_ulp));
  }
  const bool rounds = format && part_dtype(golden.dtype) != part_dtype(target.dtype);
  EXPECT_EQ(found.equal_after_rounding.has_value(), rounds);
  EXPECT_EQ(found.equal_after_rounding.value_or(false), rounds && rounded_equal && max_ulp == 0);
  expect_worst(found.max_abs, errors, !complex && !mixed, golden, target, g, t);
  expect_worst(found.max_relative, relatives, !complex && !mixed, golden, target, g, t);
  expect_close(found.golden_norm, std::sqrt(gg), "golden_norm");
  expect_close(found.target_norm, std::sqrt(tt), "target_norm");
  expect_close(found.euclidean_distance, std::sqrt(ee), "euclidean_distance");
  ASSERT_EQ(found.cosine.has_value(), any_finite);
  if (!any_finite) return;
  if (gg == 0 || tt == 0) {
    EXPECT_EQ(*found.cosine, gg == tt ? 1 : 0);
  } else {
    EXPECT_LE(std::abs(*found.cosine - gt / (std::sqrt(gg) * std::sqrt(tt))), 1e-12L);
    EXPECT_LE(std::abs(*found.cosine), 1);
  }
}

PairErrors errors_of(const Side& golden, const Side& target, Tolerance tolerance) {
  PairAccumulator accumulator(golden.dtype, target.dtype, tolerance);
  accumulator.add(golden.bytes, target.bytes);
  return accumulator.result();
}

}  // namespace msprobe::testing_oracle
