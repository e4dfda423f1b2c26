#include "compare/dump.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "format/file_io.h"
#include "format/tensor_reader.h"
#include "msprobe/error.h"

namespace msprobe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDebugJson = "debug.json";
constexpr std::string_view kTensorFolder = "dump_tensor_data";

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) entries.push_back(*at);
  if (error) throw IoError("list", folder, error.value());
  return entries;
}

bool is_folder(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_directory(ignored);
}

// The rank of "rank3", nothing for "proc17" and "rank" (the peer's when no rank is known).
bool is_rank_name(std::string_view name, std::optional<std::int64_t>& rank) {
  rank = number_after("rank", name);
  return rank || name == "rank" || number_after("proc", name);
}

bool holds_records(const fs::path& folder) {
  std::error_code ignored;
  if (fs::is_regular_file(folder / kDebugJson, ignored)) return true;
  return std::ranges::any_of(entries_of(folder), [](const auto& entry) { return entry.path().extension() == ".npy"; });
}

void add_ranks(Dump& dump, const fs::path& step_folder, std::optional<std::int64_t> step) {
  for (const fs::directory_entry& entry : entries_of(step_folder)) {
    RankFolder folder{step, {}, entry.path().filename(), entry.path()};
    if (is_folder(entry) && is_rank_name(folder.name, folder.rank)) dump.folders.push_back(std::move(folder));
  }
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return out;
}

// The name of a file does not say the shape, its header does.
std::vector<std::optional<std::int64_t>> shape_in_header(const fs::path& file) {
  try {
    const TensorFileReader reader(file);
    return {reader.info().shape.begin(), reader.info().shape.end()};
  } catch (const Error&) {  // a damaged file: whoever reads its values says so
    return {};
  }
}

// A file "{name}[_grad]_{dtype}_{k}.npy" of a graph.
std::optional<Record> graph_record(const fs::path& folder, const std::string& file_name) {
  std::string_view rest = file_name;
  rest.remove_suffix(std::string_view(".npy").size());
  const std::size_t last = rest.rfind('_');
  if (last == std::string_view::npos) return std::nullopt;
  const auto count = number_after("_", rest.substr(last));
  rest = rest.substr(0, last);
  const std::size_t middle = rest.rfind('_');
  if (!count || middle == std::string_view::npos) return std::nullopt;
  const std::string_view dtype = rest.substr(middle + 1);
  if (!dtype_from_name(dtype)) return std::nullopt;

  Record record;
  record.count = *count;
  std::string_view name = rest.substr(0, middle);
  record.key = std::string(name) + "." + std::to_string(*count);
  constexpr std::string_view kGradient = "_grad";
  record.is_gradient = name.ends_with(kGradient) && name.size() > kGradient.size();
  if (record.is_gradient) name.remove_suffix(kGradient.size());
  record.name_bytes = name.size();
  RecordedTensor tensor;
  tensor.form = std::make_shared<const TensorForm>(
      TensorForm{"mindspore.Tensor", std::string(dtype), shape_in_header(folder / file_name)});
  tensor.data_name = file_name;
  record.leaves.push_back({"", std::move(tensor)});
  return record;
}

struct GraphFile {
  fs::file_time_type written;
  std::string name;
};

void add_graph_files(FolderRecords& result, const std::string& folder) {
  std::unordered_set<std::string_view> named;
  for (const Record& record : result.records) {
    for (const RecordedLeaf& leaf : record.leaves) {
      if (const auto* tensor = std::get_if<RecordedTensor>(&leaf.content)) named.insert(tensor->data_name);
    }
  }
  std::vector<GraphFile> files;
  for (const fs::directory_entry& entry : entries_of(folder)) {
    std::error_code ignored;
    std::string name = entry.path().filename();
    if (entry.path().extension() != ".npy" || name.starts_with('.') || named.contains(name)) continue;
    files.push_back({entry.last_write_time(ignored), std::move(name)});
  }
  std::ranges::sort(files, {}, [](const GraphFile& file) { return std::tie(file.written, file.name); });
  std::vector<Record> records;
  for (const GraphFile& file : files) {
    if (auto record = graph_record(folder, file.name)) records.push_back(std::move(*record));
  }
  std::ranges::move(records, std::back_inserter(result.records));
}

// Whether the text ends as src/format/debug_json.h ends a file, and no other writer does.
bool is_written_by_us(std::string_view text) { return text.size() % 4096 == 0 && text.ends_with("\n }\n}\n"); }

}  // namespace

Dump open_dump(const std::string& path) {
  std::error_code error;
  // The user's own spelling may end with "/" or be ".", where the name of the folder is needed.
  const fs::path given = fs::canonical(path, error);
  if (error) throw IoError("open", path, error.value());
  Dump dump;
  if (!fs::is_directory(given, error)) {
    if (given.filename() != kDebugJson) {
      dump.kind = PathKind::kTensorFile;
      return dump;
    }
    return open_dump(given.parent_path());
  }
  const auto step_of = [](const fs::path& folder) { return number_after("step", folder.filename().native()); };
  std::optional<std::int64_t> rank;
  if (is_rank_name(given.filename().native(), rank) || fs::exists(given / kDebugJson, error)) {
    dump.kind = PathKind::kRank;
    dump.folders.push_back({step_of(given.parent_path()), rank, given.filename(), given});
    return dump;
  }
  add_ranks(dump, given, step_of(given));
  if (!dump.folders.empty()) {
    dump.kind = PathKind::kStep;
  } else {
    for (const fs::directory_entry& entry : entries_of(given)) {
      if (const auto step = step_of(entry.path()); step && is_folder(entry)) add_ranks(dump, entry.path(), step);
    }
  }
  if (dump.folders.empty() && holds_records(given)) {
    dump.kind = PathKind::kRank;
    dump.folders.push_back({{}, {}, given.filename(), given});
  }
  if (dump.folders.empty()) {
    throw FormatError(path + ": found no dump, expected folders step{N}/rank{R}, or one of them, or a debug.json");
  }
  std::ranges::sort(dump.folders, {}, [](const RankFolder& folder) {
    return std::tuple(folder.step, !folder.rank, folder.rank, folder.name);
  });
  return dump;
}

std::vector<RankFolder> selected_folders(std::vector<RankFolder> folders, const Filter& step, const Filter& rank) {
  std::erase_if(folders, [&](const RankFolder& folder) {
    return (folder.step && !step.matches(*folder.step)) || !rank.matches(folder.rank.value_or(0));
  });
  return folders;
}

std::vector<RankFolder> find_rank_folders(const std::string& path) {
  Dump dump = open_dump(path);
  if (dump.kind == PathKind::kTensorFile) throw FormatError(path + ": found a file, expected a dump or a debug.json");
  return std::move(dump.folders);
}

std::vector<DumpEntry> read_rank_folder(const std::string& folder) {
  std::vector<DumpEntry> entries;
  for (const Record& record : read_folder(folder).records) {
    for (const RecordedLeaf& leaf : record.leaves) {
      DumpEntry entry{record.key, std::string(record.name()), record.count, record.is_gradient, leaf.index, {}, {}};
      append_leaf(entry.json, leaf);
      if (const auto* tensor = std::get_if<RecordedTensor>(&leaf.content)) entry.file = tensor_path(folder, *tensor);
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

FolderRecords read_folder(const std::string& folder) {
  FolderRecords result;
  const std::string path = fs::path(folder) / kDebugJson;
  std::error_code error;
  if (fs::exists(path, error)) {
    const InputFile file(path);
    std::string text(file.size(), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(text)));
    result.debug_json = path;
    result.json_bytes = text.size();
    result.exact = is_written_by_us(text);
    RecordFile parsed = parse_records(std::move(text), path);
    result.task = std::move(parsed.task);
    result.framework = std::move(parsed.framework);
    result.records = std::move(parsed.records);
  } else {
    result.framework = "mindspore";
    result.exact = true;
  }
  add_graph_files(result, folder);
  return result;
}

void read_folders(const std::vector<std::string>& folders, ThreadTeam& team,
                  const std::function<bool(std::size_t, FolderRecords, const std::string&)>& take) {
  constexpr std::size_t kMostFolders = 256;
  constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;  // of JSON; records take about as much
  struct Content {
    FolderRecords records;
    std::string problem;
  };
  std::vector<Content> contents;
  for (std::size_t first = 0; first < folders.size(); first += contents.size()) {
    std::size_t end = first;
    for (std::uint64_t bytes = 0; end < folders.size() && end - first < kMostFolders; ++end) {
      std::error_code missing;
      const std::uintmax_t size =
          folders[end].empty() ? 0 : fs::file_size(fs::path(folders[end]) / kDebugJson, missing);
      if (!missing) bytes += size;
      if (end > first && bytes > kMostBytes) break;
    }
    contents.clear();
    contents.resize(end - first);
    team.run(contents.size(), [&](std::size_t i) {
      if (folders[first + i].empty()) return;
      try {
        contents[i].records = read_folder(folders[first + i]);
      } catch (const Error& error) {
        contents[i].problem = error.what();
      }
    });
    for (std::size_t i = 0; i < contents.size(); ++i) {
      if (!take(first + i, std::move(contents[i].records), contents[i].problem)) return;
    }
  }
}

std::optional<std::string> tensor_path(const std::string& folder, const RecordedTensor& tensor) {
  const std::string& name = tensor.data_name;
  if (name.empty()) return std::nullopt;
  const auto refuse = [&] { throw FormatError(folder + ": data_name \"" + name + "\" leads out of the folder"); };
  if (name.find('/') != std::string::npos || name == "." || name == ".." || name.find('\0') != std::string::npos) {
    refuse();
  }
  const fs::path in_subfolder = fs::path(folder) / kTensorFolder / name;
  const fs::path beside = fs::path(folder) / name;
  std::error_code ignored;
  const fs::path path = !fs::exists(in_subfolder, ignored) && fs::exists(beside, ignored) ? beside : in_subfolder;
  // The folder itself may be a link, to a larger disk.
  if (fs::is_symlink(path, ignored) &&
      fs::weakly_canonical(path, ignored).parent_path() != fs::weakly_canonical(path.parent_path(), ignored)) {
    refuse();
  }
  return path;
}

std::optional<DType> recorded_dtype(std::string_view spelling) {
  constexpr std::string_view kTorch = "torch.";
  if (spelling.starts_with(kTorch)) spelling.remove_prefix(kTorch.size());
  const std::string name = lower(spelling);
  if (const auto dtype = dtype_from_name(name)) return dtype;
  if (name == "float8e4m3fn") return DType::kFloat8E4m3fn;  // MindSpore
  if (name == "float8e5m2") return DType::kFloat8E5m2;
  return std::nullopt;
}

std::optional<std::int64_t> number_after(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return std::nullopt;
  const std::string_view digits = name.substr(prefix.size());
  if (!std::ranges::all_of(digits, [](char digit) { return digit >= '0' && digit <= '9'; })) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

}  // namespace msprobe
