#include "compare/verdict.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "compare/text.h"

namespace msprobe {
namespace {

// Mean and Norm depend in their last bits on the order of the sums, which differs between CPUs.
constexpr double kRoundingOfSums = 1e-12;

void decide(ComparedRow& row, Verdict verdict, Evidence evidence, std::string reason = {}) {
  row.verdict = verdict;
  row.evidence = evidence;
  row.reason = std::move(reason);
}

std::string against(const std::string& target, const std::string& golden) { return target + " against " + golden; }

Difference difference(const Extremum& golden, const Extremum& target) {
  const auto g = number_value(golden);
  const auto t = number_value(target);
  if (!g || !t) return {};
  if (same_number(golden, target)) return {0.0, 0.0};
  const auto* golden_integer = std::get_if<std::int64_t>(&golden);
  const auto* target_integer = std::get_if<std::int64_t>(&target);
  std::int64_t exact = 0;
  const bool is_exact = golden_integer != nullptr && target_integer != nullptr &&
                        !__builtin_sub_overflow(*target_integer, *golden_integer, &exact);
  const double absolute = is_exact ? static_cast<double>(exact) : *t - *g;
  return {absolute, std::abs(absolute) / std::abs(*g)};
}

// What each statistic may be off by; `scale` and `count` as far as they are known.
double allowed(Statistic statistic, double golden, const Tolerance& tolerance, double scale, double root_count) {
  switch (statistic) {
    case Statistic::kMax:
    case Statistic::kMin:
      return tolerance.atol + tolerance.rtol * std::abs(golden);
    case Statistic::kMean:
      return tolerance.atol + tolerance.rtol * scale + kRoundingOfSums * scale;
    case Statistic::kNorm:
      break;
  }
  return tolerance.atol * root_count + (tolerance.rtol + kRoundingOfSums) * std::abs(golden);
}

// The peer records no counts: what is not finite there is of an unknown number of elements.
bool has_counts(const RecordedTensor& tensor) {
  if (tensor.nan_count + tensor.pos_inf_count + tensor.neg_inf_count != 0) return true;
  return std::ranges::all_of(kStatistics, [&](Statistic statistic) {
    return std::isfinite(number_value(value_of(tensor, statistic)).value_or(0));
  });
}

// The values of a tensor, of which an item can hold two; nothing where the shape does not say.
std::optional<std::int64_t> value_count(const RecordedTensor& tensor) {
  const auto dtype = recorded_dtype(tensor.form->dtype);
  auto count = numel_of(tensor.form->shape);
  const std::int64_t per_item = dtype ? dtype_info(*dtype).values_per_item : 1;
  if (count && __builtin_mul_overflow(*count, per_item, &*count)) return std::nullopt;
  return count;
}

// The size of the elements: their root mean square; without a Norm (the peer has none of complex tensors) the largest.
double size_of_elements(const RecordedTensor& tensor) {
  if (const auto scale = recorded_scale(tensor)) return *scale;
  const auto magnitude = [](const Extremum& number) { return std::abs(number_value(number).value_or(0)); };
  const double largest = std::max(magnitude(tensor.max), magnitude(tensor.min));
  return number_value(tensor.norm) || !std::isfinite(largest) ? 0 : largest;
}

struct StatisticsVerdict {
  int compared = 0;  // statistics that both sides have
  bool same = true;
  std::string reason;  // of the first that is too far apart
};

StatisticsVerdict judge_statistics(const RecordedTensor& golden, const RecordedTensor& target,
                                   const Tolerance& tolerance, double scale) {
  StatisticsVerdict verdict;
  const double count = static_cast<double>(value_count(golden).value_or(1));
  for (const Statistic statistic : kStatistics) {
    const Extremum& g = value_of(golden, statistic);
    const Extremum& t = value_of(target, statistic);
    const auto golden_value = number_value(g);
    const auto target_value = number_value(t);
    if (!golden_value || !target_value) {
      verdict.same &= golden_value.has_value() == target_value.has_value();
      continue;
    }
    ++verdict.compared;
    if (same_number(g, t)) continue;
    verdict.same = false;
    const double error = std::abs(*target_value - *golden_value);
    const double limit = allowed(statistic, *golden_value, tolerance, scale, std::sqrt(count));
    const bool is_within = std::isfinite(*golden_value) && std::isfinite(*target_value) && error <= limit && limit > 0;
    if (is_within || !verdict.reason.empty()) continue;
    verdict.reason = std::string(statistic_text(statistic)) + " " + against(short_number(t), short_number(g));
    if (short_number(t) == short_number(g)) verdict.reason += " (differ by " + short_number(error) + ")";
  }
  const auto judge_count = [&](std::string_view what, std::int64_t g, std::int64_t t) {
    if (g == t) return;
    verdict.same = false;
    verdict.reason = std::string(what) + " " + against(std::to_string(t), std::to_string(g));
  };
  if (!has_counts(golden) || !has_counts(target)) return verdict;
  judge_count("count of -Inf", golden.neg_inf_count, target.neg_inf_count);
  judge_count("count of +Inf", golden.pos_inf_count, target.pos_inf_count);
  judge_count("count of NaN", golden.nan_count, target.nan_count);
  return verdict;
}

void judge_tensors(ComparedRow& row, const RecordedTensor& golden, const RecordedTensor& target,
                   const ToleranceOptions& options) {
  if (golden.form->requires_grad && target.form->requires_grad)
    row.requires_grad_equal = golden.form->requires_grad == target.form->requires_grad;
  if (!golden.md5.empty() && !target.md5.empty() && golden.form->dtype == target.form->dtype) {
    row.md5_equal = golden.md5 == target.md5;
  }
  for (const Statistic statistic : kStatistics) {
    row.statistics[static_cast<std::size_t>(statistic)] =
        difference(value_of(golden, statistic), value_of(target, statistic));
  }
  if (golden.form->shape != target.form->shape) {
    return decide(row, Verdict::kFail, Evidence::kStatistics,
                  "shape " + against(shape_text(target.form->shape), shape_text(golden.form->shape)));
  }
  if (row.md5_equal == true) return decide(row, Verdict::kEqual, Evidence::kMd5);

  const double scale = size_of_elements(golden);
  const auto dtype = deciding_dtype(golden, target);
  const Tolerance tolerance = element_tolerance(options, dtype.value_or(kDTypeOfPythonFloats), scale);
  StatisticsVerdict statistics = judge_statistics(golden, target, tolerance, scale);
  if (row.md5_equal == false) {
    const std::string also = statistics.reason.empty() ? "statistics agree" : statistics.reason;
    return decide(row, Verdict::kFail, Evidence::kMd5, "md5 differs; " + also);
  }
  if (!statistics.reason.empty())
    return decide(row, Verdict::kFail, Evidence::kStatistics, std::move(statistics.reason));
  if (numel_of(golden.form->shape) == 0) return decide(row, Verdict::kEqual, Evidence::kStatistics, "no elements");
  if (statistics.compared == 0)
    return decide(row, Verdict::kNotCompared, Evidence::kNothing, "no statistics on a side");
  decide(row, statistics.same ? Verdict::kEqual : Verdict::kPass, Evidence::kStatistics);
}

std::optional<double> parse_double(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The parts of a number: one, or two of a complex "[re, im]".
std::vector<double> parts_of(std::string_view text) {
  std::vector<double> parts;
  if (text.starts_with('[') && text.ends_with(']')) {
    text = text.substr(1, text.size() - 2);
    const std::size_t comma = text.find(", ");
    if (comma == std::string_view::npos) return {};
    const auto real = parse_double(text.substr(0, comma));
    const auto imag = parse_double(text.substr(comma + 2));
    if (real && imag) parts = {*real, *imag};
  } else if (const auto number = parse_double(text)) {
    parts = {*number};
  }
  return parts;
}

void judge_scalars(ComparedRow& row, const RecordedScalar& golden, const RecordedScalar& target,
                   const ToleranceOptions& options) {
  if (golden.value == target.value) {
    const bool same_type = golden.type == target.type;
    return decide(row, same_type ? Verdict::kEqual : Verdict::kPass, Evidence::kPlainValue,
                  same_type ? "" : "type " + against(target.type, golden.type));
  }
  const std::string difference = against(target.value, golden.value);
  const auto is_integer = [](const RecordedScalar& scalar) {
    return scalar.value.find_first_not_of("-0123456789") == std::string::npos;
  };
  const std::vector<double> g = parts_of(golden.value);
  const std::vector<double> t = parts_of(target.value);
  if (g.empty() || g.size() != t.size() || (is_integer(golden) && is_integer(target))) {
    return decide(row, Verdict::kFail, Evidence::kPlainValue, difference);
  }
  const double magnitude = std::hypot(g[0], g.size() == 2 ? g[1] : 0.0);
  const DType dtype = less_exact(recorded_dtype(golden.type).value_or(kDTypeOfPythonFloats),
                                 recorded_dtype(target.type).value_or(kDTypeOfPythonFloats));
  const Tolerance tolerance = element_tolerance(options, dtype, magnitude);
  bool within = true;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const bool same = g[i] == t[i] || (std::isnan(g[i]) && std::isnan(t[i]));
    const bool finite = std::isfinite(g[i]) && std::isfinite(t[i]);
    within &= same || (finite && std::abs(t[i] - g[i]) <= tolerance.atol + tolerance.rtol * std::abs(g[i]));
  }
  decide(row, within ? Verdict::kPass : Verdict::kFail, Evidence::kPlainValue, within ? "" : difference);
}

std::string kind_text(const RecordedLeaf& leaf) {
  if (std::holds_alternative<std::monostate>(leaf.content)) return "null";
  if (const auto* tensor = std::get_if<RecordedTensor>(&leaf.content)) return tensor->form->type;
  return std::get<RecordedScalar>(leaf.content).type;
}

}  // namespace

void judge_records(ComparedRow& row, const ToleranceOptions& options) {
  if (!row.pair.target.is_there()) return decide(row, Verdict::kGoldenOnly, Evidence::kNothing);
  if (!row.pair.golden.is_there()) return decide(row, Verdict::kTargetOnly, Evidence::kNothing);
  const RecordedLeaf& golden = *row.pair.golden.leaf;
  const RecordedLeaf& target = *row.pair.target.leaf;
  if (golden.content.index() != target.content.index()) {
    return decide(row, Verdict::kFail, Evidence::kPlainValue, against(kind_text(target), kind_text(golden)));
  }
  if (row.golden() != nullptr) return judge_tensors(row, *row.golden(), *row.target(), options);
  if (const auto* scalar = std::get_if<RecordedScalar>(&golden.content)) {
    return judge_scalars(row, *scalar, std::get<RecordedScalar>(target.content), options);
  }
  decide(row, Verdict::kEqual, Evidence::kPlainValue);
}

void judge_values(ComparedRow& row, const PairErrors& errors, const Tolerance& tolerance,
                  const ToleranceOptions& options) {
  const std::string count = std::to_string(errors.count);
  if (errors.bit_equal) return decide(row, Verdict::kEqual, Evidence::kValues);
  std::string reason;
  if (errors.nan_mismatches > 0) {
    reason = "NaN on one side only in " + std::to_string(errors.nan_mismatches) + " of " + count + " elements";
  } else if (errors.inf_mismatches > 0) {
    reason = "infinity on one side only, or of the other sign, in " + std::to_string(errors.inf_mismatches) + " of " +
             count + " elements";
  } else if (errors.beyond_tolerance > 0) {
    reason = std::to_string(errors.beyond_tolerance) + " of " + count + " elements beyond rtol " +
             short_number(tolerance.rtol) + ", atol " + short_number(tolerance.atol);
  } else if (options.cosine && errors.cosine && *errors.cosine < *options.cosine) {
    reason = "cosine " + short_number(*errors.cosine) + " below " + short_number(*options.cosine);
  }
  const Verdict verdict = reason.empty() ? Verdict::kPass : Verdict::kFail;
  decide(row, verdict, Evidence::kValues, std::move(reason));
  row.errors = std::make_unique<PairErrors>(errors);
}

std::optional<double> recorded_scale(const RecordedTensor& tensor) {
  const auto norm = number_value(tensor.norm);
  const auto count = value_count(tensor);
  if (!norm || !std::isfinite(*norm) || !count || *count == 0) return std::nullopt;
  return *norm / std::sqrt(static_cast<double>(*count));
}

std::optional<DType> deciding_dtype(const RecordedTensor& golden, const RecordedTensor& target) {
  const auto first = recorded_dtype(golden.form->dtype);
  const auto second = recorded_dtype(target.form->dtype);
  if (!first || !second) return std::nullopt;
  return less_exact(*first, *second);
}

}  // namespace msprobe
