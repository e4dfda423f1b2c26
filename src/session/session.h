#pragma once
// One session of one process: filters, names, steps, and the way of a job to the disk.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "msprobe/debugger.h"
#include "pipeline/pipeline.h"
#include "pipeline/termination.h"
#include "pipeline/thread_team.h"
#include "session/config_watch.h"
#include "session/error_book.h"
#include "session/save_job.h"

namespace msprobe {

// Thread: any. Nothing throws but the constructor and, with MSPROBE_ON_ERROR=raise, kept errors.
class Session {
 public:
  Session(std::shared_ptr<const Config> config, std::shared_ptr<const FrameworkHooks> hooks);
  // The session of a forked child: the same settings, synchronous, in a folder of its own, starting at the parent's
  // step. Touches nothing of `parent` that another thread could hold locked.
  [[nodiscard]] static std::unique_ptr<Session> for_forked_child(const Session& parent);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] bool is_active();
  Ticket save(std::string_view name, Value value, bool with_gradient);
  void save_gradient(const Ticket& ticket, std::size_t leaf, TensorLeaf gradient);
  void step();
  void set_init_step(std::int64_t number);
  [[nodiscard]] std::int64_t current_step() const noexcept { return step_number_.load(); }

  void drain();
  void close();

  // In a forked child, of the parent's session: lets go of what the child shares with the parent.
  void abandon() noexcept;

  [[nodiscard]] ErrorBook& errors() const noexcept { return *errors_; }

 private:
  // The step that is being saved, made by its first save that passes the filters.
  struct Step {
    std::shared_ptr<StepFolder> folder;
    NameRegistry names;
  };
  enum class Activity : std::uint8_t { kUndecided, kActive, kInactive };

  Session(std::shared_ptr<const Config> config, std::shared_ptr<const FrameworkHooks> hooks, const Session* parent);
  bool decide();
  std::unique_ptr<SaveJob> make_job(std::string_view name, Value value, bool with_gradient, Ticket& ticket);
  void execute(std::unique_ptr<DataJob> job);
  // Nothing: the next one.
  void begin_step(std::optional<std::int64_t> number);
  void close_once();
  void show_progress(std::uint64_t done, std::uint64_t total) noexcept;
  [[nodiscard]] LeafWork work() noexcept;

  const std::shared_ptr<const Config> config_;
  const std::shared_ptr<const FrameworkHooks> hooks_;
  const std::uint64_t generation_;
  const std::shared_ptr<ErrorBook> errors_;
  const std::shared_ptr<RunFolder> run_folder_;
  ConfigWatch config_watch_;
  ThreadTeam team_;                                // of the callers; in a forked child they work alone
  std::shared_ptr<BufferPool> pool_;               // async only
  std::unique_ptr<Pipeline> pipeline_;             // async only
  std::unique_ptr<TerminationGuard> termination_;  // async only

  std::atomic<Activity> activity_{Activity::kUndecided};
  std::atomic<std::int64_t> step_number_{0};
  std::atomic<bool> closed_{false};
  std::once_flag closing_;
  std::mutex mutex_;
  // Guarded by mutex_:
  std::optional<std::int64_t> rank_;
  std::unique_ptr<Step> step_;
};

}  // namespace msprobe
