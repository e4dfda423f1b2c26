#pragma once
// Numbers and shapes in words, for people.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compare/pair_errors.h"
#include "format/record_reader.h"

namespace msprobe {

// Six significant digits: "1.5", "1e-08", "nan", "-inf"; integers and bool in full; nothing: "null".
[[nodiscard]] std::string short_number(double number);
[[nodiscard]] std::string short_number(const Extremum& number);
[[nodiscard]] std::string short_number(const Number& number);  // complex: "1.5-2i"

// All digits, as JSON has it; complex: "[1.5, -2.0]".
[[nodiscard]] std::string exact_text(const Number& number);

// "[2, 3]"; "[]" of 0-dim; "null" for a ragged dimension.
[[nodiscard]] std::string shape_text(const std::vector<std::optional<std::int64_t>>& shape);
[[nodiscard]] std::string shape_text(std::span<const std::int64_t> shape);

// What is not finite in a tensor: "3 NaN, 1 +Inf" with `separator` ", "; empty where nothing was counted.
[[nodiscard]] std::string non_finite_text(const RecordedTensor& tensor, std::string_view separator);

// The number of elements of `shape`, nothing where it is ragged, negative or beyond an int64.
[[nodiscard]] std::optional<std::int64_t> numel_of(const std::vector<std::optional<std::int64_t>>& shape);

// The place of element `index` (C order) in `shape`, which has it: "[1, 2]".
[[nodiscard]] std::string place_text(std::int64_t index, std::span<const std::int64_t> shape);

// Names of ranks in few words: "rank0-rank63", "rank0, rank3-rank5". Takes them in any order, each counts once.
[[nodiscard]] std::string rank_list_text(std::vector<std::string> ranks);

}  // namespace msprobe
