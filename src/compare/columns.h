#pragma once
// The columns of compare.csv, compare.xlsx and compare.jsonl, in one place. Names as in the peer's tables where it has
// the column ("NPU" is the target, "Bench" golden); what each holds stands in docs/compare.md.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "compare/row.h"

namespace msprobe {

// std::monostate: empty.
using Cell = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string>;

struct Column {
  std::string_view name;
  Cell (*cell)(const ComparedRow& row);
};

[[nodiscard]] std::span<const Column> compare_columns();

}  // namespace msprobe
