#pragma once
// Reads what a dump holds.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace msprobe {

// The folder of one step of one rank.
struct RankFolder {
  std::optional<std::int64_t> step;  // nothing: the path has no step{N} in it
  std::optional<std::int64_t> rank;  // nothing: proc{pid}
  std::string name;                  // "rank3", "proc17"
  std::string path;
};

// Returns the folders of a dump, of one step, or of one rank (or its debug.json), by step, then rank, then name.
// Throws: IoError; FormatError if `path` is none of these.
[[nodiscard]] std::vector<RankFolder> find_rank_folders(const std::string& path);

// One leaf of a record: a tensor, a plain value, or null.
struct DumpEntry {
  std::string key;   // "x_grad.0.debug"
  std::string name;  // "x", also of a gradient
  std::int64_t count = 0;
  bool is_gradient = false;
  std::string index;                // where the leaf stands in the nesting: "b.0"
  std::string json;                 // its record, with NaN and Infinity as numbers
  std::optional<std::string> file;  // path of the tensor file
};

// Returns the leaves of the folder of a rank, in recorded order. Throws: IoError, FormatError.
[[nodiscard]] std::vector<DumpEntry> read_rank_folder(const std::string& folder);

}  // namespace msprobe
