#include "compare/comparison.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "compare/file_comparison.h"
#include "compare/text.h"
#include "compare/verdict.h"
#include "msprobe/error.h"
#include "pipeline/resources.h"

namespace msprobe {
namespace {

namespace fs = std::filesystem;

// What is held of a folder at once, beside its records.
constexpr std::size_t kRowsAtOnce = 4096;

// From here on a file is worth several threads; smaller ones are shared out whole.
constexpr std::uint64_t kLargeFileBytes = std::uint64_t{32} << 20;

std::string_view kind_text(PathKind kind) {
  switch (kind) {
    case PathKind::kDump:
      return "a dump";
    case PathKind::kStep:
      return "one step of a dump";
    case PathKind::kRank:
      return "one rank of a step";
    case PathKind::kTensorFile:
      break;
  }
  return "a file";
}

struct FolderPair {
  std::optional<RankFolder> golden;
  std::optional<RankFolder> target;
};

std::string label(const RankFolder& folder) {
  return folder.step ? "step" + std::to_string(*folder.step) + "/" + folder.name : folder.name;
}

// In the order of step and rank.
std::vector<FolderPair> pair_folders(std::vector<RankFolder> golden, std::vector<RankFolder> target, PathKind kind) {
  if (kind == PathKind::kRank) return {{std::move(golden.front()), std::move(target.front())}};  // as the user says
  struct Step {
    std::vector<FolderPair> pairs;
    std::vector<RankFolder> golden, target;  // what is left
  };
  const auto number = [&](const RankFolder& folder) { return kind == PathKind::kStep ? std::nullopt : folder.step; };
  std::map<std::optional<std::int64_t>, Step> steps;
  for (RankFolder& folder : target) steps[number(folder)].target.push_back(std::move(folder));
  for (RankFolder& folder : golden) {
    Step& step = steps[number(folder)];
    const auto partner = std::ranges::find_if(step.target, [&](const RankFolder& other) {
      return folder.rank ? folder.rank == other.rank : folder.name == other.name;
    });
    if (partner == step.target.end()) {
      step.golden.push_back(std::move(folder));
    } else {
      step.pairs.push_back({std::move(folder), std::move(*partner)});
      step.target.erase(partner);
    }
  }
  std::vector<FolderPair> pairs;
  for (auto& [unused, step] : steps) {
    if (step.golden.size() == 1 && step.target.size() == 1 && !(step.golden[0].rank && step.target[0].rank)) {
      step.pairs.push_back({std::move(step.golden[0]), std::move(step.target[0])});
      step.golden.clear();
      step.target.clear();
    }
    for (RankFolder& folder : step.golden) step.pairs.push_back({std::move(folder), {}});
    for (RankFolder& folder : step.target) step.pairs.push_back({{}, std::move(folder)});
    std::ranges::sort(step.pairs, {}, [](const FolderPair& pair) {
      const RankFolder& folder = pair.golden ? *pair.golden : *pair.target;
      return std::tuple(!folder.rank, folder.rank, folder.name);
    });
    std::ranges::move(step.pairs, std::back_inserter(pairs));
  }
  return pairs;
}

std::uint64_t file_bytes(const std::string& path) {
  std::error_code ignored;
  const std::uintmax_t bytes = fs::file_size(path, ignored);
  return ignored ? 0 : bytes;
}

// A row whose values can be compared.
struct FileTask {
  ComparedRow* row;
  std::string golden, target;
  std::uint64_t bytes;  // of golden
};

void mark_unreadable(ComparedRow& row, const std::exception& error) {
  row.verdict = Verdict::kUnreadable;
  row.evidence = Evidence::kNothing;
  row.reason = error.what();
}

class FolderComparison {
 public:
  FolderComparison(const CompareOptions& options, ThreadTeam& team) : options_(options), team_(team) {}

  // Gives the rows of a pair; a side without a folder has no records.
  void run(const FolderPair& folders, const FolderRecords& golden, const FolderRecords& target,
           const std::vector<RowSink*>& sinks) {
    const std::string rank = rank_text(folders);
    const std::vector<LeafPair> pairs = match(golden.records, target.records, options_.match);
    if (options_.progress != nullptr) options_.progress->begin_folder(pairs.size());
    std::vector<ComparedRow> rows;
    std::vector<FileTask> tasks;
    for (std::size_t first = 0; first < pairs.size(); first += rows.size()) {
      rows.clear();
      rows.resize(std::min(kRowsAtOnce, pairs.size() - first));
      tasks.clear();
      run_in_parts(rows.size(), kRowsOfPart, team_, [&](std::size_t i) {
        ComparedRow& row = rows[i];
        row.step = folders.golden ? folders.golden->step : folders.target->step;
        row.rank = rank;
        row.position = first + i;
        row.pair = pairs[first + i];
        judge_records(row, options_.tolerance);
      });
      if (folders.golden && folders.target) {
        for (ComparedRow& row : rows) add_task(tasks, row, folders);
      }
      compare_values(tasks);
      for (RowSink* sink : sinks) sink->add_all(rows, team_);
      if (options_.progress != nullptr) options_.progress->rows_done += rows.size();
    }
  }

 private:
  static std::string rank_text(const FolderPair& folders) {
    if (!folders.golden) return folders.target->name;
    if (!folders.target || folders.golden->name == folders.target->name) return folders.golden->name;
    return folders.golden->name + " / " + folders.target->name;
  }

  static void add_task(std::vector<FileTask>& tasks, ComparedRow& row, const FolderPair& folders) {
    const RecordedTensor* golden = row.golden();
    const RecordedTensor* target = row.target();
    if (golden == nullptr || target == nullptr || golden->form->shape != target->form->shape) return;
    try {
      auto golden_path = tensor_path(folders.golden->path, *golden);
      auto target_path = tensor_path(folders.target->path, *target);
      if (!golden_path || !target_path) return;
      const std::uint64_t bytes = file_bytes(*golden_path);
      tasks.push_back({&row, std::move(*golden_path), std::move(*target_path), bytes});
    } catch (const Error& error) {
      mark_unreadable(row, error);
    }
  }

  void compare_values(const std::vector<FileTask>& tasks) {
    std::vector<const FileTask*> small;
    std::vector<const FileTask*> large;
    std::uint64_t bytes = 0;
    for (const FileTask& task : tasks) {
      (task.bytes < kLargeFileBytes ? small : large).push_back(&task);
      bytes += task.bytes;
    }
    if (options_.progress != nullptr) options_.progress->begin_files(bytes);
    team_.run(small.size(), [&](std::size_t i) { compare_files_of(*small[i], nullptr); });
    for (const FileTask* task : large) compare_files_of(*task, &team_);
  }

  void compare_files_of(const FileTask& task, ThreadTeam* team) const {
    ComparedRow& row = *task.row;
    try {
      const TensorFileReader golden(task.golden);
      const TensorFileReader target(task.target);
      FileComparison how;
      how.saved = {recorded_dtype(row.golden()->form->dtype).value_or(golden.info().dtype),
                   recorded_dtype(row.target()->form->dtype).value_or(target.info().dtype)};
      const DType dtype = less_exact(how.saved->golden, how.saved->target);
      const auto scale = recorded_scale(*row.golden());
      const bool needs_scale = !options_.tolerance.atol && options_.tolerance.rtol.value_or(default_rtol(dtype)) > 0;
      how.tolerance = element_tolerance(options_.tolerance, dtype,
                                        scale         ? *scale
                                        : needs_scale ? file_scale(golden, team)
                                                      : 0.0);
      if (options_.progress != nullptr) how.bytes_done = &options_.progress->bytes_done;
      judge_values(row, compare_files(golden, target, how, team), how.tolerance, options_.tolerance);
    } catch (const UnsupportedFile& unsupported) {
      row.reason += (row.reason.empty() ? "" : "; ") + std::string("values not compared: ") + unsupported.what();
    } catch (const std::exception& error) {
      mark_unreadable(row, error);
    }
  }

  const CompareOptions& options_;
  ThreadTeam& team_;
};

// One tensor file as a folder with one record.
FolderRecords records_of_file(const fs::path& path) {
  const TensorFileReader file(path);
  FolderRecords folder;
  RecordedTensor tensor;
  TensorForm form{"", std::string(dtype_info(file.info().dtype).name), {}};
  form.shape.assign(file.info().shape.begin(), file.info().shape.end());
  tensor.form = std::make_shared<const TensorForm>(std::move(form));
  tensor.data_name = path.filename();
  Record record;
  record.key = "tensor";
  record.name_bytes = record.key.size();
  record.leaves.push_back({"", std::move(tensor)});
  folder.records.push_back(std::move(record));
  return folder;
}

}  // namespace

double CompareProgress::fraction() const {
  const auto share = [](std::uint64_t done, std::uint64_t all) {
    return all == 0 ? 0.0 : std::min(static_cast<double>(done) / static_cast<double>(all), 1.0);
  };
  const double rows_at_work = std::min(static_cast<double>(kRowsAtOnce), static_cast<double>(rows - rows_done));
  const double of_folder =
      rows == 0 ? 0 : share(rows_done, rows) + share(bytes_done, bytes) * rows_at_work / static_cast<double>(rows);
  return folders == 0 ? of_folder : (static_cast<double>(folders_done) + of_folder) / static_cast<double>(folders);
}

void RowSink::add_all(std::span<const ComparedRow> rows, ThreadTeam& /*team*/) {
  for (const ComparedRow& row : rows) add(row);
}

ComparedFolders compare_dumps(const std::string& golden, const std::string& target, const CompareOptions& options,
                              const std::vector<RowSink*>& sinks) {
  const Dump golden_dump = open_dump(golden);
  const Dump target_dump = open_dump(target);
  if (golden_dump.kind != target_dump.kind) {
    throw ConfigError("cannot compare " + std::string(kind_text(golden_dump.kind)) + " (" + golden + ") with " +
                      std::string(kind_text(target_dump.kind)) + " (" + target + ")");
  }
  ThreadTeam team(compute_thread_count());
  FolderComparison comparison(options, team);
  ComparedFolders result;
  if (golden_dump.kind == PathKind::kTensorFile) {
    const auto folder_of = [](const std::string& file) {
      return RankFolder{{}, {}, "", fs::absolute(file).parent_path()};
    };
    comparison.run({folder_of(golden), folder_of(target)}, records_of_file(golden), records_of_file(target), sinks);
    result.pairs = 1;
    return result;
  }
  const std::vector<FolderPair> pairs =
      pair_folders(selected_folders(golden_dump.folders, options.step, options.rank),
                   selected_folders(target_dump.folders, options.step, options.rank), golden_dump.kind);
  if (options.progress != nullptr) options.progress->folders = pairs.size();
  std::vector<std::string> paths;  // two a pair
  for (const FolderPair& pair : pairs) {
    paths.push_back(pair.golden ? pair.golden->path : "");
    paths.push_back(pair.target ? pair.target->path : "");
  }
  FolderRecords golden_records;
  bool is_readable = true;
  read_folders(paths, team, [&](std::size_t i, FolderRecords records, const std::string& problem) {
    if (!problem.empty()) result.unreadable.push_back(problem);  // one damaged rank does not hide the others
    if (i % 2 == 0) {
      golden_records = std::move(records);
      is_readable = problem.empty();
      return true;
    }
    const FolderPair& pair = pairs[i / 2];
    if (!pair.target) result.golden_only.push_back(label(*pair.golden));
    if (!pair.golden) result.target_only.push_back(label(*pair.target));
    if (pair.golden && pair.target) ++result.pairs;
    if (is_readable && problem.empty()) comparison.run(pair, golden_records, records, sinks);
    golden_records = {};
    if (options.progress != nullptr) options.progress->end_folder();
    return true;
  });
  return result;
}

}  // namespace msprobe
