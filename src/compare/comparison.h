#pragma once
// Compares two dumps: pairs their folders, the records in them, the values of their tensor files.

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compare/match.h"
#include "compare/row.h"
#include "compare/tolerance.h"
#include "msprobe/config.h"
#include "pipeline/thread_team.h"

namespace msprobe {

// Rows that one thread takes at a time.
inline constexpr std::size_t kRowsOfPart = 256;

// Who takes the rows, in the order of step, rank and record. A row is there only during the call.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void add(const ComparedRow& row) = 0;
  // Takes several rows in their order; `team` may share the work.
  virtual void add_all(std::span<const ComparedRow> rows, ThreadTeam& team);
};

// How far a comparison is, for another thread to look at.
struct CompareProgress {
  std::atomic<std::uint64_t> folders = 0, folders_done = 0;
  std::atomic<std::uint64_t> rows = 0, rows_done = 0;    // of the folder at work
  std::atomic<std::uint64_t> bytes = 0, bytes_done = 0;  // of the files of the rows at work

  void begin_folder(std::uint64_t its_rows) {
    rows_done = 0;
    rows = its_rows;
  }
  void end_folder() {
    begin_folder(0);
    ++folders_done;
  }
  void begin_files(std::uint64_t their_bytes) {
    bytes_done = 0;
    bytes = their_bytes;
  }
  [[nodiscard]] double fraction() const;  // 0 to 1
};

struct CompareOptions {
  MatchOptions match;
  ToleranceOptions tolerance;
  Filter step, rank;                    // only these; a folder without a rank counts as rank 0
  CompareProgress* progress = nullptr;  // may be null
};

struct ComparedFolders {
  std::int64_t pairs = 0;
  std::vector<std::string> golden_only;  // "step3/rank1"
  std::vector<std::string> target_only;
  std::vector<std::string> unreadable;  // why; such a pair has no rows
};

// Both paths are dumps, steps, ranks or tensor files. Folders are paired by step and rank; what is left of a step, one
// folder on each side and one of them a proc{pid}, is a pair as well. Every leaf of either side becomes a row.
// Memory: the records of one pair of folders (of several that are small together), and two blocks a thread.
// Throws: IoError, FormatError if a path is nothing of that; ConfigError if the paths are of different kinds.
ComparedFolders compare_dumps(const std::string& golden, const std::string& target, const CompareOptions& options,
                              const std::vector<RowSink*>& sinks);

}  // namespace msprobe
