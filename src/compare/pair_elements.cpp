#include "compare/pair_elements.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "tensor/small_float.h"

namespace msprobe {
namespace {

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class Source, class Float>
const void* convert(std::span<const std::byte> elements, Float* out) {
  const std::size_t count = elements.size() / sizeof(Source);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<Float>(load<Source>(elements.data() + i * sizeof(Source)));
  return out;
}

const void* convert_bools(std::span<const std::byte> elements, float* out) {
  for (std::size_t i = 0; i < elements.size(); ++i) out[i] = elements[i] != std::byte{0} ? 1.0F : 0.0F;
  return out;
}

const void* convert_float4(std::span<const std::byte> elements, float* out) {
  const auto& values = float4_values();
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const auto codes = std::to_integer<unsigned>(elements[i]);
    out[2 * i] = values[codes & 0xFU];
    out[2 * i + 1] = values[codes >> 4U];
  }
  return out;
}

WideNumber split(double rounded, std::uint64_t value) {
  // In arithmetic modulo 2^64; `rounded` may be 2^64 itself.
  const double magnitude = rounded < 0 ? -rounded : rounded;
  const std::uint64_t steps = magnitude == 0x1p64 ? 0 : static_cast<std::uint64_t>(magnitude);
  const std::uint64_t rest = value - (rounded < 0 ? 0 - steps : steps);
  return {rounded, static_cast<double>(static_cast<std::int64_t>(rest)), 0};
}

}  // namespace

Number number_at(DType dtype, std::span<const std::byte> elements, std::size_t index) {
  const DTypeInfo& info = dtype_info(dtype);
  const std::byte* const at = elements.data() + index / info.values_per_item * info.item_bytes;
  const std::span item(at, info.item_bytes);
  switch (dtype) {
    case DType::kBool:
      return *at != std::byte{0};
    case DType::kUint32:
      return std::uint64_t{load<std::uint32_t>(at)};
    case DType::kInt32:
      return std::int64_t{load<std::int32_t>(at)};
    case DType::kUint64:
      return load<std::uint64_t>(at);
    case DType::kInt64:
      return load<std::int64_t>(at);
    case DType::kFloat64:
      return load<double>(at);
    case DType::kComplex32:
    case DType::kComplex64:
    case DType::kComplex128: {
      std::array<double, 2> parts;
      const void* const widened = widen_complex(dtype, item, parts.data());
      std::memcpy(parts.data(), widened, sizeof parts);
      return std::complex(parts[0], parts[1]);
    }
    default:
      break;
  }
  std::array<float, 2> values;
  std::memmove(values.data(), widen(dtype, item, values.data()), info.values_per_item * sizeof(float));
  const float value = values[index % info.values_per_item];
  if (info.kind == DTypeKind::kSigned) return static_cast<std::int64_t>(value);
  if (info.kind == DTypeKind::kUnsigned) return static_cast<std::uint64_t>(value);
  return double{value};
}

std::optional<std::uint64_t> exact_difference(const Number& a, const Number& b) {
  struct Integer {
    bool negative;
    std::uint64_t magnitude;
  };
  const auto integer = [](const Number& number) {
    return std::visit(
        [](auto value) -> std::optional<Integer> {
          if constexpr (std::is_integral_v<decltype(value)>) {
            const bool negative = value < decltype(value){};
            const auto bits = static_cast<std::uint64_t>(value);
            return Integer{negative, negative ? 0 - bits : bits};
          } else {
            return std::nullopt;
          }
        },
        number);
  };
  const auto x = integer(a);
  const auto y = integer(b);
  if (!x || !y) return std::nullopt;
  if (x->negative == y->negative) {
    return x->magnitude > y->magnitude ? x->magnitude - y->magnitude : y->magnitude - x->magnitude;
  }
  const std::uint64_t sum = x->magnitude + y->magnitude;
  if (sum < x->magnitude) return std::nullopt;
  return sum;
}

std::optional<FloatFormat> float_format(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kComplex32:
      return FloatFormat{5, 10, 15, 0x7C00};
    case DType::kBfloat16:
      return FloatFormat{8, 7, 127, 0x7F80};
    case DType::kFloat32:
    case DType::kComplex64:
      return FloatFormat{8, 23, 127, 0x7F800000};
    case DType::kFloat64:
    case DType::kComplex128:
      return FloatFormat{11, 52, 1023, 0};  // nothing is rounded to it
    case DType::kFloat8E4m3fn:
      return FloatFormat{4, 3, 7, 0x7F};
    case DType::kFloat8E5m2:
      return FloatFormat{5, 2, 15, 0x7C};
    case DType::kFloat8E4m3fnuz:
      return FloatFormat{4, 3, 8, 0x80};
    case DType::kFloat8E5m2fnuz:
      return FloatFormat{5, 2, 16, 0x80};
    case DType::kFloat8E8m0fnu:
      return FloatFormat{8, 0, 127, 0xFF};
    case DType::kFloat4E2m1fnX2:
      return FloatFormat{2, 1, 1, 8};
    default:
      return std::nullopt;
  }
}

bool fits_float32(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  return info.kind != DTypeKind::kComplex && (info.item_bytes <= 2 || dtype == DType::kFloat32);
}

const void* widen(DType dtype, std::span<const std::byte> elements, float* buffer) {
  switch (dtype) {
    case DType::kBool:
      return convert_bools(elements, buffer);
    case DType::kUint8:
      return convert<std::uint8_t>(elements, buffer);
    case DType::kInt8:
      return convert<std::int8_t>(elements, buffer);
    case DType::kUint16:
      return convert<std::uint16_t>(elements, buffer);
    case DType::kInt16:
      return convert<std::int16_t>(elements, buffer);
    case DType::kFloat16:
    case DType::kComplex32:  // its parts
      pair_kernels().widen_float16(elements.data(), elements.size() / 2, buffer);
      return buffer;
    case DType::kBfloat16:
      pair_kernels().widen_bfloat16(elements.data(), elements.size() / 2, buffer);
      return buffer;
    case DType::kFloat4E2m1fnX2:
      return convert_float4(elements, buffer);
    case DType::kFloat8E4m3fn:
    case DType::kFloat8E5m2:
    case DType::kFloat8E4m3fnuz:
    case DType::kFloat8E5m2fnuz:
    case DType::kFloat8E8m0fnu: {
      const auto& values = float8_values(dtype);
      for (std::size_t i = 0; i < elements.size(); ++i) buffer[i] = values[std::to_integer<unsigned>(elements[i])];
      return buffer;
    }
    default:
      return elements.data();  // float32
  }
}

const void* widen(DType dtype, std::span<const std::byte> elements, double* buffer) {
  switch (dtype) {
    case DType::kUint32:
      return convert<std::uint32_t>(elements, buffer);
    case DType::kInt32:
      return convert<std::int32_t>(elements, buffer);
    case DType::kUint64:
      return convert<std::uint64_t>(elements, buffer);
    case DType::kInt64:
      return convert<std::int64_t>(elements, buffer);
    case DType::kFloat32:
    case DType::kComplex64:  // its parts
      return convert<float>(elements, buffer);
    case DType::kFloat64:
    case DType::kComplex128:
      return elements.data();
    default: {
      const DTypeInfo& info = dtype_info(dtype);
      const std::size_t item_values = info.kind == DTypeKind::kComplex ? 2 : info.values_per_item;
      constexpr std::size_t kPieceItems = 128;
      std::array<float, 2 * kPieceItems> floats;
      double* out = buffer;
      while (!elements.empty()) {
        const auto piece = elements.first(std::min(elements.size(), kPieceItems * info.item_bytes));
        static_cast<void>(widen(dtype, piece, floats.data()));
        out = std::copy_n(floats.data(), piece.size() / info.item_bytes * item_values, out);
        elements = elements.subspan(piece.size());
      }
      return buffer;
    }
  }
}

const void* widen_complex(DType dtype, std::span<const std::byte> elements, double* buffer) {
  const void* const widened = widen(dtype, elements, buffer);
  const DTypeInfo& info = dtype_info(dtype);
  if (info.kind == DTypeKind::kComplex) return widened;
  const std::size_t count = elements.size() / info.item_bytes * info.values_per_item;
  for (std::size_t i = count; i-- > 0;) {
    buffer[2 * i] = load<double>(static_cast<const std::byte*>(widened) + i * sizeof(double));
    buffer[2 * i + 1] = 0;
  }
  return buffer;
}

WideNumber widen(const Number& number) {
  return std::visit(
      [](const auto& value) -> WideNumber {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::complex<double>>) {
          return {value.real(), 0, value.imag()};
        } else if constexpr (std::is_integral_v<Value>) {
          return split(static_cast<double>(value), static_cast<std::uint64_t>(value));
        } else {
          return {value, 0, 0};
        }
      },
      number);
}

}  // namespace msprobe
