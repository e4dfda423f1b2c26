#pragma once
// What PairErrors should be: one element after the other, in long double or integers, with tables instead of bit
// tricks.

#include <cstddef>
#include <span>
#include <vector>

#include "compare/pair_errors.h"

namespace msprobe::testing_oracle {

struct Side {
  DType dtype;
  std::span<const std::byte> bytes;
};

// Checks every field of `found`: counts, indices, values and real errors exactly, sums to 1e-12.
void expect_pair_errors(const Side& golden, const Side& target, Tolerance tolerance, const PairErrors& found);

template <class T>
Side side(DType dtype, const std::vector<T>& values) {
  return {dtype, std::as_bytes(std::span(values))};
}

// The errors in one call.
[[nodiscard]] PairErrors errors_of(const Side& golden, const Side& target, Tolerance tolerance = {});

}  // namespace msprobe::testing_oracle
