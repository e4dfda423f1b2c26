#pragma once
// Where two runs part first.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compare/comparison.h"

namespace msprobe {

// Finds the earliest of some rows: of the first step that has one, forward before backward, and in that the one that
// comes first in its folder.
class EarliestRow {
 public:
  // Rows come in the order of their steps, those of a rank together. `position`: in the folder of the rank. Returns
  // whether this row is the earliest so far.
  bool add(std::optional<std::int64_t> step, std::string_view rank, std::string_view name, bool is_gradient,
           std::size_t position);
  // The ranks of which `name` was added in the step of the earliest, in few words.
  [[nodiscard]] std::string ranks_of(std::string_view name) const;

 private:
  bool has_row_ = false;
  std::optional<std::int64_t> step_;
  std::pair<bool, std::size_t> place_;
  std::vector<std::string> ranks_;
  std::vector<std::pair<std::size_t, std::size_t>> rows_;  // of step_: hash of the name, index of the rank
};

// The first row that fails, as EarliestRow says.
struct Divergence {
  std::optional<std::int64_t> step;
  std::string ranks;  // where this row fails in this step: "rank0-rank63"
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
  EarliestRow earliest_;
  std::optional<Divergence> first_;
  bool first_is_gradient_ = false;
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
