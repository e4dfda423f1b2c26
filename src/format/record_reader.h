#pragma once
// Reads debug.json, ours or the peer's: records with their leaves, in the order of the file.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "statistics/statistics.h"

namespace msprobe {

// What a tensor or an array is, without its values.
struct TensorForm {
  std::string type;                                          // "torch.Tensor", "numpy.ndarray"
  std::string dtype;                                         // as the framework spells it: "torch.float32", "Float32"
  std::vector<std::optional<std::int64_t>> shape;            // nothing: a ragged dimension
  std::optional<bool> requires_grad{};                       // nothing: not recorded
  std::vector<std::pair<std::string, std::string>> extra{};  // further fields, as JSON: device_mesh, placements

  auto operator<=>(const TensorForm&) const = default;  // NOLINT(modernize-use-nullptr): a false alarm on <=>
};

// A tensor or an array as it was recorded. A dump has millions of them, of few forms: equal ones of a file are one.
struct RecordedTensor {
  std::shared_ptr<const TensorForm> form;  // never null in a record
  Extremum max, min, mean, norm;           // numbers as they stand there: 3 is an integer, 3.0 a double
  std::string md5;                         // empty: none
  std::string data_name;                   // empty: no file
  std::int64_t nan_count = 0;
  std::int64_t pos_inf_count = 0;
  std::int64_t neg_inf_count = 0;
};

// Anything else that has a type: {"type": "int", "value": 3}; `value` is JSON text. An empty list or object is
// {"list", "[]"} or {"dict", "{}"}.
struct RecordedScalar {
  std::string type;
  std::string value;
};

// One leaf of a record. std::monostate: null.
struct RecordedLeaf {
  std::string index;  // where it stands in the nesting: "b.0"; empty: the record is the leaf. Unique in a record.
  std::variant<std::monostate, RecordedTensor, RecordedScalar> content;
};

struct Record {
  std::string key;             // "x_grad.0.debug"
  std::size_t name_bytes = 0;  // of the key: those of name()
  std::int64_t count = 0;
  bool is_gradient = false;
  std::vector<RecordedLeaf> leaves;

  // "x", also of a gradient.
  [[nodiscard]] std::string_view name() const noexcept { return std::string_view(key).substr(0, name_bytes); }
};

struct RecordFile {
  std::string task;
  std::string level;
  std::string framework;
  std::vector<Record> records;
};

// Returns what `text` holds. `path` stands in messages. Takes NaN, Infinity and -Infinity as numbers, and any depth.
// Memory: in proportion to `text`; a file whose indexes would take more, as no real one does, is refused.
// Throws: FormatError with the path, the byte offset and what is wrong there.
[[nodiscard]] RecordFile parse_records(std::string text, const std::string& path);

// Sets name_bytes, count and is_gradient of each record from its key "{name}[_grad[#n]].{count}.debug". It is of a
// gradient only if there is a record of `name` with that count: `x_grad` may also be a user's name. A key of another
// form is a name of its own.
void name_records(std::vector<Record>& records);

// Returns how a row of a table names a leaf: the key, and with a nesting "." and the index.
[[nodiscard]] std::string leaf_name(const Record& record, const RecordedLeaf& leaf);

// Reads a number of JSON or NaN, Infinity, -Infinity; nothing if it is none. An integer of more than 64 bits becomes
// the nearest double.
[[nodiscard]] Extremum parse_number(std::string_view text);
// Returns a number as float64 (integers rounded, bool 0 or 1), nothing for null.
[[nodiscard]] std::optional<double> number_value(const Extremum& number);
// Compares exactly, whatever the types; NaN equals NaN, nothing equals only nothing.
[[nodiscard]] bool same_number(const Extremum& a, const Extremum& b);

// Appends the record of a leaf as JSON.
void append_leaf(std::string& out, const RecordedLeaf& leaf);

}  // namespace msprobe
