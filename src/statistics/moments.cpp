#include "statistics/moments.h"

#include <cmath>

namespace msprobe {

void Moments::add_normal(double sum, double squares, std::int64_t repeat) noexcept {
  const auto weight = static_cast<double>(repeat);
  sum_.add(sum * weight);
  squares_.add(squares * weight);
}

void Moments::add_tiny(double sum, double squares, std::int64_t repeat) noexcept {
  const auto weight = static_cast<double>(repeat);
  sum_.add(sum * weight * kTinyUnit);
  tiny_squares_.add(squares * weight);
}

void Moments::add_huge(double sum, double squares, std::int64_t repeat) noexcept {
  const auto weight = static_cast<double>(repeat);
  huge_sum_.add(sum * weight);
  huge_squares_.add(squares * weight);
}

void Moments::merge(const Moments& other) noexcept {
  sum_.add(other.sum_);
  huge_sum_.add(other.huge_sum_);
  squares_.add(other.squares_);
  tiny_squares_.add(other.tiny_squares_);
  huge_squares_.add(other.huge_squares_);
}

double Moments::mean(std::int64_t count) const noexcept {
  const auto divisor = static_cast<double>(count);
  if (huge_squares_.value() == 0) return sum_.value() / divisor;
  return (huge_sum_.value() + sum_.value() / kHugeUnit) / divisor * kHugeUnit;
}

double Moments::norm() const noexcept {
  constexpr double kSquaredUnit = 0x1p-1000;  // 2^-1200 in two exact steps that do not underflow on their own
  constexpr double kRest = 0x1p-200;
  if (const double huge = huge_squares_.value(); huge > 0) {
    return std::sqrt(huge + squares_.value() * kRest * kSquaredUnit) * kHugeUnit;
  }
  if (const double normal = squares_.value(); normal > 0) {
    return std::sqrt(normal + tiny_squares_.value() * kRest * kSquaredUnit);
  }
  return std::sqrt(tiny_squares_.value()) * kTinyUnit;
}

}  // namespace msprobe
