#include "compare/columns.h"

#include <array>
#include <optional>
#include <utility>

#include "compare/dump.h"
#include "compare/text.h"
#include "compare/tolerance.h"
#include "format/record.h"

namespace msprobe {
namespace {

template <class Value>
Cell cell_of(const std::optional<Value>& value) {
  return value ? Cell(*value) : Cell();
}

Cell cell_of(const Extremum& number) {
  return std::visit([](const auto& value) { return Cell(value); }, number);
}

enum class Side : std::uint8_t { kTarget, kGolden };

template <Side side>
const LeafRef& ref_of(const ComparedRow& row) {
  return side == Side::kTarget ? row.pair.target : row.pair.golden;
}

template <Side side>
const RecordedTensor* tensor_of(const ComparedRow& row) {
  return side == Side::kTarget ? row.target() : row.golden();
}

template <Side side>
Cell name_cell(const ComparedRow& row) {
  return ref_of<side>(row).is_there() ? Cell(ref_of<side>(row).name()) : Cell();
}

template <Side side>
Cell dtype_cell(const ComparedRow& row) {
  if (const RecordedTensor* tensor = tensor_of<side>(row)) return tensor->form->dtype;
  if (!ref_of<side>(row).is_there()) return {};
  const auto* scalar = std::get_if<RecordedScalar>(&ref_of<side>(row).leaf->content);
  return scalar == nullptr ? Cell("None") : Cell(scalar->type);
}

template <Side side>
Cell shape_cell(const ComparedRow& row) {
  const RecordedTensor* tensor = tensor_of<side>(row);
  return tensor == nullptr ? Cell() : Cell(shape_text(tensor->form->shape));
}

template <Side side>
Cell requires_grad_cell(const ComparedRow& row) {
  const RecordedTensor* tensor = tensor_of<side>(row);
  return tensor == nullptr ? Cell() : cell_of(tensor->form->requires_grad);
}

template <Side side, Statistic statistic>
Cell statistic_cell(const ComparedRow& row) {
  const RecordedTensor* tensor = tensor_of<side>(row);
  return tensor == nullptr ? Cell() : cell_of(value_of(*tensor, statistic));
}

template <Side side>
Cell value_cell(const ComparedRow& row) {
  if (!ref_of<side>(row).is_there()) return {};
  const auto* scalar = std::get_if<RecordedScalar>(&ref_of<side>(row).leaf->content);
  return scalar == nullptr ? Cell() : Cell(scalar->value);
}

template <Side side>
Cell md5_cell(const ComparedRow& row) {
  const RecordedTensor* tensor = tensor_of<side>(row);
  return tensor == nullptr || tensor->md5.empty() ? Cell() : Cell(tensor->md5);
}

template <Side side, std::int64_t RecordedTensor::*field>
Cell count_cell(const ComparedRow& row) {
  const RecordedTensor* tensor = tensor_of<side>(row);
  return tensor == nullptr ? Cell() : Cell(tensor->*field);
}

template <Statistic statistic>
Cell difference_cell(const ComparedRow& row) {
  return cell_of(row.statistics[static_cast<std::size_t>(statistic)].absolute);
}

template <Statistic statistic>
Cell relative_cell(const ComparedRow& row) {
  return cell_of(row.statistics[static_cast<std::size_t>(statistic)].relative);
}

// What was compared by values and is equal in all bits has no errors of its own.
bool is_bit_equal(const ComparedRow& row) { return row.evidence == Evidence::kValues && row.errors == nullptr; }

// The cell of an error: `equal` where all bits are the same.
template <class Of>
Cell error_cell(const ComparedRow& row, Cell equal, Of of) {
  if (is_bit_equal(row)) return equal;
  return row.errors == nullptr ? Cell() : of(*row.errors);
}

// Likewise, of dtypes that have ULPs.
template <class Of>
Cell ulp_cell(const ComparedRow& row, Cell equal, Of of) {
  const RecordedTensor* golden = row.golden();
  const auto dtype = golden == nullptr ? std::nullopt : recorded_dtype(golden->form->dtype);
  return dtype && !precision_bits(*dtype) ? Cell() : error_cell(row, std::move(equal), of);
}

// Of the values where they were compared, else of the recorded maxima, as in the peer's two tables.
Cell max_relative_cell(const ComparedRow& row) {
  if (row.evidence != Evidence::kValues) return relative_cell<Statistic::kMax>(row);
  return error_cell(row, 0.0, [](const PairErrors& errors) {
    return errors.max_relative ? Cell(errors.max_relative->error) : Cell();
  });
}

using Worst = std::optional<WorstElement> PairErrors::*;

template <Worst worst>
Cell place_cell(const ComparedRow& row) {
  if (row.errors == nullptr || !(row.errors.get()->*worst)) return {};
  return row.place_of(*(row.errors.get()->*worst));
}

template <Worst worst, Side side>
Cell worst_value_cell(const ComparedRow& row) {
  if (row.errors == nullptr || !(row.errors.get()->*worst)) return {};
  const WorstElement& element = *(row.errors.get()->*worst);
  return exact_text(side == Side::kTarget ? element.target : element.golden);
}

template <Side side>
Cell data_name_cell(const ComparedRow& row) {
  const RecordedTensor* tensor = tensor_of<side>(row);
  return tensor == nullptr || tensor->data_name.empty() ? Cell() : Cell(tensor->data_name);
}

constexpr std::int64_t kNoneOf = 0;

using enum Side;
using enum Statistic;

constexpr std::array kColumns = {
    Column{"Step", [](const ComparedRow& row) { return cell_of(row.step); }},
    Column{"Rank", [](const ComparedRow& row) { return Cell(std::string(row.rank)); }},
    Column{"NPU Name", name_cell<kTarget>},
    Column{"Bench Name", name_cell<kGolden>},
    Column{"Verdict", [](const ComparedRow& row) { return Cell(std::string(verdict_text(row.verdict))); }},
    Column{"Compared by", [](const ComparedRow& row) { return Cell(std::string(evidence_text(row.evidence))); }},
    Column{"Err_message", [](const ComparedRow& row) { return Cell(row.reason); }},
    Column{"NPU Dtype", dtype_cell<kTarget>},
    Column{"Bench Dtype", dtype_cell<kGolden>},
    Column{"NPU Tensor Shape", shape_cell<kTarget>},
    Column{"Bench Tensor Shape", shape_cell<kGolden>},
    Column{"NPU Requires_grad", requires_grad_cell<kTarget>},
    Column{"Bench Requires_grad", requires_grad_cell<kGolden>},
    Column{"Requires_grad Consistent", [](const ComparedRow& row) { return cell_of(row.requires_grad_equal); }},
    Column{"Cosine",
           [](const ComparedRow& row) {
             return error_cell(row, 1.0, [](const PairErrors& errors) { return cell_of(errors.cosine); });
           }},
    Column{"EucDist",
           [](const ComparedRow& row) {
             return error_cell(row, 0.0, [](const PairErrors& errors) { return Cell(errors.euclidean_distance); });
           }},
    Column{"MaxAbsErr",
           [](const ComparedRow& row) {
             return error_cell(row, 0.0, [](const PairErrors& errors) {
               return errors.max_abs ? Cell(errors.max_abs->error) : Cell();
             });
           }},
    Column{"MaxRelativeErr", max_relative_cell},
    Column{"One Thousandth Err Ratio",
           [](const ComparedRow& row) {
             return error_cell(row, 1.0, [](const PairErrors& errors) { return Cell(errors.share_within_thousandth); });
           }},
    Column{"Five Thousandths Err Ratio",
           [](const ComparedRow& row) {
             return error_cell(row, 1.0,
                               [](const PairErrors& errors) { return Cell(errors.share_within_five_thousandths); });
           }},
    Column{"Max diff", difference_cell<kMax>},
    Column{"Min diff", difference_cell<kMin>},
    Column{"Mean diff", difference_cell<kMean>},
    Column{"L2norm diff", difference_cell<kNorm>},
    Column{"MinRelativeErr", relative_cell<kMin>},
    Column{"MeanRelativeErr", relative_cell<kMean>},
    Column{"NormRelativeErr", relative_cell<kNorm>},
    Column{"NPU max", statistic_cell<kTarget, kMax>},
    Column{"NPU min", statistic_cell<kTarget, kMin>},
    Column{"NPU mean", statistic_cell<kTarget, kMean>},
    Column{"NPU l2norm", statistic_cell<kTarget, kNorm>},
    Column{"Bench max", statistic_cell<kGolden, kMax>},
    Column{"Bench min", statistic_cell<kGolden, kMin>},
    Column{"Bench mean", statistic_cell<kGolden, kMean>},
    Column{"Bench l2norm", statistic_cell<kGolden, kNorm>},
    Column{"NPU value", value_cell<kTarget>},
    Column{"Bench value", value_cell<kGolden>},
    Column{"NPU MD5", md5_cell<kTarget>},
    Column{"BENCH MD5", md5_cell<kGolden>},
    Column{"NPU nan_count", count_cell<kTarget, &RecordedTensor::nan_count>},
    Column{"Bench nan_count", count_cell<kGolden, &RecordedTensor::nan_count>},
    Column{"NPU pos_inf_count", count_cell<kTarget, &RecordedTensor::pos_inf_count>},
    Column{"Bench pos_inf_count", count_cell<kGolden, &RecordedTensor::pos_inf_count>},
    Column{"NPU neg_inf_count", count_cell<kTarget, &RecordedTensor::neg_inf_count>},
    Column{"Bench neg_inf_count", count_cell<kGolden, &RecordedTensor::neg_inf_count>},
    Column{"MaxAbsErr at", place_cell<&PairErrors::max_abs>},
    Column{"MaxAbsErr NPU", worst_value_cell<&PairErrors::max_abs, kTarget>},
    Column{"MaxAbsErr Bench", worst_value_cell<&PairErrors::max_abs, kGolden>},
    Column{"MaxRelativeErr at", place_cell<&PairErrors::max_relative>},
    Column{"MaxRelativeErr NPU", worst_value_cell<&PairErrors::max_relative, kTarget>},
    Column{"MaxRelativeErr Bench", worst_value_cell<&PairErrors::max_relative, kGolden>},
    Column{"Max ULP",
           [](const ComparedRow& row) {
             return ulp_cell(row, kNoneOf, [](const PairErrors& errors) { return cell_of(errors.max_ulp); });
           }},
    Column{"One ULP Ratio",
           [](const ComparedRow& row) {
             return ulp_cell(row, 1.0, [](const PairErrors& errors) { return cell_of(errors.share_within_one_ulp); });
           }},
    Column{"Equal after rounding",
           [](const ComparedRow& row) {
             return row.errors == nullptr ? Cell() : cell_of(row.errors->equal_after_rounding);
           }},
    Column{"NaN mismatches",
           [](const ComparedRow& row) {
             return error_cell(row, kNoneOf, [](const PairErrors& errors) { return Cell(errors.nan_mismatches); });
           }},
    Column{"Inf mismatches",
           [](const ComparedRow& row) {
             return error_cell(row, kNoneOf, [](const PairErrors& errors) { return Cell(errors.inf_mismatches); });
           }},
    Column{"Beyond tolerance",
           [](const ComparedRow& row) {
             return error_cell(row, kNoneOf, [](const PairErrors& errors) { return Cell(errors.beyond_tolerance); });
           }},
    Column{"NPU Data_name", data_name_cell<kTarget>},
    Column{"Bench Data_name", data_name_cell<kGolden>},
};

}  // namespace

std::span<const Column> compare_columns() { return kColumns; }

}  // namespace msprobe
