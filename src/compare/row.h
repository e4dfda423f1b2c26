#pragma once
// One row of a comparison.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "compare/match.h"
#include "compare/pair_errors.h"

namespace msprobe {

enum class Verdict : std::uint8_t {
  kEqual,        // all bits, or all that was recorded, are the same
  kPass,         // within the tolerance
  kFail,         // both are there and differ
  kGoldenOnly,   // a difference too
  kTargetOnly,   // likewise
  kUnreadable,   // a tensor file is damaged or missing: a difference, for nobody can say that there is none
  kNotCompared,  // nothing was recorded that could be compared; told, but no difference
};
inline constexpr std::size_t kVerdictCount = 7;

// "equal", "pass", "fail", "golden only", ...
[[nodiscard]] std::string_view verdict_text(Verdict verdict) noexcept;
// Whether the exit code of the command says so.
[[nodiscard]] bool is_difference(Verdict verdict) noexcept;

// What a verdict rests on, from the strongest.
enum class Evidence : std::uint8_t { kNothing, kValues, kMd5, kStatistics, kPlainValue };
[[nodiscard]] std::string_view evidence_text(Evidence evidence) noexcept;

// Target minus golden, and that divided by |golden|; nothing where a side has no number.
struct Difference {
  std::optional<double> absolute;
  std::optional<double> relative;
};

// In the order of a record.
enum class Statistic : std::uint8_t { kMax, kMin, kMean, kNorm };
inline constexpr std::array kStatistics = {Statistic::kMax, Statistic::kMin, Statistic::kMean, Statistic::kNorm};
[[nodiscard]] std::string_view statistic_text(Statistic statistic) noexcept;
[[nodiscard]] const Extremum& value_of(const RecordedTensor& tensor, Statistic statistic) noexcept;

struct ComparedRow {
  std::optional<std::int64_t> step;
  std::string_view rank;     // "rank3"; where the sides are called differently: "proc7 / proc8"
  std::size_t position = 0;  // among the rows of its folder
  LeafPair pair;
  Verdict verdict = Verdict::kNotCompared;
  Evidence evidence = Evidence::kNothing;
  std::string reason;  // in words, empty where the verdict says all

  std::array<Difference, kStatistics.size()> statistics;
  std::optional<bool> md5_equal;
  std::optional<bool> requires_grad_equal;
  std::unique_ptr<PairErrors> errors;  // nothing: the values were not compared, or are equal in all bits

  [[nodiscard]] const RecordedTensor* golden() const noexcept;  // nothing: no tensor
  [[nodiscard]] const RecordedTensor* target() const noexcept;
  // The name on the golden side, else on the target's.
  [[nodiscard]] std::string name() const;
  [[nodiscard]] bool is_gradient() const noexcept;
  // The place of a value of `errors`: "[1, 2]", "#7" where the recorded shape does not say. In the last dimension of a
  // packed dtype each value counts.
  [[nodiscard]] std::string place_of(const WorstElement& element) const;
};

}  // namespace msprobe
