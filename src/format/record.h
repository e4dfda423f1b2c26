#pragma once
// The JSON text of records, in the peer's order and spelling. Layout: docs/formats/debug_json.md.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "format/debug_json.h"
#include "format/json_text.h"  // IWYU pragma: export
#include "msprobe/value.h"
#include "statistics/statistics.h"

namespace msprobe {

// What a job found out about one tensor leaf.
struct LeafResult {
  Statistics statistics;
  bool has_checksum_field = false;        // summary_mode md5
  std::optional<std::uint32_t> checksum;  // nothing with has_checksum_field: "md5": null
  std::string data_name;                  // empty: no file
};

// `{"type": ..., "dtype": ..., ...}` of one tensor leaf.
[[nodiscard]] std::string render_tensor(const TensorLeaf& leaf, const LeafResult& result);

// A number of a record as JSON has it, "null" for nothing.
[[nodiscard]] std::string number_text(const Extremum& number);

// The text of `value`, where `results` holds one entry for each tensor leaf in depth-first order.
[[nodiscard]] std::string render_value(const Value& value, std::span<const LeafResult> results);

// The text of the gradient record of `value`: the same nesting, with a slot for each leaf that expects a gradient
// (in depth-first order) and null for every other leaf. A slot holds any gradient of the leaf's dtype, shape and extra
// fields, whose type is the leaf's or torch.Tensor. `data_name_bytes`: the longest file name that a gradient can get,
// as it stands in JSON, 0 without files.
[[nodiscard]] RecordText render_gradient_skeleton(const Value& value, bool with_checksum, std::size_t data_name_bytes);

// Append to a record that is being composed. Text next to text becomes one piece.
void append_text(RecordText& record, std::string_view text);
void append_slot(RecordText& record, Slot slot);
void append_record(RecordText& record, RecordText&& more);

}  // namespace msprobe
