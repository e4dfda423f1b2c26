#include "statistics/kernels.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "statistics/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "statistics/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace msprobe::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What the elements are compared as: halves as integers in the same order.
template <class T>
using KeyOf = std::conditional_t<kIsHalf<T>, std::int16_t, T>;

template <class T>
using ValueOf = std::conditional_t<std::is_integral_v<T>,
                                   std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>, double>;

// Elements are handled in steps of this many float64 vectors, which is a whole number of vectors of every T.
constexpr std::size_t kVectorsPerStep = 8;

template <class D, class T>
HWY_INLINE hn::Vec<D> load_as_double(D d, const T* p) {
  if constexpr (std::is_same_v<T, double>) {
    return hn::LoadU(d, p);
  } else if constexpr (kIsHalf<T>) {
    const hn::Rebind<float, D> d32;
    return hn::PromoteTo(d, promote_half(d32, hn::LoadU(hn::Rebind<T, D>(), p)));
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, std::int32_t>) {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), p));
  } else if constexpr (std::is_same_v<T, std::uint32_t>) {
    const hn::Rebind<std::uint64_t, D> du64;
    const hn::Rebind<std::int64_t, D> di64;
    return hn::ConvertTo(d, hn::BitCast(di64, hn::PromoteTo(du64, hn::LoadU(hn::Rebind<T, D>(), p))));
  } else if constexpr (sizeof(T) == 8) {
    return hn::ConvertTo(d, hn::LoadU(hn::Rebind<T, D>(), p));
  } else {
    const hn::Rebind<std::int32_t, D> di32;
    return hn::PromoteTo(d, hn::PromoteTo(di32, hn::LoadU(hn::Rebind<T, D>(), p)));
  }
}

template <class T>
HWY_INLINE hn::Vec<hn::ScalableTag<KeyOf<T>>> load_keys(const T* p) {
  const hn::ScalableTag<KeyOf<T>> d;
  if constexpr (kIsHalf<T>) {
    // Negative halves in ascending order are descending in their other 15 bits.
    const auto bits = hn::LoadU(d, reinterpret_cast<const std::int16_t*>(p));
    return hn::Xor(bits, hn::And(hn::ShiftRight<15>(bits), hn::Set(d, std::int16_t{0x7FFF})));
  } else {
    return hn::LoadU(d, p);
  }
}

template <class T>
double key_to_value(std::int16_t key) {
  const hn::ScalableTag<double> d;
  const auto bits = static_cast<std::int16_t>(key < 0 ? key ^ 0x7FFF : key);
  T halves[hn::MaxLanes(d)] = {};
  std::memcpy(halves, &bits, sizeof bits);
  return hn::GetLane(load_as_double(d, halves));
}

template <class D, class V, class T>
HWY_INLINE void add_step(D d, const T* p, V& s0, V& s1, V& s2, V& s3, V& q0, V& q1, V& q2, V& q3) {
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t half = 0; half < 2; ++half, p += 4 * lanes) {
    const V v0 = load_as_double(d, p);
    const V v1 = load_as_double(d, p + lanes);
    const V v2 = load_as_double(d, p + 2 * lanes);
    const V v3 = load_as_double(d, p + 3 * lanes);
    s0 = hn::Add(s0, v0);
    s1 = hn::Add(s1, v1);
    s2 = hn::Add(s2, v2);
    s3 = hn::Add(s3, v3);
    q0 = hn::MulAdd(v0, v0, q0);
    q1 = hn::MulAdd(v1, v1, q1);
    q2 = hn::MulAdd(v2, v2, q2);
    q3 = hn::MulAdd(v3, v3, q3);
  }
}

template <class T, class VK>
HWY_INLINE void widen_step(const T* p, std::size_t step, VK& low0, VK& low1, VK& high0, VK& high1) {
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<KeyOf<T>>());
  if constexpr (sizeof(T) == 1) {
    for (std::size_t i = 0; i < step; i += lanes) {
      const VK keys = load_keys(p + i);
      low0 = hn::Min(low0, keys);
      high0 = hn::Max(high0, keys);
    }
  } else {
    for (std::size_t i = 0; i < step; i += 2 * lanes) {
      const VK keys0 = load_keys(p + i);
      const VK keys1 = load_keys(p + i + lanes);
      low0 = hn::Min(low0, keys0);
      high0 = hn::Max(high0, keys0);
      low1 = hn::Min(low1, keys1);
      high1 = hn::Max(high1, keys1);
    }
  }
}

template <class T>
Partial<ValueOf<T>> reduce(const std::byte* data, std::size_t count) {
  if (count == 0) return {};
  const hn::ScalableTag<double> d;
  const hn::ScalableTag<KeyOf<T>> dk;
  using V = hn::Vec<decltype(d)>;
  using VK = hn::Vec<decltype(dk)>;
  const std::size_t step = kVectorsPerStep * hn::Lanes(d);
  const T* p = reinterpret_cast<const T*>(data);

  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  V q0 = s0, q1 = s0, q2 = s0, q3 = s0;
  // The last, partial step is copied: padded with zeros for the sums, with one of its elements for the comparisons.
  HWY_ALIGN T tail[kVectorsPerStep * hn::MaxLanes(d)];
  const std::size_t tail_count = count % step;
  const T* const tail_begin = p + (count - tail_count);
  if (tail_count != 0) {
    std::memset(tail, 0, sizeof tail);
    std::memcpy(tail, tail_begin, tail_count * sizeof(T));
    add_step(d, tail, s0, s1, s2, s3, q0, q1, q2, q3);
    std::fill(tail + tail_count, tail + step, tail[0]);
  }
  VK low0 = load_keys(tail_count != 0 ? tail : p), low1 = low0;
  VK high0 = low0, high1 = low0;
  if (tail_count != 0) widen_step(tail, step, low0, low1, high0, high1);
  for (; p != tail_begin; p += step) {
    add_step(d, p, s0, s1, s2, s3, q0, q1, q2, q3);
    widen_step(p, step, low0, low1, high0, high1);
  }

  Partial<ValueOf<T>> partial;
  partial.sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  partial.sum_squares = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(q0, q1), hn::Add(q2, q3))));
  HWY_ALIGN KeyOf<T> lows[hn::MaxLanes(dk)];
  HWY_ALIGN KeyOf<T> highs[hn::MaxLanes(dk)];
  hn::Store(hn::Min(low0, low1), dk, lows);
  hn::Store(hn::Max(high0, high1), dk, highs);
  const KeyOf<T> low = *std::min_element(lows, lows + hn::Lanes(dk));
  const KeyOf<T> high = *std::max_element(highs, highs + hn::Lanes(dk));
  if constexpr (kIsHalf<T>) {
    partial.min = key_to_value<T>(low);
    partial.max = key_to_value<T>(high);
  } else {
    partial.min = static_cast<ValueOf<T>>(low);
    partial.max = static_cast<ValueOf<T>>(high);
  }
  return partial;
}

template <class T>
NonFiniteCounts count_non_finite(const std::byte* data, std::size_t count) {
  const hn::ScalableTag<double> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto infinity = hn::Inf(d);
  const auto minus_infinity = hn::Neg(infinity);
  std::size_t nan = 0;
  std::size_t pos_inf = 0;
  std::size_t neg_inf = 0;
  const T* p = reinterpret_cast<const T*>(data);
  for (; count >= lanes; p += lanes, count -= lanes) {
    const auto v = load_as_double(d, p);
    nan += hn::CountTrue(d, hn::IsNaN(v));
    pos_inf += hn::CountTrue(d, hn::Eq(v, infinity));
    neg_inf += hn::CountTrue(d, hn::Eq(v, minus_infinity));
  }
  if (count != 0) {
    HWY_ALIGN T tail[hn::MaxLanes(d)] = {};
    std::memcpy(tail, p, count * sizeof(T));
    const auto v = load_as_double(d, tail);
    nan += hn::CountTrue(d, hn::IsNaN(v));
    pos_inf += hn::CountTrue(d, hn::Eq(v, infinity));
    neg_inf += hn::CountTrue(d, hn::Eq(v, minus_infinity));
  }
  return {static_cast<std::int64_t>(nan), static_cast<std::int64_t>(pos_inf), static_cast<std::int64_t>(neg_inf)};
}

std::size_t count_nonzero_bytes(const std::byte* data, std::size_t count) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto* p = reinterpret_cast<const std::uint8_t*>(data);
  const std::uint8_t* const end = p + count;
  std::size_t zeros = 0;
  for (; static_cast<std::size_t>(end - p) >= lanes; p += lanes) {
    zeros += hn::CountTrue(d, hn::Eq(hn::LoadU(d, p), hn::Zero(d)));
  }
  zeros += static_cast<std::size_t>(std::count(p, end, std::uint8_t{0}));
  return count - zeros;
}

// Loads as many complex numbers as a vector of `d` has lanes, real and imaginary parts apart.
template <class T, class D, class V = hn::Vec<D>>
HWY_INLINE void load_complex(D d, const T* p, V& re, V& im) {
  using Loaded = std::conditional_t<kIsHalf<T>, std::uint16_t, T>;
  const hn::Rebind<Loaded, D> loaded_tag;
  hn::Vec<decltype(loaded_tag)> loaded_re;
  hn::Vec<decltype(loaded_tag)> loaded_im;
  hn::LoadInterleaved2(loaded_tag, reinterpret_cast<const Loaded*>(p), loaded_re, loaded_im);
  if constexpr (kIsHalf<T>) {
    const hn::Rebind<T, D> half_tag;
    const hn::Rebind<float, D> float_tag;
    re = hn::PromoteTo(d, promote_half(float_tag, hn::BitCast(half_tag, loaded_re)));
    im = hn::PromoteTo(d, promote_half(float_tag, hn::BitCast(half_tag, loaded_im)));
  } else if constexpr (std::is_same_v<T, float>) {
    re = hn::PromoteTo(d, loaded_re);
    im = hn::PromoteTo(d, loaded_im);
  } else {
    re = loaded_re;
    im = loaded_im;
  }
}

template <class T>
void write_magnitudes(const std::byte* data, std::size_t count, double* out) {
  const hn::ScalableTag<double> d;
  const std::size_t lanes = hn::Lanes(d);
  const T* p = reinterpret_cast<const T*>(data);
  hn::Vec<decltype(d)> re;
  hn::Vec<decltype(d)> im;
  for (; count >= lanes; count -= lanes, p += 2 * lanes, out += lanes) {
    load_complex(d, p, re, im);
    hn::StoreU(magnitudes(d, re, im), d, out);
  }
  if (count == 0) return;
  HWY_ALIGN T tail[2 * hn::MaxLanes(d)];
  HWY_ALIGN double tail_out[hn::MaxLanes(d)];
  std::memset(tail, 0, sizeof tail);
  std::memcpy(tail, p, 2 * count * sizeof(T));
  load_complex(d, tail, re, im);
  hn::Store(magnitudes(d, re, im), d, tail_out);
  std::memcpy(out, tail_out, count * sizeof(double));
}

template <class T>
constexpr ReduceKernel<ValueOf<T>> reduce_kernel() {
  return {&reduce<T>, sizeof(T)};
}

template <class T>
constexpr RealKernel real_kernel() {
  return {reduce_kernel<T>(), &count_non_finite<T>};
}

template <class T>
constexpr ComplexKernel complex_kernel() {
  return {&write_magnitudes<T>, 2 * sizeof(T)};
}

const Kernels* get_kernels() {
  static constexpr Kernels kKernels{
      .target = HWY_TARGET,
      .float16 = real_kernel<hwy::float16_t>(),
      .bfloat16 = real_kernel<hwy::bfloat16_t>(),
      .float32 = real_kernel<float>(),
      .float64 = real_kernel<double>(),
      .int8 = reduce_kernel<std::int8_t>(),
      .int16 = reduce_kernel<std::int16_t>(),
      .int32 = reduce_kernel<std::int32_t>(),
      .int64 = reduce_kernel<std::int64_t>(),
      .uint8 = reduce_kernel<std::uint8_t>(),
      .uint16 = reduce_kernel<std::uint16_t>(),
      .uint32 = reduce_kernel<std::uint32_t>(),
      .uint64 = reduce_kernel<std::uint64_t>(),
      .complex32 = complex_kernel<hwy::float16_t>(),
      .complex64 = complex_kernel<float>(),
      .complex128 = complex_kernel<double>(),
      .count_nonzero_bytes = &count_nonzero_bytes,
  };
  return &kKernels;
}

}  // namespace msprobe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace msprobe {

HWY_EXPORT(get_kernels);

const Kernels& kernels() { return *HWY_DYNAMIC_DISPATCH(get_kernels)(); }

}  // namespace msprobe
#endif  // HWY_ONCE
