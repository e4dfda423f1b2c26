#include "compare/pair_kernels.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compare/pair_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "statistics/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace msprobe::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class T>
HWY_INLINE hn::Vec<D> load_as_double(D d, const T* p) {
  if constexpr (std::is_same_v<T, double>) {
    return hn::LoadU(d, p);
  } else {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), p));
  }
}

// Lets `g` and `t` point to `step` values from `index` on: in place, or the last ones in the tails, padded with zeros.
template <class T>
HWY_INLINE void load_step(const T* golden, const T* target, std::size_t index, std::size_t count, std::size_t step,
                          T* golden_tail, T* target_tail, const T*& g, const T*& t) {
  g = golden + index;
  t = target + index;
  if (HWY_LIKELY(count - index >= step)) return;
  std::fill(golden_tail, golden_tail + step, T{0});
  std::fill(target_tail, target_tail + step, T{0});
  std::memcpy(golden_tail, g, (count - index) * sizeof(T));
  std::memcpy(target_tail, t, (count - index) * sizeof(T));
  g = golden_tail;
  t = target_tail;
}

template <class V>
HWY_INLINE void add_products(V g, V t, V error, V& gg, V& tt, V& gt, V& ee) {
  gg = hn::MulAdd(g, g, gg);
  tt = hn::MulAdd(t, t, tt);
  gt = hn::MulAdd(g, t, gt);
  ee = hn::MulAdd(error, error, ee);
}

// Loads one vector of pairs and adds them to the sums.
template <std::size_t kParts, class D, class T, class V>
HWY_INLINE void load_errors(D d, const T* g, const T* t, V& gg, V& tt, V& gt, V& ee, V& error, V& magnitude) {
  if constexpr (kParts == 1) {
    const V gv = load_as_double(d, g);
    const V tv = load_as_double(d, t);
    const V difference = hn::Sub(tv, gv);
    add_products(gv, tv, difference, gg, tt, gt, ee);
    error = hn::Abs(difference);
    magnitude = hn::Abs(gv);
  } else {
    V g_re, g_im, t_re, t_im;
    hn::LoadInterleaved2(d, g, g_re, g_im);
    hn::LoadInterleaved2(d, t, t_re, t_im);
    const V re = hn::Sub(t_re, g_re);
    const V im = hn::Sub(t_im, g_im);
    add_products(g_re, t_re, re, gg, tt, gt, ee);
    add_products(g_im, t_im, im, gg, tt, gt, ee);
    error = magnitudes(d, re, im);
    magnitude = magnitudes(d, g_re, g_im);
  }
}

template <class D, class VI, class M>
HWY_INLINE VI count_lanes(D d, VI counts, M mask) {
  const hn::RebindToSigned<D> di;
  return hn::Sub(counts, hn::BitCast(di, hn::VecFromMask(d, mask)));  // a true lane is -1
}

// One after the other, and with quotients.
void note_errors(const double* errors, const double* magnitudes, std::size_t index, std::size_t count,
                 const PairLimits& limits, PairPartial& result) {
  for (std::size_t i = 0; i < count; ++i) {
    const double error = errors[i];
    if (error == 0) continue;
    if (error > result.max_abs) {
      result.max_abs = error;
      result.max_abs_index = index + i;
    }
    if (const double relative = error / magnitudes[i]; relative > result.max_relative) {
      result.max_relative = relative;
      result.max_relative_index = index + i;
    }
    if (!limits.seek_beyond || result.first_beyond != kNowhere) continue;
    const double allowed = limits.rtol * magnitudes[i];
    if (error > limits.atol + allowed) result.first_beyond = index + i;
  }
}

template <class T, std::size_t kParts>
PairPartial compare(const void* golden, const void* target, std::size_t count, const PairLimits& limits) {
  const hn::ScalableTag<double> d;
  const hn::RebindToSigned<decltype(d)> di;
  using V = hn::Vec<decltype(d)>;
  using VI = hn::Vec<decltype(di)>;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t step = 2 * lanes;
  const V zero = hn::Zero(d);
  const V smallest = hn::Set(d, std::numeric_limits<double>::denorm_min());
  const V atol = hn::Set(d, limits.atol);
  const V rtol = hn::Set(d, limits.rtol);
  const V per_thousandth = hn::Set(d, 1000.0);
  const V per_five_thousandths = hn::Set(d, 200.0);
  V gg = zero, tt = zero, gt = zero, ee = zero;
  VI over_thousandth = hn::Zero(di), over_five_thousandths = over_thousandth, beyond_tolerance = over_thousandth;

  PairPartial result;
  result.max_abs = limits.max_abs;
  result.max_relative = limits.max_relative;
  V max_abs = hn::Set(d, result.max_abs);
  V max_relative = hn::Set(d, result.max_relative);
  bool seek_beyond = limits.seek_beyond;

  HWY_ALIGN T golden_tail[2 * kParts * hn::MaxLanes(d)] = {};
  HWY_ALIGN T target_tail[2 * kParts * hn::MaxLanes(d)] = {};
  const std::size_t whole = count - count % step;
  const T* g = static_cast<const T*>(golden);
  const T* t = static_cast<const T*>(target);
  std::memcpy(golden_tail, g + kParts * whole, kParts * (count - whole) * sizeof(T));
  std::memcpy(target_tail, t + kParts * whole, kParts * (count - whole) * sizeof(T));
  std::size_t index = 0;
  for (const std::size_t end : {whole, count}) {  // all whole steps, then the partial one, padded with zeros
    if (index == whole) {
      g = golden_tail;
      t = target_tail;
    }
    while (index < end) {
      V error0, error1, magnitude0, magnitude1;
      // Left where an error has to be noted, so that the compiler keeps the sums in registers within this loop.
      for (; index < end; index += step, g += kParts * step, t += kParts * step) {
        load_errors<kParts>(d, g, t, gg, tt, gt, ee, error0, magnitude0);
        load_errors<kParts>(d, g + kParts * lanes, t + kParts * lanes, gg, tt, gt, ee, error1, magnitude1);

        const auto beyond0 = hn::Gt(error0, hn::Add(atol, hn::Mul(rtol, magnitude0)));
        const auto beyond1 = hn::Gt(error1, hn::Add(atol, hn::Mul(rtol, magnitude1)));
        beyond_tolerance = count_lanes(d, count_lanes(d, beyond_tolerance, beyond0), beyond1);

        // No error is over a share of zero; any other one is over that of the smallest number too.
        const V base0 = hn::Max(magnitude0, smallest);
        const V base1 = hn::Max(magnitude1, smallest);
        over_thousandth = count_lanes(d, over_thousandth, hn::Ge(hn::Mul(error0, per_thousandth), base0));
        over_thousandth = count_lanes(d, over_thousandth, hn::Ge(hn::Mul(error1, per_thousandth), base1));
        over_five_thousandths =
            count_lanes(d, over_five_thousandths, hn::Ge(hn::Mul(error0, per_five_thousandths), base0));
        over_five_thousandths =
            count_lanes(d, over_five_thousandths, hn::Ge(hn::Mul(error1, per_five_thousandths), base1));

        // The rounded quotient can only be larger than the largest so far where this holds.
        const auto candidate0 = hn::Ge(error0, hn::Max(hn::Mul(max_relative, magnitude0), smallest));
        const auto candidate1 = hn::Ge(error1, hn::Max(hn::Mul(max_relative, magnitude1), smallest));
        const auto larger0 = hn::Or(hn::Gt(error0, max_abs), candidate0);
        const auto larger1 = hn::Or(hn::Gt(error1, max_abs), candidate1);
        if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Or(larger0, larger1)))) break;
        if (seek_beyond && !hn::AllFalse(d, hn::Or(beyond0, beyond1))) break;
      }
      if (index >= end) break;
      HWY_ALIGN double errors[2 * hn::MaxLanes(d)];
      HWY_ALIGN double magnitude_lanes[2 * hn::MaxLanes(d)];
      hn::Store(error0, d, errors);
      hn::Store(error1, d, errors + lanes);
      hn::Store(magnitude0, d, magnitude_lanes);
      hn::Store(magnitude1, d, magnitude_lanes + lanes);
      note_errors(errors, magnitude_lanes, index, step, limits, result);
      max_abs = hn::Set(d, result.max_abs);
      max_relative = hn::Set(d, result.max_relative);
      seek_beyond = limits.seek_beyond && result.first_beyond == kNowhere;
      index += step;
      g += kParts * step;
      t += kParts * step;
    }
  }

  result.golden_squares = hn::GetLane(hn::SumOfLanes(d, gg));
  result.target_squares = hn::GetLane(hn::SumOfLanes(d, tt));
  result.products = hn::GetLane(hn::SumOfLanes(d, gt));
  result.error_squares = hn::GetLane(hn::SumOfLanes(d, ee));
  result.over_thousandth = hn::GetLane(hn::SumOfLanes(di, over_thousandth));
  result.over_five_thousandths = hn::GetLane(hn::SumOfLanes(di, over_five_thousandths));
  result.beyond_tolerance = hn::GetLane(hn::SumOfLanes(di, beyond_tolerance));
  return result;
}

enum class Rounding { kNone, kSameExponents, kAny };

// Integers in the order of the values, one apart where the values are neighbours in the format; 0 for both zeros.
//
// float32 rounded to nearest, ties to even: adding half a step carries into the exponent by
// itself. Below the format's normal range its steps have one size, and adding the number whose ulp that is rounds.
template <Rounding kRounding, class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> ordered_codes(D d, hn::Vec<D> value, const FloatFormat& format) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, value);
  const auto magnitude = hn::And(bits, hn::Set(di, std::numeric_limits<hn::TFromD<decltype(di)>>::max()));
  const auto sign = hn::BroadcastSignBit(bits);
  auto code = magnitude;
  if constexpr (kRounding != Rounding::kNone) {
    const int shift = 23 - format.mantissa_bits;
    const auto odd = hn::And(hn::ShiftRightSame(magnitude, shift), hn::Set(di, 1));
    const auto carried = hn::Add(hn::Add(magnitude, hn::Set(di, (1 << (shift - 1)) - 1)), odd);
    code = hn::ShiftRightSame(carried, shift);
    if constexpr (kRounding == Rounding::kAny) {
      code = hn::Sub(code, hn::Set(di, (127 - format.bias) << format.mantissa_bits));
      const auto min_normal = hn::Set(di, (128 - format.bias) << 23);
      const auto ulp_source = hn::Set(di, (151 - format.bias - format.mantissa_bits) << 23);
      const auto sum = hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, ulp_source));
      code = hn::IfThenElse(hn::Lt(magnitude, min_normal), hn::Sub(hn::BitCast(di, sum), ulp_source), code);
    }
    code = hn::Min(code, hn::Set(di, static_cast<std::int32_t>(format.overflow_code)));
  }
  return hn::Sub(hn::Xor(code, sign), sign);
}

template <Rounding kRounding, class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> steps_between(D d, hn::Vec<D> g, hn::Vec<D> t, const FloatFormat& format) {
  const hn::RebindToUnsigned<D> du;
  const auto a = ordered_codes<kRounding>(d, g, format);
  const auto b = ordered_codes<kRounding>(d, t, format);
  return hn::BitCast(du, hn::Sub(hn::Max(a, b), hn::Min(a, b)));
}

template <class T, std::size_t kParts, Rounding kRounding>
UlpPartial ulp_rounded(const T* golden, const T* target, std::size_t count, const FloatFormat& format) {
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  using VU = hn::Vec<decltype(du)>;
  const std::size_t lanes = hn::Lanes(d);
  VU max = hn::Zero(du);
  VU over_one = max;
  HWY_ALIGN T golden_tail[kParts * hn::MaxLanes(d)];
  HWY_ALIGN T target_tail[kParts * hn::MaxLanes(d)];
  for (std::size_t index = 0; index < count; index += lanes) {
    const T* g = nullptr;
    const T* t = nullptr;
    load_step(golden, target, kParts * index, kParts * count, kParts * lanes, golden_tail, target_tail, g, t);
    VU steps;
    if constexpr (kParts == 1) {
      steps = steps_between<kRounding>(d, hn::LoadU(d, g), hn::LoadU(d, t), format);
    } else {
      hn::Vec<decltype(d)> g_re, g_im, t_re, t_im;
      hn::LoadInterleaved2(d, g, g_re, g_im);
      hn::LoadInterleaved2(d, t, t_re, t_im);
      steps = hn::Max(steps_between<kRounding>(d, g_re, t_re, format), steps_between<kRounding>(d, g_im, t_im, format));
    }
    max = hn::Max(max, steps);
    over_one = hn::Add(over_one, hn::template ShiftRight<1>(hn::Min(steps, hn::Set(du, 2))));
  }
  HWY_ALIGN hn::TFromV<VU> maxima[hn::MaxLanes(d)];
  HWY_ALIGN hn::TFromV<VU> counts[hn::MaxLanes(d)];
  hn::Store(max, du, maxima);
  hn::Store(over_one, du, counts);
  UlpPartial result;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    result.max = std::max<std::uint64_t>(result.max, maxima[lane]);
    result.over_one += static_cast<std::int64_t>(counts[lane]);
  }
  return result;
}

template <class T, std::size_t kParts>
UlpPartial ulp(const void* golden, const void* target, std::size_t count, const FloatFormat& format) {
  const T* g = static_cast<const T*>(golden);
  const T* t = static_cast<const T*>(target);
  if constexpr (std::is_same_v<T, float>) {
    if (format.mantissa_bits < 23) {
      return format.bias == 127 ? ulp_rounded<T, kParts, Rounding::kSameExponents>(g, t, count, format)
                                : ulp_rounded<T, kParts, Rounding::kAny>(g, t, count, format);
    }
  }
  return ulp_rounded<T, kParts, Rounding::kNone>(g, t, count, format);
}

template <class T>
void widen_halves(const void* elements, std::size_t count, float* out) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<T, decltype(d)> dh;
  const std::size_t lanes = hn::Lanes(d);
  const T* p = static_cast<const T*>(elements);
  for (; count >= lanes; count -= lanes, p += lanes, out += lanes)
    hn::StoreU(promote_half(d, hn::LoadU(dh, p)), d, out);
  if (count == 0) return;
  HWY_ALIGN T tail[hn::MaxLanes(d)] = {};
  HWY_ALIGN float tail_out[hn::MaxLanes(d)];
  std::memcpy(tail, p, count * sizeof(T));
  hn::Store(promote_half(d, hn::LoadU(dh, tail)), d, tail_out);
  std::memcpy(out, tail_out, count * sizeof(float));
}

const PairKernels* get_pair_kernels() {
  static constexpr PairKernels kKernels{
      .target = HWY_TARGET,
      .compare_float32 = &compare<float, 1>,
      .compare_float64 = &compare<double, 1>,
      .compare_complex128 = &compare<double, 2>,
      .ulp_halves = &ulp<std::int16_t, 1>,
      .ulp_float32 = &ulp<float, 1>,
      .ulp_float64 = &ulp<double, 1>,
      .ulp_complex64 = &ulp<float, 2>,
      .ulp_complex128 = &ulp<double, 2>,
      .widen_float16 = &widen_halves<hwy::float16_t>,
      .widen_bfloat16 = &widen_halves<hwy::bfloat16_t>,
  };
  return &kKernels;
}

}  // namespace
}  // namespace msprobe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace msprobe {

HWY_EXPORT(get_pair_kernels);

const PairKernels& pair_kernels() { return *HWY_DYNAMIC_DISPATCH(get_pair_kernels)(); }

}  // namespace msprobe
#endif  // HWY_ONCE
