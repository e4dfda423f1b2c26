#pragma once
// What one process saves from compiled graphs.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "msprobe/value.h"
#include "pipeline/thread_team.h"
#include "session/error_book.h"
#include "session/leaf.h"
#include "session/run_folder.h"

namespace msprobe {

enum class GraphTask : std::uint8_t { kTensor, kStatistics, kBoth };

// Behind GraphDump, whose header tells what the functions do. Thread: any.
class GraphSession {
 public:
  explicit GraphSession(std::string framework);
  // The same settings and step, in folders proc{pid}.
  [[nodiscard]] static std::unique_ptr<GraphSession> for_forked_child(const GraphSession& parent);
  // Nothing: the child keeps its copies of the rank locks until it ends, because the table of folders may be locked.
  void abandon() noexcept {}

  void set_rank(std::optional<std::int64_t> rank);
  void save(std::string_view save_dir, std::string_view name, const TensorLeaf& tensor);
  void step();
  [[nodiscard]] ErrorBook& errors() const noexcept { return *errors_; }

 private:
  // One save_dir.
  struct Root {
    std::shared_ptr<RunFolder> run;
    std::optional<std::int64_t> rank;
    std::shared_ptr<StepFolder> folder;                    // of the current step; made by its first save
    std::unordered_map<std::string, std::int64_t> counts;  // saves in the current step, by name
  };
  struct Place {
    std::shared_ptr<StepFolder> folder;
    std::int64_t count;
  };

  GraphSession(std::string framework, GraphTask task, std::int64_t step);
  Root& root_of(const std::string& save_dir);
  Place next_place(std::string_view save_dir, std::string_view name);
  void write(const Place& place, std::string_view name, const TensorLeaf& tensor);

  const std::string framework_;
  const std::shared_ptr<ErrorBook> errors_;
  const GraphTask task_;
  const bool is_child_;
  ThreadTeam team_;
  std::atomic<std::int64_t> step_number_{0};
  std::mutex mutex_;
  // Guarded by mutex_:
  std::optional<std::int64_t> rank_;
  std::unordered_map<std::string, std::shared_ptr<Root>> roots_by_text_;  // two spellings of a path share a Root
};

}  // namespace msprobe
