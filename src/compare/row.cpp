#include "compare/row.h"

#include <vector>

#include "compare/dump.h"
#include "compare/text.h"
#include "msprobe/dtype.h"

namespace msprobe {
namespace {

const RecordedTensor* tensor_of(const LeafRef& ref) noexcept {
  return ref.is_there() ? std::get_if<RecordedTensor>(&ref.leaf->content) : nullptr;
}

}  // namespace

std::string_view verdict_text(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::kEqual:
      return "equal";
    case Verdict::kPass:
      return "pass";
    case Verdict::kFail:
      return "fail";
    case Verdict::kGoldenOnly:
      return "golden only";
    case Verdict::kTargetOnly:
      return "target only";
    case Verdict::kUnreadable:
      return "unreadable";
    case Verdict::kNotCompared:
      break;
  }
  return "not compared";
}

bool is_difference(Verdict verdict) noexcept {
  return verdict != Verdict::kEqual && verdict != Verdict::kPass && verdict != Verdict::kNotCompared;
}

std::string_view evidence_text(Evidence evidence) noexcept {
  switch (evidence) {
    case Evidence::kValues:
      return "values";
    case Evidence::kMd5:
      return "md5";
    case Evidence::kStatistics:
      return "statistics";
    case Evidence::kPlainValue:
      return "plain value";
    case Evidence::kNothing:
      break;
  }
  return "";
}

std::string_view statistic_text(Statistic statistic) noexcept {
  constexpr std::array<std::string_view, kStatistics.size()> kTexts = {"Max", "Min", "Mean", "Norm"};
  return kTexts[static_cast<std::size_t>(statistic)];
}

const Extremum& value_of(const RecordedTensor& tensor, Statistic statistic) noexcept {
  switch (statistic) {
    case Statistic::kMax:
      return tensor.max;
    case Statistic::kMin:
      return tensor.min;
    case Statistic::kMean:
      return tensor.mean;
    case Statistic::kNorm:
      break;
  }
  return tensor.norm;
}

const RecordedTensor* ComparedRow::golden() const noexcept { return tensor_of(pair.golden); }
const RecordedTensor* ComparedRow::target() const noexcept { return tensor_of(pair.target); }

std::string ComparedRow::name() const { return pair.golden.is_there() ? pair.golden.name() : pair.target.name(); }

bool ComparedRow::is_gradient() const noexcept {
  return (pair.golden.is_there() ? pair.golden : pair.target).record->is_gradient;
}

std::string ComparedRow::place_of(const WorstElement& element) const {
  std::vector<std::int64_t> shape;
  for (const auto& size : golden()->form->shape) shape.push_back(size.value_or(0));
  const auto dtype = recorded_dtype(golden()->form->dtype);
  if (dtype && !shape.empty()) shape.back() *= dtype_info(*dtype).values_per_item;
  const std::vector<std::optional<std::int64_t>> sizes(shape.begin(), shape.end());
  if (errors == nullptr || numel_of(sizes) != errors->count) return "#" + std::to_string(element.index);
  return place_text(element.index, shape);
}

}  // namespace msprobe
