#pragma once
// Finds out what a path is and which folders of records it holds:
//
//   {dump}/step{N}/rank{R} or proc{pid}        of the debugger, ours and the peer's: debug.json, dump_tensor_data/
//   {dump}/step{N}/rank{R}/{name}_{dtype}_{k}.npy        of a MindSpore graph

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/record_reader.h"
#include "msprobe/config.h"
#include "msprobe/dtype.h"
#include "msprobe/dump_reader.h"
#include "pipeline/thread_team.h"

namespace msprobe {

enum class PathKind : std::uint8_t { kDump, kStep, kRank, kTensorFile };

struct Dump {
  PathKind kind = PathKind::kDump;
  std::vector<RankFolder> folders;  // by step, then rank, then name; none of kTensorFile
};

// Returns what `path` is: a dump, one of its steps, one rank of a step (or its debug.json), or any other file.
// Throws: IoError; FormatError for a folder that is none of them.
[[nodiscard]] Dump open_dump(const std::string& path);

// Returns those of `folders` that the filters let through; a folder without a step passes any, one without a rank
// counts as rank 0.
[[nodiscard]] std::vector<RankFolder> selected_folders(std::vector<RankFolder> folders, const Filter& step,
                                                       const Filter& rank);

// One tensor, scalar or null of a folder.
struct FolderRecords {
  std::string debug_json;  // path; empty: the folder of a graph
  std::string task, framework;
  std::uint64_t json_bytes = 0;
  bool exact = false;  // written by this tool: statistics are those of the values to 1e-12
  std::vector<Record> records;
};

// Reads the records of `folder`: debug.json, then the .npy files beside it that no record names, by the time they were
// written. Such a file becomes a record "{name}[_grad].{k}" with the dtype of its name, the shape of its header, and
// its file as data_name. Throws: IoError, FormatError.
[[nodiscard]] FolderRecords read_folder(const std::string& folder);

// Gives the records of `folders` in their order; several threads read ahead what is small together. An empty path is a
// folder without records. `take` gets the index, the records, and why they could not be read ("": they could); it
// returns whether to go on. Thread: `take` runs in the caller's. Throws: what `take` throws, but no Error of a folder.
void read_folders(
    const std::vector<std::string>& folders, ThreadTeam& team,
    const std::function<bool(std::size_t index, FolderRecords records, const std::string& problem)>& take);

// Returns the path of the tensor file of a leaf, nothing if it has none. The file lies in dump_tensor_data beside
// debug.json or beside it. Throws: FormatError for a name, or a link of that name, that leads elsewhere.
[[nodiscard]] std::optional<std::string> tensor_path(const std::string& folder, const RecordedTensor& tensor);

// Returns the dtype that a framework spells so: "torch.bfloat16", "BFloat16", "float32"; nothing for others.
[[nodiscard]] std::optional<DType> recorded_dtype(std::string_view spelling);

// Returns the number in `name` after `prefix`: 3 for "step3". Nothing if the rest is no number.
[[nodiscard]] std::optional<std::int64_t> number_after(std::string_view prefix, std::string_view name);

}  // namespace msprobe
