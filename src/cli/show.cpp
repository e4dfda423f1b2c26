#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/tensor_text.h"
#include "compare/divergence.h"
#include "compare/dump.h"
#include "compare/pattern.h"
#include "compare/text.h"
#include "format/json_text.h"
#include "format/record.h"
#include "pipeline/resources.h"

namespace msprobe {
namespace {

using Align = Table::Align;

bool has_non_finite(const RecordedLeaf& leaf) {
  if (const auto* tensor = std::get_if<RecordedTensor>(&leaf.content)) {
    if (tensor->nan_count + tensor->pos_inf_count + tensor->neg_inf_count > 0) return true;
    for (const Extremum* number :
         {&tensor->max, &tensor->min, &tensor->mean, &tensor->norm}) {  // the peer has no counts
      if (const auto value = number_value(*number); value && !std::isfinite(*value)) return true;
    }
    return false;
  }
  const auto* scalar = std::get_if<RecordedScalar>(&leaf.content);
  return scalar != nullptr && scalar->type != "str" &&
         (scalar->value.find("NaN") != std::string::npos || scalar->value.find("Infinity") != std::string::npos);
}

std::string full_name(const Record& record) { return std::string(record.name()) + (record.is_gradient ? "_grad" : ""); }

// One leaf of a folder.
struct Row {
  const RankFolder& folder;
  const Record& record;
  const RecordedLeaf& leaf;
  std::size_t position;  // among all leaves of the folder
};

// Who takes the rows that the user asked for, folder by folder.
class View {
 public:
  virtual ~View() = default;
  virtual void begin(const RankFolder&, const FolderRecords&) {}
  virtual void add(const Row& row) = 0;
  virtual void end_folder() {}
  virtual void finish() = 0;
};

// Where a NaN or an infinity is first, and on which ranks.
class FirstNonFinite {
 public:
  // A row that has one.
  void add(const Row& row) {
    const std::string name = leaf_name(row.record, row.leaf);
    if (!earliest_.add(row.folder.step, row.folder.name, name, row.record.is_gradient, row.position)) return;
    step_ = row.folder.step;
    name_ = name;
    const auto* tensor = std::get_if<RecordedTensor>(&row.leaf.content);
    text_ = tensor == nullptr ? "" : non_finite_text(*tensor, ", ");
  }

  void print(const Output& output) const {
    if (name_.empty()) return;
    std::string line = "first NaN or infinity: ";
    if (step_) line += "step " + std::to_string(*step_) + ", ";
    line += earliest_.ranks_of(name_) + ", " + name_ + (text_.empty() ? "" : " (" + text_ + ")");
    output.out << '\n' << output.paint(printable(line), Colour::kRed) << '\n';
  }

 private:
  EarliestRow earliest_;
  std::optional<std::int64_t> step_;
  std::string name_;
  std::string text_;
};

void print_nothing(const Output& output) {
  output.out << "nothing to show: no records, or none that the options let through\n";
}

class TableView final : public View {
 public:
  explicit TableView(const Output& output) : output_(output) {}

  void begin(const RankFolder& folder, const FolderRecords& records) override {
    title_ = folder.step ? "step " + std::to_string(*folder.step) + ", " + folder.name : folder.name;
    if (!records.framework.empty()) title_ += ": " + records.framework;
    if (!records.task.empty()) title_ += ", task " + records.task;
    title_ += ", " + std::to_string(records.records.size()) + (records.records.size() == 1 ? " record" : " records");
    table_ = new_table();
  }

  void add(const Row& shown) override {
    const RecordedLeaf& leaf = shown.leaf;
    const bool is_bad = has_non_finite(leaf);
    const Colour colour = is_bad ? Colour::kRed : Colour::kNone;
    std::vector<TableCell> row = {
        {full_name(shown.record), colour}, {std::to_string(shown.record.count)}, {leaf.index}};
    if (const auto* tensor = std::get_if<RecordedTensor>(&leaf.content)) {
      row.push_back({tensor->form->dtype});
      row.push_back({shape_text(tensor->form->shape)});
      for (const Extremum* number : {&tensor->max, &tensor->min, &tensor->mean, &tensor->norm}) {
        const auto value = number_value(*number);
        row.push_back({short_number(*number), value && !std::isfinite(*value) ? Colour::kRed : Colour::kNone});
      }
      std::string also = non_finite_text(*tensor, ", ");
      if (!tensor->md5.empty()) also += (also.empty() ? "md5 " : ", md5 ") + tensor->md5;
      row.push_back({also, colour});
    } else {
      const auto* scalar = std::get_if<RecordedScalar>(&leaf.content);
      row.push_back({scalar == nullptr ? "null" : scalar->type, scalar == nullptr ? Colour::kFaint : Colour::kNone});
      row.resize(9);
      row.push_back({scalar == nullptr ? "" : scalar->value, colour});
    }
    table_.add(std::move(row));
    has_rows_ = true;
    if (is_bad) first_non_finite_.add(shown);
  }

  void end_folder() override {
    if (table_.empty()) return;
    if (!std::exchange(is_first_, false)) output_.out << '\n';
    output_.out << output_.paint(title_, Colour::kBold) << '\n';
    table_.print(output_);
  }

  void finish() override {
    if (!has_rows_) print_nothing(output_);
    first_non_finite_.print(output_);
  }

 private:
  static Table new_table() {
    return Table({{"name", Align::kLeft},
                  {"count", Align::kRight},
                  {"index", Align::kLeft},
                  {"dtype", Align::kLeft},
                  {"shape", Align::kLeft},
                  {"Max", Align::kRight},
                  {"Min", Align::kRight},
                  {"Mean", Align::kRight},
                  {"Norm", Align::kRight},
                  {"also", Align::kLeft}});
  }

  const Output& output_;
  std::string title_;
  Table table_ = new_table();
  bool is_first_ = true;
  bool has_rows_ = false;
  FirstNonFinite first_non_finite_;
};

// A line for each step, or for several that look the same.
class SummaryView final : public View {
 public:
  SummaryView(const Output& output, std::string path) : output_(output), path_(std::move(path)) {}

  void begin(const RankFolder& folder, const FolderRecords&) override {
    if (step_ != folder.step) end_step();
    step_ = folder.step;
    ranks_.push_back(folder.name);
  }

  void add(const Row& row) override {
    ++rows_;
    if (!has_non_finite(row.leaf)) return;
    ++bad_rows_;
    if (bad_ranks_.empty() || bad_ranks_.back() != row.folder.name) bad_ranks_.push_back(row.folder.name);
    first_non_finite_.add(row);
  }

  void finish() override {
    end_step();
    Table table(
        {{"step", Align::kRight}, {"ranks", Align::kLeft}, {"rows", Align::kRight}, {"not finite", Align::kLeft}});
    for (const Line& line : lines_) {
      std::string steps = line.first ? std::to_string(*line.first) : "";
      if (line.last != line.first) steps += "-" + std::to_string(*line.last);
      table.add({{steps}, {line.ranks}, {std::to_string(line.rows)}, {line.bad, Colour::kRed}});
    }
    if (table.empty()) return print_nothing(output_);
    table.print(output_);
    first_non_finite_.print(output_);
    output_.out << "\nAll rows: msprobe show " << printable(path_)
                << " --step N --rank R, --nan, --name REGEX, or --all\n";
  }

 private:
  struct Line {
    std::optional<std::int64_t> first, last;  // steps
    std::string ranks;
    std::size_t rows;  // of one step
    std::string bad;
  };

  void end_step() {
    if (rows_ > 0) {
      std::string bad =
          bad_rows_ == 0 ? "" : std::to_string(bad_rows_) + " on " + rank_list_text(std::move(bad_ranks_));
      Line line{step_, step_, rank_list_text(std::move(ranks_)), rows_, std::move(bad)};
      const bool looks_the_same = !lines_.empty() && lines_.back().ranks == line.ranks &&
                                  lines_.back().rows == line.rows && lines_.back().bad == line.bad;
      looks_the_same ? void(lines_.back().last = line.last) : lines_.push_back(std::move(line));
    }
    rows_ = bad_rows_ = 0;
    ranks_.clear();
    bad_ranks_.clear();
  }

  const Output& output_;
  std::string path_;
  std::vector<Line> lines_;
  FirstNonFinite first_non_finite_;
  // Of the step at work:
  std::optional<std::int64_t> step_;
  std::vector<std::string> ranks_, bad_ranks_;
  std::size_t rows_ = 0, bad_rows_ = 0;
};

class JsonView final : public View {
 public:
  explicit JsonView(const Output& output) : output_(output) { output_.out << '['; }

  void add(const Row& row) override {
    const auto& [folder, record, leaf, position] = row;
    std::string line = std::exchange(is_first_, false) ? "\n{" : ",\n{";
    const auto field = [&](std::string_view name, std::string_view json) {
      if (line.back() != '{') line += ", ";
      line += '"' + std::string(name) + "\": " + std::string(json);
    };
    const auto quoted = [](std::string_view text) {
      std::string json;
      append_json_string(json, text);
      return json;
    };
    field("step", folder.step ? std::to_string(*folder.step) : "null");
    field("rank", folder.rank ? std::to_string(*folder.rank) : quoted(folder.name));
    field("key", quoted(record.key));
    field("name", quoted(record.name()));
    field("gradient", record.is_gradient ? "true" : "false");
    field("count", std::to_string(record.count));
    field("index", quoted(leaf.index));
    std::string json;
    append_leaf(json, leaf);
    field("record", json);
    output_.out << line << '}';
  }

  void finish() override { output_.out << "\n]\n"; }

 private:
  const Output& output_;
  bool is_first_ = true;
};

// A line of bars, one for each number, at most kBars; what is not finite is an x.
std::string sparkline(const std::vector<double>& numbers) {
  constexpr std::size_t kBars = 40;
  constexpr std::array<std::string_view, 8> kLevels = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<double> bars;
  const std::size_t count = std::min(kBars, numbers.size());
  for (std::size_t i = 0; i < count; ++i) {  // of several numbers the last, unless one is not finite
    const std::size_t begin = i * numbers.size() / count;
    const std::size_t end = (i + 1) * numbers.size() / count;
    double bar = numbers[end - 1];
    for (std::size_t j = begin; j < end; ++j) {
      if (!std::isfinite(numbers[j])) bar = numbers[j];
    }
    bars.push_back(bar);
  }
  double low = HUGE_VAL;
  double high = -HUGE_VAL;
  for (const double bar : bars) {
    if (!std::isfinite(bar)) continue;
    low = std::min(low, bar);
    high = std::max(high, bar);
  }
  std::string text;
  for (const double bar : bars) {
    if (!std::isfinite(bar)) {
      text += 'x';
    } else {
      const double share = high > low ? (bar - low) / (high - low) : 0.5;
      text += kLevels[static_cast<std::size_t>(std::lround(share * 7))];
    }
  }
  return text;
}

class StepsView final : public View {
 public:
  StepsView(const Output& output, bool json) : output_(output), json_(json) {}

  void add(const Row& row) override {
    const auto& [folder, record, leaf, position] = row;
    const auto* tensor = std::get_if<RecordedTensor>(&leaf.content);
    const Extremum number = tensor != nullptr ? tensor->norm : plain_number(leaf);
    const auto value = number_value(number);
    if (!value) return;
    const auto [entry, is_new] = lines_.try_emplace({folder.name, leaf_name(record, leaf)}, series_.size());
    if (is_new) series_.push_back({folder.name, leaf_name(record, leaf), {}, {}});
    Series& series = series_[entry->second];
    series.steps.push_back(folder.step.value_or(0));
    series.numbers.push_back(*value);
  }

  void finish() override { json_ ? finish_json() : finish_table(); }

 private:
  struct Series {
    std::string rank;
    std::string name;
    std::vector<std::int64_t> steps;
    std::vector<double> numbers;
  };

  // A loss that was saved as a float.
  static Extremum plain_number(const RecordedLeaf& leaf) {
    const auto* scalar = std::get_if<RecordedScalar>(&leaf.content);
    if (scalar == nullptr || scalar->type == "str") return {};
    return parse_number(scalar->value);
  }

  void finish_table() const {
    Table table({{"rank", Align::kLeft},
                 {"name", Align::kLeft},
                 {"steps", Align::kRight},
                 {"first", Align::kRight},
                 {"last", Align::kRight},
                 {"least", Align::kRight},
                 {"greatest", Align::kRight},
                 {"along the steps", Align::kLeft},
                 {"also", Align::kLeft}});
    for (const Series& series : series_) {
      const auto bad = std::ranges::find_if(series.numbers, [](double number) { return !std::isfinite(number); });
      std::vector<double> finite;
      std::ranges::copy_if(series.numbers, std::back_inserter(finite),
                           [](double number) { return std::isfinite(number); });
      const auto [low, high] = std::ranges::minmax_element(finite);
      const bool is_bad = bad != series.numbers.end();
      const auto bad_index = static_cast<std::size_t>(bad - series.numbers.begin());
      table.add(
          {{series.rank},
           {series.name, is_bad ? Colour::kRed : Colour::kNone},
           {std::to_string(series.steps.size())},
           {short_number(series.numbers.front())},
           {short_number(series.numbers.back())},
           {finite.empty() ? "" : short_number(*low)},
           {finite.empty() ? "" : short_number(*high)},
           {sparkline(series.numbers)},
           {is_bad ? short_number(*bad) + " from step " + std::to_string(series.steps[bad_index]) : "", Colour::kRed}});
    }
    if (table.empty()) {
      output_.out << "nothing to show: no numbers, or none that the options let through\n";
      return;
    }
    output_.out << output_.paint("Norm of tensors, value of plain numbers", Colour::kBold) << '\n';
    table.print(output_);
  }

  void finish_json() const {
    output_.out << '[';
    const char* separator = "\n";
    for (const Series& series : series_) {
      std::string line = "{\"rank\": ";
      append_json_string(line, series.rank);
      line += ", \"name\": ";
      append_json_string(line, series.name);
      line += ", \"steps\": [";
      for (std::size_t i = 0; i < series.steps.size(); ++i) {
        line += (i > 0 ? ", " : "") + std::to_string(series.steps[i]);
      }
      line += "], \"Norm\": [";
      for (std::size_t i = 0; i < series.numbers.size(); ++i) {
        line += (i > 0 ? ", " : "") + number_text(series.numbers[i]);
      }
      output_.out << std::exchange(separator, ",\n") << line << "]}";
    }
    output_.out << "\n]\n";
  }

  const Output& output_;
  bool json_;
  std::map<std::pair<std::string, std::string>, std::size_t> lines_;
  std::vector<Series> series_;  // in the order of their first record
};

// So many tables fit on a terminal that is scrolled back; what is longer is told in a line a step.
constexpr std::size_t kMostTables = 16;

std::unique_ptr<View> make_view(const ShowRequest& request, std::size_t folders, const Output& output) {
  if (request.diff_steps) return std::make_unique<StepsView>(output, request.json);
  if (request.json) return std::make_unique<JsonView>(output);
  const bool is_narrowed = request.all || request.only_non_finite || !request.name.empty();
  if (output.out_is_terminal && !is_narrowed && folders > kMostTables) {
    return std::make_unique<SummaryView>(output, request.path);
  }
  return std::make_unique<TableView>(output);
}

}  // namespace

int show(const ShowRequest& request, const Output& output) {
  const Dump dump = open_dump(request.path);
  if (dump.kind == PathKind::kTensorFile) {
    output.out << (request.json ? tensor_file_json(request.path) : tensor_file_text(request.path));
    return kExitFine;
  }
  std::optional<Pattern> name;
  if (!request.name.empty()) name.emplace(request.name);
  const std::vector<RankFolder> folders = selected_folders(dump.folders, request.step, request.rank);
  std::vector<std::string> paths;
  paths.reserve(folders.size());
  for (const RankFolder& folder : folders) paths.push_back(folder.path);
  const std::unique_ptr<View> view = make_view(request, folders.size(), output);
  bool all_readable = true;
  ThreadTeam team(compute_thread_count());
  read_folders(paths, team, [&](std::size_t i, const FolderRecords& records, const std::string& problem) {
    if (!problem.empty()) {  // one damaged rank does not hide the others
      output.err << "msprobe show: " << printable(problem) << '\n';
      all_readable = false;
      return true;
    }
    view->begin(folders[i], records);
    std::size_t position = 0;
    for (const Record& record : records.records) {
      for (const RecordedLeaf& leaf : record.leaves) {
        const Row row{folders[i], record, leaf, position++};
        if (name && !name->is_in(leaf_name(record, leaf))) continue;
        if (!request.only_non_finite || has_non_finite(leaf)) view->add(row);
      }
    }
    view->end_folder();
    return output.out.good();  // nobody reads on
  });
  view->finish();
  return all_readable ? kExitFine : kExitUnusable;
}

}  // namespace msprobe
