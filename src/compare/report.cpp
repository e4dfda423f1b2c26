#include "compare/report.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "compare/columns.h"
#include "format/json_text.h"
#include "format/record.h"
#include "format/write_buffer.h"

namespace msprobe {
namespace {

class TextReport : public Report {
 public:
  TextReport(const Directory& folder, const std::string& name) : name_(name), file_(folder, name), out_(file_) {}

  void finish() final {
    out_.flush();
    file_.commit(name_, true);
  }

 protected:
  void write(std::string_view text) { out_.write(text); }
  std::string line_;  // reused

 private:
  std::string name_;
  NewFile file_;
  WriteBuffer out_;
};

void append_number(std::string& out, const Cell& cell) {
  std::visit(
      [&]<class Value>(const Value& value) {
        if constexpr (!std::is_same_v<Value, std::string>) out += number_text(Extremum(value));
      },
      cell);
}

void append_csv_text(std::string& out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char letter : text) {
    if (letter == '"') out += '"';
    out += letter;
  }
  out += '"';
}

class CsvReport final : public TextReport {
 public:
  CsvReport(const Directory& folder, const std::string& name) : TextReport(folder, name) {
    line_.clear();
    for (const Column& column : compare_columns()) {
      if (!line_.empty()) line_ += ',';
      append_csv_text(line_, column.name);
    }
    line_ += '\n';
    write(line_);
  }

  void add(const ComparedRow& row) override {
    line_.clear();
    bool first = true;
    for (const Column& column : compare_columns()) {
      if (!first) line_ += ',';
      first = false;
      const Cell cell = column.cell(row);
      if (const auto* text = std::get_if<std::string>(&cell)) {
        append_csv_text(line_, *text);
      } else if (!std::holds_alternative<std::monostate>(cell)) {
        append_number(line_, cell);
      }
    }
    line_ += '\n';
    write(line_);
  }
};

class JsonlReport final : public TextReport {
 public:
  using TextReport::TextReport;

  void add(const ComparedRow& row) override {
    line_ = "{";
    for (const Column& column : compare_columns()) {
      const Cell cell = column.cell(row);
      const auto* text = std::get_if<std::string>(&cell);
      if (std::holds_alternative<std::monostate>(cell) || (text != nullptr && text->empty())) continue;
      if (line_.size() > 1) line_ += ", ";
      append_json_string(line_, column.name);
      line_ += ": ";
      text != nullptr ? append_json_string(line_, *text) : append_number(line_, cell);
    }
    line_ += "}\n";
    write(line_);
  }
};

}  // namespace

std::unique_ptr<Report> make_csv_report(const Directory& folder, const std::string& name) {
  return std::make_unique<CsvReport>(folder, name);
}

std::unique_ptr<Report> make_jsonl_report(const Directory& folder, const std::string& name) {
  return std::make_unique<JsonlReport>(folder, name);
}

}  // namespace msprobe
