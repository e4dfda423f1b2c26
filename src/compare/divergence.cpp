#include "compare/divergence.h"

#include <functional>
#include <numeric>

#include "compare/text.h"
#include "format/record.h"

namespace msprobe {
namespace {

std::string statistics_line(const std::string& side, const RecordedTensor& tensor) {
  std::string line = side + tensor.form->dtype + " " + shape_text(tensor.form->shape);
  for (const Statistic statistic : kStatistics) {
    line += "  " + std::string(statistic_text(statistic)) + " " + short_number(value_of(tensor, statistic));
  }
  const std::string counts = non_finite_text(tensor, "  ");
  if (!counts.empty()) line += "  " + counts;
  return line;
}

std::vector<std::string> details_of(const ComparedRow& row) {
  std::vector<std::string> lines;
  if (!row.reason.empty()) lines.push_back(row.reason);
  if (row.golden() != nullptr) lines.push_back(statistics_line("golden  ", *row.golden()));
  if (row.target() != nullptr) lines.push_back(statistics_line("target  ", *row.target()));
  if (row.errors == nullptr || !row.errors->max_abs) return lines;
  const WorstElement& worst = *row.errors->max_abs;
  lines.push_back("largest error " + short_number(worst.error) + " at " + row.place_of(worst) + ": target " +
                  short_number(worst.target) + ", golden " + short_number(worst.golden));
  if (row.errors->cosine) lines.back() += "; cosine " + short_number(*row.errors->cosine);
  return lines;
}

}  // namespace

bool EarliestRow::add(std::optional<std::int64_t> step, std::string_view rank, std::string_view name, bool is_gradient,
                      std::size_t position) {
  if (has_row_ && step != step_) return false;
  step_ = step;
  if (ranks_.empty() || ranks_.back() != rank) ranks_.emplace_back(rank);
  rows_.emplace_back(std::hash<std::string_view>()(name), ranks_.size() - 1);
  const std::pair place{is_gradient, position};
  if (std::exchange(has_row_, true) && place_ <= place) return false;
  place_ = place;
  return true;
}

std::string EarliestRow::ranks_of(std::string_view name) const {
  const std::size_t hash = std::hash<std::string_view>()(name);
  std::vector<std::string> ranks;
  for (const auto& [row_hash, rank] : rows_) {
    if (row_hash == hash) ranks.push_back(ranks_[rank]);
  }
  return rank_list_text(std::move(ranks));
}

void DivergenceFinder::add(const ComparedRow& row) {
  const bool fails = row.verdict == Verdict::kFail || row.verdict == Verdict::kUnreadable;
  if (!fails || (first_ && first_->step != row.step)) return;  // rows come in the order of their steps
  const std::string name = row.name();
  const bool is_earliest = earliest_.add(row.step, row.rank, name, row.is_gradient(), row.position);
  if (row.is_gradient() && row.position >= last_gradient_position_) {
    last_gradient_position_ = row.position;
    last_gradient_ = name;
  }
  if (!is_earliest) return;
  first_is_gradient_ = row.is_gradient();
  first_ = Divergence{row.step, {}, name, row.pair.target.name(), details_of(row), {}};
}

std::optional<Divergence> DivergenceFinder::result() const {
  std::optional<Divergence> result = first_;
  if (!result) return result;
  result->ranks = earliest_.ranks_of(result->golden_name);
  if (first_is_gradient_ && last_gradient_ != result->golden_name) result->last_gradient = last_gradient_;
  return result;
}

std::int64_t VerdictCounter::differences() const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (is_difference(static_cast<Verdict>(i))) sum += counts_[i];
  }
  return sum;
}

std::int64_t VerdictCounter::rows() const { return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0}); }

}  // namespace msprobe
