#include "oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

namespace msprobe::testing_oracle {
namespace {

constexpr long double kNan = std::numeric_limits<long double>::quiet_NaN();
constexpr long double kInfinity = std::numeric_limits<long double>::infinity();

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// An IEEE-like format of 16 or 8 bits.
long double decode_float(unsigned code, int exponent_bits, int mantissa_bits, int bias, bool ieee_specials) {
  const unsigned mantissa = code & ((1U << mantissa_bits) - 1);
  const unsigned exponent = (code >> mantissa_bits) & ((1U << exponent_bits) - 1);
  const long double sign = (code >> (mantissa_bits + exponent_bits)) != 0 ? -1 : 1;
  if (ieee_specials && exponent == (1U << exponent_bits) - 1) return mantissa != 0 ? kNan : sign * kInfinity;
  const long double fraction = std::ldexp(static_cast<long double>(mantissa), -mantissa_bits);
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1 + fraction, static_cast<int>(exponent) - bias);
}

long double decode_real(DType dtype, const std::byte* at) {
  const auto byte = std::to_integer<unsigned>(*at);
  switch (dtype) {
    case DType::kBool:
      return byte != 0 ? 1 : 0;
    case DType::kUint8:
      return byte;
    case DType::kInt8:
      return load<std::int8_t>(at);
    case DType::kUint16:
      return load<std::uint16_t>(at);
    case DType::kInt16:
      return load<std::int16_t>(at);
    case DType::kUint32:
      return load<std::uint32_t>(at);
    case DType::kInt32:
      return static_cast<long double>(load<std::int32_t>(at));
    case DType::kUint64:
      return static_cast<long double>(load<std::uint64_t>(at));
    case DType::kInt64:
      return static_cast<long double>(load<std::int64_t>(at));
    case DType::kFloat16:
      return decode_float(load<std::uint16_t>(at), 5, 10, 15, true);
    case DType::kBfloat16:
      return decode_float(load<std::uint16_t>(at), 8, 7, 127, true);
    case DType::kFloat32:
      return load<float>(at);
    case DType::kFloat64:
      return load<double>(at);
    case DType::kFloat8E4m3fn:
      return (byte & 0x7F) == 0x7F ? kNan : decode_float(byte, 4, 3, 7, false);
    case DType::kFloat8E5m2:
      return decode_float(byte, 5, 2, 15, true);
    case DType::kFloat8E4m3fnuz:
      return byte == 0x80 ? kNan : decode_float(byte, 4, 3, 8, false);
    case DType::kFloat8E5m2fnuz:
      return byte == 0x80 ? kNan : decode_float(byte, 5, 2, 16, false);
    case DType::kFloat8E8m0fnu:
      return byte == 255 ? kNan : std::ldexp(1.0L, static_cast<int>(byte) - 127);
    default:
      ADD_FAILURE() << "no real dtype";
      return 0;
  }
}

DType part_dtype(DType dtype) {
  switch (dtype) {
    case DType::kComplex32:
      return DType::kFloat16;
    case DType::kComplex64:
      return DType::kFloat32;
    default:
      return DType::kFloat64;
  }
}

}  // namespace

std::vector<long double> decode(DType dtype, std::span<const std::byte> bytes) {
  const DTypeInfo& info = dtype_info(dtype);
  std::vector<long double> values;
  for (std::size_t i = 0; i < bytes.size(); i += info.item_bytes) {
    const std::byte* at = bytes.data() + i;
    if (dtype == DType::kFloat4E2m1fnX2) {
      values.push_back(decode_float(std::to_integer<unsigned>(*at & std::byte{15}), 2, 1, 1, false));
      values.push_back(decode_float(std::to_integer<unsigned>(*at >> 4), 2, 1, 1, false));
    } else if (info.kind == DTypeKind::kComplex) {
      const long double re = decode_real(part_dtype(dtype), at);
      const long double im = decode_real(part_dtype(dtype), at + info.item_bytes / 2);
      values.push_back(std::isnan(re) || std::isnan(im) ? kNan : std::hypot(re, im));
    } else {
      values.push_back(decode_real(dtype, at));
    }
  }
  return values;
}

long double as_number(const Extremum& extremum) {
  return std::visit(
      [](const auto& value) -> long double {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
          return kNan;
        } else {
          return static_cast<long double>(value);
        }
      },
      extremum);
}

void expect_statistics(DType dtype, const Statistics& found, std::span<const long double> values, std::int64_t repeat) {
  SCOPED_TRACE(testing::Message() << dtype_info(dtype).name << ", " << values.size() << " values");
  if (values.empty()) {
    EXPECT_TRUE(std::holds_alternative<std::monostate>(found.max));
    EXPECT_TRUE(std::holds_alternative<std::monostate>(found.min));
    EXPECT_FALSE(found.mean.has_value() || found.norm.has_value());
    return;
  }
  const auto count_if = [&](auto is) { return std::ranges::count_if(values, is) * repeat; };
  const auto nan_count = count_if([](long double v) { return std::isnan(v); });
  const auto pos_inf_count = count_if([](long double v) { return v == kInfinity; });
  const auto neg_inf_count = count_if([](long double v) { return v == -kInfinity; });
  EXPECT_EQ(found.nan_count, nan_count);
  EXPECT_EQ(found.pos_inf_count, pos_inf_count);
  EXPECT_EQ(found.neg_inf_count, neg_inf_count);
  ASSERT_TRUE(found.mean.has_value() && found.norm.has_value());

  if (nan_count != 0) {
    EXPECT_TRUE(std::isnan(as_number(found.max)) && std::isnan(as_number(found.min)));
    EXPECT_TRUE(std::isnan(*found.mean) && std::isnan(*found.norm));
    return;
  }
  long double sum = 0;
  long double magnitude = 0;
  long double squares = 0;
  for (const long double value : values) {
    sum += value;
    magnitude += std::abs(value);
    squares += value * value;
  }
  const auto count = static_cast<long double>(values.size());
  const long double max = *std::ranges::max_element(values);
  const long double min = *std::ranges::min_element(values);
  if (dtype_info(dtype).kind == DTypeKind::kComplex && std::isfinite(max)) {
    EXPECT_NEAR(static_cast<double>(as_number(found.max) / max - (max == 0 ? 0 : 1)), 0, max == 0 ? 0 : 4e-16);
    EXPECT_LE(std::abs(as_number(found.min) - min), 4e-16L * min + 5e-324L);
  } else {
    EXPECT_EQ(as_number(found.max), max);
    EXPECT_EQ(as_number(found.min), min);
  }
  if (pos_inf_count != 0 || neg_inf_count != 0) {
    EXPECT_EQ(*found.norm, INFINITY);
    EXPECT_TRUE(std::isnan(sum) ? std::isnan(*found.mean) : static_cast<long double>(*found.mean) == sum);
    return;
  }
  const long double norm = std::sqrt(squares * static_cast<long double>(repeat));
  constexpr long double kSmallest = std::numeric_limits<double>::denorm_min();
  EXPECT_LE(std::abs(*found.mean - sum / count), 1e-12L * magnitude / count + kSmallest)
      << *found.mean << " " << static_cast<double>(sum / count);
  EXPECT_LE(std::abs(*found.norm - norm), 1e-12L * norm + kSmallest) << *found.norm << " " << static_cast<double>(norm);
}

std::vector<std::byte> random_elements(DType dtype, std::size_t count, std::uint64_t seed, bool any_bits) {
  std::mt19937_64 generator(seed);
  const DTypeInfo& info = dtype_info(dtype);
  std::vector<std::byte> bytes(count * info.item_bytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(generator() >> 56);
  if (any_bits || (info.kind != DTypeKind::kFloat && info.kind != DTypeKind::kComplex)) return bytes;
  // The top exponent bit off: no special values, nothing above 2, subnormals stay.
  const std::size_t part = info.kind == DTypeKind::kComplex ? info.item_bytes / 2U : info.item_bytes;
  for (std::size_t i = part - 1; i < bytes.size(); i += part) {
    bytes[i] &= std::byte{dtype == DType::kFloat8E8m0fnu ? std::uint8_t{0x7F} : std::uint8_t{0xBF}};
    if (bytes[i] == std::byte{0x80} && part == 1) bytes[i] = std::byte{0};  // NaN of the fnuz formats
  }
  return bytes;
}

}  // namespace msprobe::testing_oracle
