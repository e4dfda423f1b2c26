#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "compare/comparison.h"
#include "compare/divergence.h"
#include "compare/report.h"

namespace msprobe {
namespace {

constexpr std::size_t kRowsShown = 20;

// The first differences, for the terminal.
class DifferenceTable : public RowSink {
 public:
  explicit DifferenceTable(bool all) : limit_(all ? static_cast<std::size_t>(-1) : kRowsShown) {}

  void add(const ComparedRow& row) override {
    if (!is_difference(row.verdict)) return;
    if (++differences_ > limit_) return;
    const bool one_side = row.verdict == Verdict::kGoldenOnly || row.verdict == Verdict::kTargetOnly;
    table_.add({{row.step ? std::to_string(*row.step) : ""},
                {std::string(row.rank)},
                {row.name()},
                {std::string(verdict_text(row.verdict)), one_side ? Colour::kYellow : Colour::kRed},
                {row.reason}});
  }

  void print(const Output& output) const {
    if (table_.empty()) return;
    output.out << '\n';
    table_.print(output);
    if (differences_ > limit_) output.out << "... and " << differences_ - limit_ << " more (--all shows them)\n";
  }

 private:
  std::size_t limit_;
  std::size_t differences_ = 0;
  Table table_{{{"step", Table::Align::kRight},
                {"rank", Table::Align::kLeft},
                {"name", Table::Align::kLeft},
                {"verdict", Table::Align::kLeft},
                {"why", Table::Align::kLeft}}};
};

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

void print_divergence(const Divergence& first, const Output& output) {
  std::string line = "first divergence: ";
  if (first.step) line += "step " + std::to_string(*first.step) + ", ";
  if (!first.ranks.empty()) line += printable(first.ranks) + ", ";
  line += printable(first.golden_name);
  if (first.target_name != first.golden_name) line += " (target: " + printable(first.target_name) + ")";
  output.out << output.paint(line, Colour::kRed) << '\n';
  for (const std::string& detail : first.details) output.out << "  " << printable(detail) << '\n';
  if (first.last_gradient.empty()) return;
  output.out << "  Backward runs from the last save to the first: of the gradients of this step that differ, "
             << printable(first.last_gradient) << " was computed first.\n";
}

void print_counts(const VerdictCounter& counts, const ComparedFolders& folders, const Output& output) {
  output.out << counts.rows() << (counts.rows() == 1 ? " row" : " rows") << " in " << folders.pairs
             << (folders.pairs == 1 ? " pair" : " pairs") << " of folders:";
  const char* separator = " ";
  for (std::size_t i = 0; i < kVerdictCount; ++i) {
    const auto verdict = static_cast<Verdict>(i);
    if (counts.count(verdict) == 0) continue;
    output.out << separator << counts.count(verdict) << ' ' << verdict_text(verdict);
    separator = ", ";
  }
  output.out << '\n';
}

void print_one_sided(const std::vector<std::string>& folders, std::string_view side, const Output& output) {
  if (folders.empty()) return;
  std::vector<std::string> shown(
      folders.begin(), folders.begin() + static_cast<std::ptrdiff_t>(std::min(folders.size(), std::size_t{5})));
  output.out << "only in " << side << ": " << joined(shown);
  if (shown.size() < folders.size()) output.out << " and " << folders.size() - shown.size() << " more folders";
  output.out << '\n';
}

CompareOptions options_of(const CompareRequest& request) {
  CompareOptions options;
  options.step = request.step;
  options.rank = request.rank;
  options.tolerance = request.tolerance;
  if (!request.map.empty()) options.match.map = NameMap::read(request.map);
  if (!request.name.empty()) options.match.name = Pattern(request.name);
  if (!request.ignore.empty()) options.match.ignore = Pattern(request.ignore);
  return options;
}

}  // namespace

int compare(const CompareRequest& request, const Output& output) {
  CompareProgress progress;
  CompareOptions options = options_of(request);
  options.progress = &progress;

  const Directory out = Directory::create_root(request.out);
  std::vector<std::string> names;
  std::vector<std::unique_ptr<Report>> reports;
  const auto add_report = [&](bool wanted, auto make, const std::string& name) {
    if (!wanted) return;
    reports.push_back(make(out, name));
    names.push_back(out.path() + "/" + name);
  };
  add_report(true, make_csv_report, "compare.csv");
  add_report(request.xlsx, make_xlsx_report, "compare.xlsx");
  add_report(request.jsonl, make_jsonl_report, "compare.jsonl");

  DivergenceFinder divergence;
  VerdictCounter counts;
  DifferenceTable differences(request.all);
  std::vector<RowSink*> sinks = {&divergence, &counts, &differences};
  for (const auto& report : reports) sinks.push_back(report.get());
  ComparedFolders folders;
  {
    const ProgressBar bar(output, "comparing", [&] { return progress.fraction(); });
    folders = compare_dumps(request.golden, request.target, options, sinks);
  }
  for (const auto& report : reports) report->finish();

  const bool has_differences = counts.differences() > 0 || !folders.golden_only.empty() || !folders.target_only.empty();
  if (const auto first = divergence.result()) {
    print_divergence(*first, output);
  } else if (has_differences) {
    output.out << "what both sides have is the same, but they do not have the same\n";
  } else if (!folders.unreadable.empty()) {
    output.out << "no differences in what could be read\n";
  } else if (counts.rows() == 0) {
    output.err << "msprobe compare: nothing to compare: no records in " << request.golden << " and " << request.target
               << " (or none that the options let through)\n";
    return kExitUnusable;
  } else {
    output.out << output.paint("no differences", Colour::kGreen) << '\n';
  }
  print_counts(counts, folders, output);
  print_one_sided(folders.golden_only, "golden", output);
  print_one_sided(folders.target_only, "target", output);
  differences.print(output);
  output.out << "\nwritten: " << joined(names) << '\n';
  for (const std::string& reason : folders.unreadable) output.err << "msprobe compare: " << printable(reason) << '\n';
  if (!folders.unreadable.empty()) return kExitUnusable;
  return has_differences ? kExitDifferences : kExitFine;
}

}  // namespace msprobe
