#include "tensor/sign_flip.h"

#include <concepts>
#include <cstdint>
#include <cstring>

namespace msprobe {
namespace {

template <std::unsigned_integral Word, class Change>
void change_words(std::span<std::byte> bytes, std::size_t first, std::size_t step, Change change) noexcept {
  for (std::size_t at = first * sizeof(Word); at < bytes.size(); at += step * sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    word = change(word);
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
}

template <std::unsigned_integral Word>
void negate_floats(std::span<std::byte> bytes, std::size_t first = 0, std::size_t step = 1) noexcept {
  constexpr Word kSign = static_cast<Word>(Word{1} << (sizeof(Word) * 8 - 1));
  change_words<Word>(bytes, first, step, [](Word word) { return static_cast<Word>(word ^ kSign); });
}

template <std::unsigned_integral Word>
void negate_integers(std::span<std::byte> bytes) noexcept {
  change_words<Word>(bytes, 0, 1, [](Word word) { return static_cast<Word>(0U - word); });
}

template <std::unsigned_integral Word>
void negate_complex(const TensorView& view, std::span<std::byte> bytes) noexcept {
  if (view.negate_real) negate_floats<Word>(bytes, 0, 2);
  if (view.negate_imag) negate_floats<Word>(bytes, 1, 2);
}

}  // namespace

bool needs_sign_flip(const TensorView& view) noexcept {
  if (dtype_info(view.dtype).kind == DTypeKind::kComplex) return view.negate_real || view.negate_imag;
  return view.negate_real && view.dtype != DType::kBool && view.dtype != DType::kFloat8E8m0fnu;
}

void flip_signs(const TensorView& view, std::span<std::byte> elements) noexcept {
  if (!needs_sign_flip(view)) return;
  switch (view.dtype) {
    case DType::kBool:
    case DType::kFloat8E8m0fnu:
      return;
    case DType::kUint8:
    case DType::kInt8:
      return negate_integers<std::uint8_t>(elements);
    case DType::kUint16:
    case DType::kInt16:
      return negate_integers<std::uint16_t>(elements);
    case DType::kUint32:
    case DType::kInt32:
      return negate_integers<std::uint32_t>(elements);
    case DType::kUint64:
    case DType::kInt64:
      return negate_integers<std::uint64_t>(elements);
    case DType::kFloat16:
    case DType::kBfloat16:
      return negate_floats<std::uint16_t>(elements);
    case DType::kFloat32:
      return negate_floats<std::uint32_t>(elements);
    case DType::kFloat64:
      return negate_floats<std::uint64_t>(elements);
    case DType::kComplex32:
      return negate_complex<std::uint16_t>(view, elements);
    case DType::kComplex64:
      return negate_complex<std::uint32_t>(view, elements);
    case DType::kComplex128:
      return negate_complex<std::uint64_t>(view, elements);
    case DType::kFloat8E4m3fn:
    case DType::kFloat8E5m2:
      return negate_floats<std::uint8_t>(elements);
    case DType::kFloat8E4m3fnuz:
    case DType::kFloat8E5m2fnuz:
      // 0x80 is NaN and there is no -0, so that neither zero nor NaN changes.
      return change_words<std::uint8_t>(elements, 0, 1, [](std::uint8_t code) {
        return static_cast<std::uint8_t>((code & 0x7F) == 0 ? code : code ^ 0x80);
      });
    case DType::kFloat4E2m1fnX2:
      return change_words<std::uint8_t>(elements, 0, 1,
                                        [](std::uint8_t codes) { return static_cast<std::uint8_t>(codes ^ 0x88); });
  }
}

}  // namespace msprobe
