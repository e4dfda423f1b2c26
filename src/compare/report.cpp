#include "compare/report.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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

  void add(const ComparedRow& row) final {
    std::string line;
    append_line(line, row);
    write(line);
  }

  void add_all(std::span<const ComparedRow> rows, ThreadTeam& team) final {
    std::vector<std::string> texts((rows.size() + kRowsOfPart - 1) / kRowsOfPart);
    run_in_parts(rows.size(), kRowsOfPart, team, [&](std::size_t i) { append_line(texts[i / kRowsOfPart], rows[i]); });
    for (const std::string& text : texts) write(text);
  }

 protected:
  void write(std::string_view text) { out_.write(text); }

 private:
  // Thread: any, several at once.
  virtual void append_line(std::string& out, const ComparedRow& row) const = 0;

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
    std::string header;
    for (const Column& column : compare_columns()) {
      if (!header.empty()) header += ',';
      append_csv_text(header, column.name);
    }
    write(header + '\n');
  }

 private:
  void append_line(std::string& out, const ComparedRow& row) const override {
    bool first = true;
    for (const Column& column : compare_columns()) {
      if (!std::exchange(first, false)) out += ',';
      const Cell cell = column.cell(row);
      if (const auto* text = std::get_if<std::string>(&cell)) {
        append_csv_text(out, *text);
      } else if (!std::holds_alternative<std::monostate>(cell)) {
        append_number(out, cell);
      }
    }
    out += '\n';
  }
};

class JsonlReport final : public TextReport {
 public:
  using TextReport::TextReport;

 private:
  void append_line(std::string& out, const ComparedRow& row) const override {
    bool first = true;
    out += '{';
    for (const Column& column : compare_columns()) {
      const Cell cell = column.cell(row);
      const auto* text = std::get_if<std::string>(&cell);
      if (std::holds_alternative<std::monostate>(cell) || (text != nullptr && text->empty())) continue;
      if (!std::exchange(first, false)) out += ", ";
      append_json_string(out, column.name);
      out += ": ";
      text != nullptr ? append_json_string(out, *text) : append_number(out, cell);
    }
    out += "}\n";
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
