#pragma once
// Statistics the slow way, one element after the other in long double, and help for comparing with them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "statistics/statistics.h"

namespace msprobe::testing_oracle {

// The values of `bytes`; complex dtypes: the magnitudes.
[[nodiscard]] std::vector<long double> decode(DType dtype, std::span<const std::byte> bytes);

// Asserts that `found` are the statistics of `values`, each counted `repeat` times: extremes exact (magnitudes: within
// 4e-16), Norm, and Mean against mean |x|, within 1e-12.
void expect_statistics(DType dtype, const Statistics& found, std::span<const long double> values,
                       std::int64_t repeat = 1);

// Bytes of `count` elements of `dtype`. `any_bits`: every bit pattern, else finite values of moderate size.
[[nodiscard]] std::vector<std::byte> random_elements(DType dtype, std::size_t count, std::uint64_t seed, bool any_bits);

template <class T>
[[nodiscard]] Statistics statistics_of(DType dtype, const std::vector<T>& values) {
  StatisticsAccumulator accumulator(dtype);
  accumulator.add(std::as_bytes(std::span(values)));
  return accumulator.result();
}

// An extremum of any type as a number. NaN for nothing.
[[nodiscard]] long double as_number(const Extremum& extremum);

}  // namespace msprobe::testing_oracle
