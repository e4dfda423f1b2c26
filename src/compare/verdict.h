#pragma once
// Whether two leaves are the same computation.
//
// The strongest evidence decides: values, else md5, else statistics. What passes by values passes by statistics too,
// because an error of at most atol + rtol * |g| in each element, rtol <= 1, bounds that of the statistics:
//   Max, Min   atol + rtol * |g|
//   Mean       atol + rtol * scale      (mean of |g| <= scale, the root mean square)
//   Norm       atol * sqrt(n) + rtol * Norm

#include <optional>
#include <string>

#include "compare/row.h"
#include "compare/tolerance.h"

namespace msprobe {

// Fills the differences, verdict, evidence and reason of `row` from what was recorded. Its pair is set.
void judge_records(ComparedRow& row, const ToleranceOptions& options);

// Both leaves of `row` are tensors of one shape, and their values have these errors: sets verdict, evidence and reason
// anew.
void judge_values(ComparedRow& row, const PairErrors& errors, const Tolerance& tolerance,
                  const ToleranceOptions& options);

// Root mean square of the values of `tensor` by its Norm, nothing where that is not known or not finite.
[[nodiscard]] std::optional<double> recorded_scale(const RecordedTensor& tensor);

// The dtype whose tolerance holds for the pair: the less exact of the recorded ones; nothing if one is not known.
[[nodiscard]] std::optional<DType> deciding_dtype(const RecordedTensor& golden, const RecordedTensor& target);

}  // namespace msprobe
