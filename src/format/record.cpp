#include "format/record.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <concepts>
#include <limits>
#include <utility>

namespace msprobe {
namespace {

constexpr std::string_view kNull = "null";
constexpr std::string_view kPlainTensorType = "torch.Tensor";

void append_scalar(std::string& out, std::monostate) { out += kNull; }

void append_scalar(std::string& out, bool value) { out += value ? "true" : "false"; }

template <std::integral Integer>
void append_scalar(std::string& out, Integer value) {
  std::array<char, 24> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  out.append(text.data(), end);
}

void append_scalar(std::string& out, const BigInteger& value) { out += value.digits; }

void append_scalar(std::string& out, double value) { append_json_double(out, value); }

void append_scalar(std::string& out, const std::complex<double>& value) {
  out += '[';
  append_scalar(out, value.real());
  out += ", ";
  append_scalar(out, value.imag());
  out += ']';
}

void append_scalar(std::string& out, const std::string& value) { append_json_string(out, value); }

void append_scalar(std::string& out, const std::optional<std::int64_t>& value) {
  value ? append_scalar(out, *value) : append_scalar(out, std::monostate());
}

void append_scalar(std::string& out, const std::optional<double>& value) {
  value ? append_scalar(out, *value) : append_scalar(out, std::monostate());
}

template <typename Item>
void append_scalar(std::string& out, const std::vector<Item>& items) {
  out += '[';
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    append_scalar(out, items[i]);
  }
  out += ']';
}

template <typename... Alternatives>
void append_scalar(std::string& out, const std::variant<Alternatives...>& value) {
  std::visit([&](const auto& alternative) { append_scalar(out, alternative); }, value);
}

// Walks a value, depth first, and gives its parts to `Sink`: the text of the nesting to text(std::string_view), tensors
// to leaf(const TensorLeaf&), everything else to plain(const Value&).
template <typename Sink>
void walk(const Value& value, Sink& sink) {
  if (const auto* list = std::get_if<List>(&value.node)) {
    sink.text("[");
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (i > 0) sink.text(", ");
      walk((*list)[i], sink);
    }
    sink.text("]");
  } else if (const auto* map = std::get_if<Map>(&value.node)) {
    sink.text("{");
    for (std::size_t i = 0; i < map->size(); ++i) {
      std::string key = i > 0 ? ", " : "";
      append_json_string(key, (*map)[i].first);
      key += ": ";
      sink.text(key);
      walk((*map)[i].second, sink);
    }
    sink.text("}");
  } else if (const auto* leaf = std::get_if<TensorLeaf>(&value.node)) {
    sink.leaf(*leaf);
  } else {
    sink.plain(value);
  }
}

void append_tensor(std::string& out, const TensorLeaf& leaf, const LeafResult& result);

// `results` null: tensors have no values.
struct ValueSink {
  std::string& out;
  const std::span<const LeafResult>* results;
  std::size_t next = 0;

  void text(std::string_view text) { out += text; }
  void leaf(const TensorLeaf& leaf) {
    assert(results == nullptr || next < results->size());
    append_tensor(out, leaf, results == nullptr ? LeafResult{} : (*results)[next++]);
  }
  void plain(const Value& value) {
    if (const auto* scalar = std::get_if<Scalar>(&value.node)) {
      out += "{\"type\": ";
      append_json_string(out, scalar->type);
      out += ", \"value\": ";
      append_scalar(out, scalar->value);
      out += '}';
    } else if (const auto* raw = std::get_if<Raw>(&value.node)) {
      append_scalar(out, raw->value);
    } else {
      out += kNull;
    }
  }
};

template <typename Field>
void append_field(std::string& out, std::string_view key, const Field& value) {
  if (out.back() != '{') out += ", ";
  out += '"';
  out += key;
  out += "\": ";
  append_scalar(out, value);
}

void append_checksum(std::string& out, const std::optional<std::uint32_t>& checksum) {
  if (!checksum) return append_field(out, "md5", std::monostate());
  out += ", \"md5\": \"";
  append_hex(out, *checksum, 8);
  out += '"';
}

void append_extra(std::string& out, const TensorLeaf& leaf) {
  for (const auto& [key, value] : leaf.extra) {
    out += ", ";
    append_json_string(out, key);
    out += ": ";
    ValueSink sink{out, nullptr};
    walk(value, sink);
  }
}

void append_tensor(std::string& out, const TensorLeaf& leaf, const LeafResult& result) {
  const Statistics& statistics = result.statistics;
  out += '{';
  append_field(out, "type", leaf.type);
  append_field(out, "dtype", leaf.dtype);
  append_field(out, "shape", leaf.shape);
  append_field(out, "Max", statistics.max);
  append_field(out, "Min", statistics.min);
  append_field(out, "Mean", statistics.mean);
  append_field(out, "Norm", statistics.norm);
  if (leaf.requires_grad) append_field(out, "requires_grad", *leaf.requires_grad);
  append_extra(out, leaf);
  if (result.has_checksum_field) append_checksum(out, result.checksum);
  if (!result.data_name.empty()) append_field(out, "data_name", result.data_name);
  if (statistics.nan_count != 0) append_field(out, "nan_count", statistics.nan_count);
  if (statistics.pos_inf_count != 0) append_field(out, "pos_inf_count", statistics.pos_inf_count);
  if (statistics.neg_inf_count != 0) append_field(out, "neg_inf_count", statistics.neg_inf_count);
  out += '}';
}

// Number of elements that the recorded shape says, the largest number where a dimension is ragged.
std::int64_t most_elements(const TensorLeaf& leaf) {
  std::int64_t count = 1;
  for (const auto& size : leaf.shape) {
    if (!size || __builtin_mul_overflow(count, *size, &count)) return std::numeric_limits<std::int64_t>::max();
  }
  return std::max<std::int64_t>(count, 1);
}

// The longest result that any tensor can have, but for its counts.
LeafResult longest_result(bool with_checksum, std::size_t data_name_bytes) {
  constexpr double kLongest = std::numeric_limits<double>::lowest();  // -1.7976931348623157e+308
  LeafResult result;
  result.statistics = {kLongest, kLongest, kLongest, kLongest};
  result.has_checksum_field = with_checksum;
  result.checksum = 0;
  result.data_name.assign(data_name_bytes, 'x');
  return result;
}

std::size_t longest_gradient(const TensorLeaf& leaf, LeafResult longest) {
  Statistics& statistics = longest.statistics;
  statistics.nan_count = statistics.pos_inf_count = statistics.neg_inf_count = most_elements(leaf);
  const std::size_t size = render_tensor(leaf, longest).size();
  const std::size_t longer_type = kPlainTensorType.size() - std::min(kPlainTensorType.size(), leaf.type.size());
  constexpr std::size_t kFalseInsteadOfTrue = 1;  // requires_grad
  return size + longer_type + kFalseInsteadOfTrue;
}

struct SkeletonSink {
  RecordText record;
  LeafResult longest;

  void text(std::string_view text) { append_text(record, text); }
  void leaf(const TensorLeaf& leaf) {
    leaf.expects_gradient ? append_slot(record, {longest_gradient(leaf, longest)}) : text(kNull);
  }
  void plain(const Value&) { text(kNull); }
};

}  // namespace

std::string render_tensor(const TensorLeaf& leaf, const LeafResult& result) {
  std::string out;
  append_tensor(out, leaf, result);
  return out;
}

std::string number_text(const Extremum& number) {
  std::string out;
  append_scalar(out, number);
  return out;
}

std::string render_value(const Value& value, std::span<const LeafResult> results) {
  std::string out;
  ValueSink sink{out, &results};
  walk(value, sink);
  return out;
}

RecordText render_gradient_skeleton(const Value& value, bool with_checksum, std::size_t data_name_bytes) {
  SkeletonSink sink{{}, longest_result(with_checksum, data_name_bytes)};
  walk(value, sink);
  return std::move(sink.record);
}

void append_text(RecordText& record, std::string_view text) {
  if (text.empty()) return;
  if (!record.empty()) {
    if (auto* last = std::get_if<std::string>(&record.back())) {
      *last += text;
      return;
    }
  }
  record.emplace_back(std::string(text));
}

void append_slot(RecordText& record, Slot slot) { record.emplace_back(slot); }

void append_record(RecordText& record, RecordText&& more) {
  for (auto& piece : more) {
    if (const auto* text = std::get_if<std::string>(&piece)) {
      append_text(record, *text);
    } else {
      record.push_back(std::move(piece));
    }
  }
  more.clear();
}

}  // namespace msprobe
