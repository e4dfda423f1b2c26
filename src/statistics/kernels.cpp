#include "statistics/kernels.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "statistics/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "statistics/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace msprobe::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The float8 dtypes with sign, exponent and mantissa, as bytes of their own type.
template <int kMantissa, int kBias, bool kNoInfinity>
struct Float8 {
  static constexpr int kMantissaBits = kMantissa;
  static constexpr int kExponentBias = kBias;
  // Where the code of minus zero is the only NaN; else the largest codes, from this magnitude on, are not finite.
  static constexpr bool kNanIsMinusZero = kNoInfinity;
  std::int8_t bits;
};
using Float8E4m3fn = Float8<3, 7, false>;
using Float8E5m2 = Float8<2, 15, false>;
using Float8E4m3fnuz = Float8<3, 8, true>;
using Float8E5m2fnuz = Float8<2, 16, true>;

template <class T>
constexpr bool kIsFloat8 = false;
template <int kMantissa, int kBias, bool kNoInfinity>
constexpr bool kIsFloat8<Float8<kMantissa, kBias, kNoInfinity>> = true;

// What the elements are compared as: small floats as integers in the same order.
template <class T>
using KeyOf = std::conditional_t<kIsHalf<T>, std::int16_t, std::conditional_t<kIsFloat8<T>, std::int8_t, T>>;

template <class T>
using ValueOf = std::conditional_t<std::is_integral_v<T>,
                                   std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>, double>;

// Elements are handled in steps of this many float64 vectors, a whole number of vectors of T. What four of them need at
// a time fits in sixteen registers.
template <class T>
constexpr std::size_t kVectorsPerStep = sizeof(T) == 1 ? 8 : 4;

// The values of small floats. Codes that are not finite become some finite value if T is a float8.
template <class D32, class T>
HWY_INLINE hn::Vec<D32> load_as_float(D32 d, const T* p) {
  if constexpr (kIsHalf<T>) {
    return promote_half(d, hn::LoadU(hn::Rebind<T, D32>(), p));
  } else {
    const hn::RebindToSigned<D32> di;
    const auto bits = hn::PromoteTo(di, hn::LoadU(hn::Rebind<std::int8_t, D32>(), &p->bits));
    // The fields where float32 has them, between copies of the sign; the product puts the bias right, for subnormals
    // too.
    constexpr int kShift = 23 - T::kMantissaBits;
    constexpr auto kFields = static_cast<std::int32_t>(0x80000000U | 0x7FU << kShift);
    constexpr auto kScaleBits = static_cast<std::uint32_t>(127 + 127 - T::kExponentBias) << 23U;
    const auto fields = hn::And(hn::ShiftLeft<kShift>(bits), hn::Set(di, kFields));
    return hn::Mul(hn::BitCast(d, fields), hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D32>(), kScaleBits)));
  }
}

template <class D, class T>
HWY_INLINE hn::Vec<D> load_as_double(D d, const T* p) {
  if constexpr (std::is_same_v<T, double>) {
    return hn::LoadU(d, p);
  } else if constexpr (kIsHalf<T> || kIsFloat8<T>) {
    return hn::PromoteTo(d, load_as_float(hn::Rebind<float, D>(), p));
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
    return hn::Xor(bits, hn::And(hn::BroadcastSignBit(bits), hn::Set(d, std::int16_t{0x7FFF})));
  } else if constexpr (kIsFloat8<T>) {
    const auto bits = hn::LoadU(d, &p->bits);
    return hn::Xor(bits, hn::And(hn::BroadcastSignBit(bits), hn::Set(d, std::int8_t{0x7F})));
  } else {
    return hn::LoadU(d, p);
  }
}

template <class T>
double key_to_value(KeyOf<T> key) {
  const hn::ScalableTag<double> d;
  const auto bits = static_cast<KeyOf<T>>(key < 0 ? key ^ std::numeric_limits<KeyOf<T>>::max() : key);
  T elements[hn::MaxLanes(d)] = {};
  std::memcpy(elements, &bits, sizeof bits);
  return hn::GetLane(load_as_double(d, elements));
}

// Whether T, a float8, has a code among those of the `count` elements that is no finite value.
template <class T>
bool has_special(const std::byte* data, std::size_t count, std::int8_t low, std::int8_t high) {
  if constexpr (T::kNanIsMinusZero) {
    return std::memchr(data, 0x80, count) != nullptr;
  } else {
    constexpr int kFirstSpecial = T::kMantissaBits == 2 ? 0x7C : 0x7F;
    return high >= kFirstSpecial || -1 - low >= kFirstSpecial;
  }
}

#if HWY_TARGET != HWY_SCALAR  // which has no halves of vectors
// Small floats take half of the conversions by whole vectors of float32. The order of elements is of no matter.
template <class D, class V, class T>
HWY_INLINE void add_floats(D d, const T* p, V& s0, V& s1, V& s2, V& s3, V& q0, V& q1, V& q2, V& q3) {
  const hn::ScalableTag<float> d32;
  const hn::Half<decltype(d32)> dh;
  auto f0 = hn::Zero(d32);
  auto f1 = f0;
  if constexpr (std::is_same_v<T, hwy::bfloat16_t>) {
    const hn::RebindToUnsigned<decltype(d32)> du;
    const auto pairs = hn::LoadU(du, reinterpret_cast<const std::uint32_t*>(p));
    f0 = hn::BitCast(d32, hn::ShiftLeft<16>(pairs));
    f1 = hn::BitCast(d32, hn::And(pairs, hn::Set(du, 0xFFFF0000U)));
  } else {
    f0 = load_as_float(d32, p);
    f1 = load_as_float(d32, p + hn::Lanes(d32));
  }
  const V v0 = hn::PromoteTo(d, hn::LowerHalf(dh, f0));
  s0 = hn::Add(s0, v0);
  q0 = hn::MulAdd(v0, v0, q0);
  const V v1 = hn::PromoteTo(d, hn::UpperHalf(dh, f0));
  s1 = hn::Add(s1, v1);
  q1 = hn::MulAdd(v1, v1, q1);
  const V v2 = hn::PromoteTo(d, hn::LowerHalf(dh, f1));
  s2 = hn::Add(s2, v2);
  q2 = hn::MulAdd(v2, v2, q2);
  const V v3 = hn::PromoteTo(d, hn::UpperHalf(dh, f1));
  s3 = hn::Add(s3, v3);
  q3 = hn::MulAdd(v3, v3, q3);
}
#endif

// Four vectors of float64.
template <class D, class V, class T>
HWY_INLINE void add_four(D d, const T* p, V& s0, V& s1, V& s2, V& s3, V& q0, V& q1, V& q2, V& q3) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kIsHalf<T> || kIsFloat8<T>) return add_floats(d, p, s0, s1, s2, s3, q0, q1, q2, q3);
#endif
  const std::size_t lanes = hn::Lanes(d);
  const V v0 = load_as_double(d, p);
  s0 = hn::Add(s0, v0);
  q0 = hn::MulAdd(v0, v0, q0);
  const V v1 = load_as_double(d, p + lanes);
  s1 = hn::Add(s1, v1);
  q1 = hn::MulAdd(v1, v1, q1);
  const V v2 = load_as_double(d, p + 2 * lanes);
  s2 = hn::Add(s2, v2);
  q2 = hn::MulAdd(v2, v2, q2);
  const V v3 = load_as_double(d, p + 3 * lanes);
  s3 = hn::Add(s3, v3);
  q3 = hn::MulAdd(v3, v3, q3);
}

template <class D, class V, class T>
HWY_INLINE void add_step(D d, const T* p, V& s0, V& s1, V& s2, V& s3, V& q0, V& q1, V& q2, V& q3) {
  add_four(d, p, s0, s1, s2, s3, q0, q1, q2, q3);
  if constexpr (kVectorsPerStep<T> == 8) add_four(d, p + 4 * hn::Lanes(d), s0, s1, s2, s3, q0, q1, q2, q3);
}

template <class T, class VK>
HWY_INLINE void widen_step(const T* p, std::size_t step, VK& low0, VK& low1, VK& high0, VK& high1) {
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<KeyOf<T>>());
  if constexpr (sizeof(T) <= 2) {
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
  const std::size_t step = kVectorsPerStep<T> * hn::Lanes(d);
  const T* p = reinterpret_cast<const T*>(data);

  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  V q0 = s0, q1 = s0, q2 = s0, q3 = s0;
  // The last, partial step is copied: padded with zeros for the sums, with one of its elements for the comparisons.
  HWY_ALIGN T tail[kVectorsPerStep<T> * hn::MaxLanes(d)];
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
  if constexpr (kIsFloat8<T>) {
    if (has_special<T>(data, count, low, high)) partial.sum_squares = std::numeric_limits<double>::quiet_NaN();
  }
  if constexpr (kIsHalf<T> || kIsFloat8<T>) {
    partial.min = key_to_value<T>(low);
    partial.max = key_to_value<T>(high);
  } else {
    partial.min = static_cast<ValueOf<T>>(low);
    partial.max = static_cast<ValueOf<T>>(high);
  }
  return partial;
}

// Bytes are summed exactly, in integers. Source of the bound: 2^14 squares of at most 255^2 stay below 2^31.
template <class T>
Partial<ValueOf<T>> reduce_bytes(const std::byte* data, std::size_t count) {
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 14;
  const hn::ScalableTag<T> d;
  const hn::ScalableTag<std::uint8_t> du8;
  const hn::ScalableTag<std::uint64_t> du64;
  const hn::ScalableTag<std::int16_t> d16;
  const hn::ScalableTag<std::int32_t> d32;
  const hn::Rebind<T, decltype(d16)> narrow;
  const std::size_t lanes = hn::Lanes(d);
  const T* p = reinterpret_cast<const T*>(data);
  const T* const end = p + count;
  const T* const vectors_end = end - count % lanes;
  std::int64_t sum = 0;
  std::int64_t squares = 0;
  T low = count > 0 ? *p : T{};
  T high = low;
  if (p != vectors_end) {
    // Signed bytes are summed as unsigned ones that are 128 larger.
    constexpr std::uint8_t kFlip = std::is_signed_v<T> ? 0x80 : 0;
    if (kFlip != 0) sum -= 128 * (vectors_end - p);
    auto lows = hn::LoadU(d, p);
    auto highs = lows;
    while (p != vectors_end) {
      const T* const part_end = p + std::min<std::size_t>(vectors_end - p, kMostAtOnce);
      auto sums = hn::Zero(du64);
      auto squares0 = hn::Zero(d32);
      auto squares1 = squares0;
      for (; p != part_end; p += lanes) {
        const auto v = hn::LoadU(d, p);
        lows = hn::Min(lows, v);
        highs = hn::Max(highs, v);
        sums = hn::Add(sums, hn::SumsOf8(hn::Xor(hn::BitCast(du8, v), hn::Set(du8, kFlip))));
        for (std::size_t i = 0; i < lanes; i += hn::Lanes(d16)) {
          const auto wide = hn::PromoteTo(d16, hn::LoadU(narrow, p + i));
          squares0 = hn::ReorderWidenMulAccumulate(d32, wide, wide, squares0, squares1);
        }
      }
      sum += static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(du64, sums)));
      squares += hn::GetLane(hn::SumOfLanes(d32, hn::Add(squares0, squares1)));
    }
    HWY_ALIGN T each[hn::MaxLanes(d)];
    hn::Store(lows, d, each);
    low = *std::min_element(each, each + lanes);
    hn::Store(highs, d, each);
    high = *std::max_element(each, each + lanes);
  }
  for (; p != end; ++p) {
    low = std::min(low, *p);
    high = std::max(high, *p);
    sum += *p;
    squares += std::int64_t{*p} * *p;
  }
  return {static_cast<double>(sum), static_cast<double>(squares), low, high};
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

// Of the magnitudes of complex numbers whose squares are in the range of float64 whatever they are.
template <class T>
Partial<double> reduce_complex(const std::byte* data, std::size_t count) {
  const hn::ScalableTag<double> d;
  using V = hn::Vec<decltype(d)>;
  const std::size_t lanes = hn::Lanes(d);
  const T* p = reinterpret_cast<const T*>(data);
  V sum = hn::Zero(d), squares = sum, low = hn::Inf(d), high = sum;
  V re, im;
  const auto add = [&](const T* from) HWY_ATTR {
    load_complex(d, from, re, im);
    const V square = hn::MulAdd(re, re, hn::Mul(im, im));
    squares = hn::Add(squares, square);
    sum = hn::Add(sum, hn::Sqrt(square));
    return square;
  };
  for (; count >= lanes; count -= lanes, p += 2 * lanes) {
    const V square = add(p);
    low = hn::Min(low, square);
    high = hn::Max(high, square);
  }
  if (count != 0) {
    HWY_ALIGN T tail[2 * hn::MaxLanes(d)];
    std::memset(tail, 0, sizeof tail);
    std::memcpy(tail, p, 2 * count * sizeof(T));
    const V square = add(tail);
    const auto is_there = hn::FirstN(d, count);
    low = hn::Min(low, hn::IfThenElse(is_there, square, hn::Inf(d)));
    high = hn::Max(high, square);
  }
  return {hn::GetLane(hn::SumOfLanes(d, sum)), hn::GetLane(hn::SumOfLanes(d, squares)),
          hn::GetLane(hn::Sqrt(hn::MinOfLanes(d, low))), hn::GetLane(hn::Sqrt(hn::MaxOfLanes(d, high)))};
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
  if constexpr (std::is_same_v<T, double>) {
    return {nullptr, &write_magnitudes<T>, 2 * sizeof(T)};
  } else {
    return {&reduce_complex<T>, &write_magnitudes<T>, 2 * sizeof(T)};
  }
}

const Kernels* get_kernels() {
  static constexpr Kernels kKernels{
      .target = HWY_TARGET,
      .float16 = real_kernel<hwy::float16_t>(),
      .bfloat16 = real_kernel<hwy::bfloat16_t>(),
      .float32 = real_kernel<float>(),
      .float64 = real_kernel<double>(),
      .float8_e4m3fn = reduce_kernel<Float8E4m3fn>(),
      .float8_e5m2 = reduce_kernel<Float8E5m2>(),
      .float8_e4m3fnuz = reduce_kernel<Float8E4m3fnuz>(),
      .float8_e5m2fnuz = reduce_kernel<Float8E5m2fnuz>(),
      .int8 = {&reduce_bytes<std::int8_t>, 1},
      .int16 = reduce_kernel<std::int16_t>(),
      .int32 = reduce_kernel<std::int32_t>(),
      .int64 = reduce_kernel<std::int64_t>(),
      .uint8 = {&reduce_bytes<std::uint8_t>, 1},
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
