#include <xlsxwriter.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "compare/columns.h"
#include "compare/report.h"
#include "format/record.h"
#include "msprobe/error.h"

namespace msprobe {
namespace {

constexpr std::int64_t kLargestExactInteger = std::int64_t{1} << 53;  // Excel's numbers are float64
constexpr std::size_t kLongestText = 32'767;                          // bytes; Excel counts characters
constexpr lxw_row_t kRowsOfSheet = 1'048'576;

std::string cut(std::string text) {
  if (text.size() <= kLongestText) return text;
  std::size_t length = kLongestText - 3;
  while ((static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) --length;  // not within a character
  return text.substr(0, length) + "...";
}

class XlsxReport final : public Report {
 public:
  XlsxReport(const Directory& folder, const std::string& name)
      : name_(name), path_(folder.path() + "/" + name), file_(folder, name) {
    std::string rows_folder = folder.path();  // /tmp may be memory
    lxw_workbook_options options{};
    options.constant_memory = LXW_TRUE;  // rows go to a temporary file
    options.tmpdir = rows_folder.data();
    workbook_.reset(workbook_new_opt(file_.temporary_path().c_str(), &options));
    if (!workbook_) throw Error(path_ + ": cannot make a workbook");
    bold_ = workbook_add_format(workbook_.get());
    format_set_bold(bold_);
    red_ = workbook_add_format(workbook_.get());
    format_set_bg_color(red_, 0xFFC7CE);
    add_sheet();
  }

  void add(const ComparedRow& row) override {
    if (row_ == kRowsOfSheet) add_sheet();
    lxw_col_t number = 0;
    for (const Column& column : compare_columns()) {
      write(number++, column.cell(row), is_difference(row.verdict) && column.name == "Verdict" ? red_ : nullptr);
    }
    ++row_;
  }

  void finish() override {
    // The library does not look whether the rows could be written.
    for (lxw_worksheet* sheet : sheets_) {
      errno = 0;
      if (std::fflush(sheet->optimize_tmpfile) != 0 || std::ferror(sheet->optimize_tmpfile) != 0) {
        throw IoError("write the rows of", path_, errno != 0 ? errno : EIO);
      }
    }
    errno = 0;
    const lxw_error error = workbook_close(workbook_.release());
    if (error != LXW_NO_ERROR) {
      if (errno != 0) throw IoError("write", path_, errno);
      throw Error(path_ + ": " + lxw_strerror(error));
    }
    file_.commit(name_, true);
  }

 private:
  struct Abandon {  // nothing else of the library frees a workbook without writing it
    void operator()(lxw_workbook* workbook) const noexcept { lxw_workbook_free(workbook); }
  };

  void add_sheet() {
    sheet_ = workbook_add_worksheet(workbook_.get(), nullptr);
    if (sheet_ == nullptr) throw Error(path_ + ": cannot add a sheet");
    sheets_.push_back(sheet_);
    row_ = 0;
    lxw_col_t number = 0;
    for (const Column& column : compare_columns()) {
      const double width =
          column.name.ends_with("Name") ? 32 : std::max(10.0, 1.1 * static_cast<double>(column.name.size()));
      worksheet_set_column(sheet_, number, number, width, nullptr);
      worksheet_write_string(sheet_, row_, number++, std::string(column.name).c_str(), bold_);
    }
    worksheet_freeze_panes(sheet_, 1, 4);
    ++row_;
  }

  void write(lxw_col_t column, const Cell& cell, lxw_format* format) {
    const auto write_text = [&](std::string text) {
      worksheet_write_string(sheet_, row_, column, cut(std::move(text)).c_str(), format);
    };
    const auto write_number = [&](double number) { worksheet_write_number(sheet_, row_, column, number, format); };
    std::visit(
        [&]<class Value>(const Value& value) {
          if constexpr (std::is_same_v<Value, std::string>) {
            if (!value.empty()) write_text(value);
          } else if constexpr (std::is_same_v<Value, bool>) {
            worksheet_write_boolean(sheet_, row_, column, value ? 1 : 0, format);
          } else if constexpr (!std::is_same_v<Value, std::monostate>) {
            const auto number = static_cast<double>(value);
            const bool fits = std::is_same_v<Value, double> ? std::isfinite(number)
                                                            : std::abs(number) <= double{kLargestExactInteger};
            fits ? write_number(number) : write_text(number_text(Extremum(value)));
          }
        },
        cell);
  }

  std::string name_;
  std::string path_;
  NewFile file_;
  std::unique_ptr<lxw_workbook, Abandon> workbook_;
  lxw_format* bold_ = nullptr;
  lxw_format* red_ = nullptr;
  std::vector<lxw_worksheet*> sheets_;
  lxw_worksheet* sheet_ = nullptr;  // the last
  lxw_row_t row_ = 0;
};

}  // namespace

std::unique_ptr<Report> make_xlsx_report(const Directory& folder, const std::string& name) {
  return std::make_unique<XlsxReport>(folder, name);
}

}  // namespace msprobe
