// Vector functions that kernels of several folders share. Compiled once for every target, hence no `#pragma once`.

#include <hwy/highway.h>

#include <cstdint>
#include <type_traits>

#if defined(MSPROBE_STATISTICS_VECTOR_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MSPROBE_STATISTICS_VECTOR_INL_H
#undef MSPROBE_STATISTICS_VECTOR_INL_H
#else
#define MSPROBE_STATISTICS_VECTOR_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace msprobe::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, hwy::float16_t> || std::is_same_v<T, hwy::bfloat16_t>;

// PromoteTo() from float16 of Highway 1.0.3 gives large finite numbers for infinity and NaN where the target has no
// instruction for it.
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)) || HWY_ARCH_ARM_A64
constexpr bool kPromotesInfinity = true;
#else
constexpr bool kPromotesInfinity = false;
#endif

template <class D32, class V16>
HWY_INLINE hn::Vec<D32> promote_half(D32 d, V16 v) {
  if constexpr (kPromotesInfinity || std::is_same_v<hn::TFromV<V16>, hwy::bfloat16_t>) {
    return hn::PromoteTo(d, v);
  } else {
    const hn::RebindToUnsigned<D32> du;
    const auto bits = hn::PromoteTo(du, hn::BitCast(hn::Rebind<std::uint16_t, D32>(), v));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFU));
    const auto sign = hn::ShiftLeft<16>(hn::Xor(bits, magnitude));
    // The fields where float32 has them; the product puts the bias right, for subnormals too.
    const auto scaled = hn::Mul(hn::BitCast(d, hn::ShiftLeft<13>(magnitude)), hn::Set(d, 0x1p112F));
    const auto special = hn::VecFromMask(du, hn::Gt(magnitude, hn::Set(du, 0x7BFFU)));
    const auto exponent = hn::And(special, hn::Set(du, 0x7F800000U));
    return hn::BitCast(d, hn::Or(hn::Or(hn::BitCast(du, scaled), exponent), sign));
  }
}

// Magnitudes of the complex numbers in `re` and `im`. Those that are so large or small that their squares leave the
// range of float64 are first scaled by a power of two, which is exact.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V magnitudes(D d, V re, V im) {
  const V larger = hn::Max(hn::Abs(re), hn::Abs(im));
  const V one = hn::Set(d, 1.0);
  const auto huge = hn::Gt(larger, hn::Set(d, 0x1p500));
  const auto tiny = hn::Lt(larger, hn::Set(d, 0x1p-450));
  const V scale = hn::IfThenElse(huge, hn::Set(d, 0x1p-600), hn::IfThenElse(tiny, hn::Set(d, 0x1p600), one));
  const V inverse = hn::IfThenElse(huge, hn::Set(d, 0x1p600), hn::IfThenElse(tiny, hn::Set(d, 0x1p-600), one));
  re = hn::Mul(re, scale);
  im = hn::Mul(im, scale);
  return hn::Mul(hn::Sqrt(hn::MulAdd(re, re, hn::Mul(im, im))), inverse);
}

}  // namespace msprobe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
