#pragma once
// The files of a comparison: one row for each leaf, the columns of compare/columns.h.

#include <memory>
#include <string>

#include "compare/comparison.h"
#include "format/file_io.h"

namespace msprobe {

// A sink that writes a file. It appears under its name with finish(), over one that stood there.
class Report : public RowSink {
 public:
  // Throws: IoError. Without it no file appears.
  virtual void finish() = 0;
};

// Comma-separated, RFC 4180, with a header line. Numbers as in JSON (NaN, Infinity), empty where there is nothing.
[[nodiscard]] std::unique_ptr<Report> make_csv_report(const Directory& folder, const std::string& name);
// One JSON object a line; keys are the column names, empty cells are left out.
[[nodiscard]] std::unique_ptr<Report> make_jsonl_report(const Directory& folder, const std::string& name);
// Excel; a new sheet after 1,048,575 rows.
[[nodiscard]] std::unique_ptr<Report> make_xlsx_report(const Directory& folder, const std::string& name);

}  // namespace msprobe
