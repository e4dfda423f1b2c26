#pragma once
// Where two runs part first.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "compare/comparison.h"

namespace msprobe {

// The first row that fails: of the earliest step, forward before backward, and in that the earliest save.
struct Divergence {
  std::optional<std::int64_t> step;
  std::vector<std::string> ranks;  // where this row fails in this step
  std::string golden_name, target_name;
  std::vector<std::string> details;  // lines: the reason, and both values
  // Backward runs from the last save to the first, so that of several gradients the one saved last is likely the
  // origin. Set where the row is of a gradient and another one of the step fails, too.
  std::string last_gradient;
};

class DivergenceFinder : public RowSink {
 public:
  void add(const ComparedRow& row) override;
  // Nothing: no row with both sides fails.
  [[nodiscard]] std::optional<Divergence> result() const;

 private:
  using Place = std::tuple<bool, std::size_t>;  // gradient, position

  std::optional<Divergence> first_;
  Place place_;
  std::map<std::string, std::vector<std::string>> ranks_;  // of the rows that fail in the step of first_
  std::size_t last_gradient_position_ = 0;
  std::string last_gradient_;
};

// Counts verdicts.
class VerdictCounter : public RowSink {
 public:
  void add(const ComparedRow& row) override { ++counts_[static_cast<std::size_t>(row.verdict)]; }
  [[nodiscard]] std::int64_t count(Verdict verdict) const { return counts_[static_cast<std::size_t>(verdict)]; }
  [[nodiscard]] std::int64_t differences() const;
  [[nodiscard]] std::int64_t rows() const;

 private:
  std::array<std::int64_t, kVerdictCount> counts_{};
};

}  // namespace msprobe
