#include "tensor/small_float.h"

#include <limits>

namespace msprobe {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Which codes are no finite numbers.
enum class Special : std::uint8_t {
  kNone,
  kIeee,          // largest exponent: infinity and NaN
  kAllOnes,       // exponent and mantissa all ones: NaN
  kNegativeZero,  // the code of -0: NaN
};

struct Format {
  unsigned exponent_bits;
  unsigned mantissa_bits;
  int bias;
  Special special;
};

constexpr double power_of_two(int exponent) {
  double value = 1;
  for (; exponent > 0; --exponent) value *= 2;
  for (; exponent < 0; ++exponent) value /= 2;
  return value;
}

constexpr float decode(unsigned code, const Format& format) {
  const unsigned mantissa_end = 1U << format.mantissa_bits;
  const unsigned exponent_end = 1U << format.exponent_bits;
  const unsigned mantissa = code % mantissa_end;
  const unsigned exponent = code / mantissa_end % exponent_end;
  const bool negative = code / mantissa_end / exponent_end != 0;

  if (format.special == Special::kIeee && exponent + 1 == exponent_end) {
    if (mantissa != 0) return kNan;
    return negative ? -kInfinity : kInfinity;
  }
  if (format.special == Special::kAllOnes && exponent + 1 == exponent_end && mantissa + 1 == mantissa_end) return kNan;
  if (format.special == Special::kNegativeZero && negative && exponent == 0 && mantissa == 0) return kNan;

  const unsigned significand = exponent == 0 ? mantissa : mantissa + mantissa_end;
  const int scale =
      static_cast<int>(exponent == 0 ? 1 : exponent) - format.bias - static_cast<int>(format.mantissa_bits);
  const double magnitude = significand * power_of_two(scale);
  return static_cast<float>(negative ? -magnitude : magnitude);
}

template <std::size_t kCodes>
constexpr std::array<float, kCodes> decode_all(const Format& format) {
  std::array<float, kCodes> values{};
  for (unsigned code = 0; code < kCodes; ++code) values[code] = decode(code, format);
  return values;
}

constexpr std::array<float, 256> decode_all_e8m0() {
  std::array<float, 256> values{};
  for (int code = 0; code < 255; ++code)
    values[static_cast<unsigned>(code)] = static_cast<float>(power_of_two(code - 127));
  values[255] = kNan;
  return values;
}

constexpr auto kE4m3fn = decode_all<256>({4, 3, 7, Special::kAllOnes});
constexpr auto kE5m2 = decode_all<256>({5, 2, 15, Special::kIeee});
constexpr auto kE4m3fnuz = decode_all<256>({4, 3, 8, Special::kNegativeZero});
constexpr auto kE5m2fnuz = decode_all<256>({5, 2, 16, Special::kNegativeZero});
constexpr auto kE8m0fnu = decode_all_e8m0();
constexpr auto kE2m1fn = decode_all<16>({2, 1, 1, Special::kNone});

}  // namespace

const std::array<float, 256>& float8_values(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat8E5m2:
      return kE5m2;
    case DType::kFloat8E4m3fnuz:
      return kE4m3fnuz;
    case DType::kFloat8E5m2fnuz:
      return kE5m2fnuz;
    case DType::kFloat8E8m0fnu:
      return kE8m0fnu;
    default:
      return kE4m3fn;
  }
}

const std::array<float, 16>& float4_values() noexcept { return kE2m1fn; }

}  // namespace msprobe
