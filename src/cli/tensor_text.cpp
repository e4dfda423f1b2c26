#include "cli/tensor_text.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "compare/pair_elements.h"
#include "compare/text.h"
#include "compare/verification.h"
#include "format/json_text.h"
#include "format/record.h"
#include "format/tensor_reader.h"

namespace msprobe {
namespace {

// As NumPy prints an array: with more than 2 * edge_ entries in a dimension only those at its ends.
class CornerText {
 public:
  explicit CornerText(const TensorFileReader& file) : file_(file), shape_(file.info().shape) {
    constexpr std::size_t kMostDims = 8;  // with two entries of each, it is 256 elements
    if (shape_.size() > kMostDims || file.numel() == 0) shape_ = {file.numel()};
    edge_ = shape_.size() > 3 ? 1 : 3;
    append(0, 0);
  }

  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void append(std::size_t dim, std::int64_t first) {
    if (dim == shape_.size()) return append_element(first);
    const std::int64_t size = shape_[dim];
    std::int64_t stride = 1;
    for (std::size_t i = dim + 1; i < shape_.size(); ++i) stride *= shape_[i];
    const bool is_row = dim + 1 == shape_.size();
    text_ += '[';
    for (std::int64_t i = 0; i < size; ++i) {
      if (i > 0) text_ += is_row ? ", " : ",\n" + std::string(dim + 3, ' ');
      if (i == edge_ && size > 2 * edge_) {
        text_ += is_row ? "..., " : "...,\n" + std::string(dim + 3, ' ');
        i = size - edge_;
      }
      append(dim + 1, first + i * stride);
    }
    text_ += ']';
  }

  void append_element(std::int64_t index) {
    const DTypeInfo& dtype = dtype_info(file_.info().dtype);
    std::array<std::byte, 16> item{};
    const auto bytes = std::span(item).first(dtype.item_bytes);
    file_.read(static_cast<std::uint64_t>(index) * dtype.item_bytes, bytes);
    text_ += short_number(number_at(file_.info().dtype, bytes, 0));
    if (dtype.values_per_item == 2) text_ += "|" + short_number(number_at(file_.info().dtype, bytes, 1));
  }

  const TensorFileReader& file_;
  std::vector<std::int64_t> shape_;
  std::int64_t edge_;
  std::string text_;
};

std::string_view format_text(FileFormat format) { return format == FileFormat::kPt ? ".pt" : ".npy"; }

struct Field {
  std::string_view name;
  std::string text;  // JSON, too
};

// What both forms show, in this order.
std::vector<Field> fields_of(const TensorFileReader& file) {
  const TensorFileInfo& info = file.info();
  const Statistics statistics = read_content(file).statistics;
  const auto quoted = [](std::string_view text) {
    std::string json;
    append_json_string(json, text);
    return json;
  };
  const auto optional_text = [](const std::optional<double>& number) {
    return number_text(number ? Extremum(*number) : Extremum());
  };
  std::vector<Field> fields = {{"format", quoted(format_text(info.format))},
                               {"dtype", quoted(dtype_info(info.dtype).name)},
                               {"shape", shape_text(info.shape)}};
  if (!info.is_contiguous) fields.push_back({"strides", shape_text(info.strides)});
  if (!info.device.empty()) fields.push_back({"device", quoted(info.device)});
  fields.push_back({"bytes", std::to_string(file.total_bytes())});
  fields.push_back({"Max", number_text(statistics.max)});
  fields.push_back({"Min", number_text(statistics.min)});
  fields.push_back({"Mean", optional_text(statistics.mean)});
  fields.push_back({"Norm", optional_text(statistics.norm)});
  const auto add_count = [&](std::string_view name, std::int64_t count) {
    if (count > 0) fields.push_back({name, std::to_string(count)});
  };
  add_count("nan_count", statistics.nan_count);
  add_count("pos_inf_count", statistics.pos_inf_count);
  add_count("neg_inf_count", statistics.neg_inf_count);
  return fields;
}

}  // namespace

std::string tensor_file_text(const std::string& path) {
  const TensorFileReader file(path);
  std::string text;
  for (const Field& field : fields_of(file)) {
    const std::string value = field.text.starts_with('"') ? field.text.substr(1, field.text.size() - 2) : field.text;
    text += std::string(field.name) + std::string(15 - field.name.size(), ' ') + value + "\n";
  }
  return text + "\n  " + CornerText(file).text() + "\n";
}

std::string tensor_file_json(const std::string& path) {
  const TensorFileReader file(path);
  std::string text;
  for (const Field& field : fields_of(file)) {
    text += (text.empty() ? "{\"" : ", \"") + std::string(field.name) + "\": " + field.text;
  }
  return text + "}\n";
}

}  // namespace msprobe
