#pragma once
// The single-point save: counts, names, computes and writes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msprobe/config.h"
#include "msprobe/value.h"

namespace msprobe {

struct TicketState;

// A save whose gradients may still come. Holds the step, the count and the place of the gradient in debug.json, so
// that no number depends on when the gradient arrives. Cheap to copy; the last copy to go gives the places up.
class Ticket {
 public:
  Ticket() = default;  // of nothing: no gradient is expected
  explicit Ticket(std::shared_ptr<TicketState> state) noexcept : state_(std::move(state)) {}
  [[nodiscard]] bool expects_gradients() const noexcept { return state_ != nullptr; }
  [[nodiscard]] const std::shared_ptr<TicketState>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<TicketState> state_;
};

// What only the framework knows.
struct FrameworkHooks {
  std::string name = "cpp";  // "framework" in debug.json
  // The rank, nothing while unknown. Asked at each step's first save until it is known, in the saving thread.
  std::function<std::optional<std::int64_t>()> rank;
  // Shows how far a drain of the queue is: jobs done, jobs in all. Called about five times a second on the
  // draining thread once the drain takes over a second, and a last time with done == all.
  std::function<void(std::uint64_t, std::uint64_t)> drain_progress;
};

struct Message {
  enum class Level : std::uint8_t { kInfo, kWarning };
  Level level;
  std::string text;
};

struct Summary {
  std::uint64_t saves = 0;               // records written
  std::uint64_t gradients = 0;           // gradient leaves written
  std::uint64_t repeated_gradients = 0;  // more backwards over a graph whose gradient was already there
  std::uint64_t failures = 0;            // records, leaves or files that could not be written
  std::vector<std::pair<std::string, std::uint64_t>> reasons;  // of the failures
  [[nodiscard]] std::string text() const;
};

// Thread: any, for every function. After construction nothing throws out of `save`, `save_gradient`, `step` and
// `set_init_step` but for wrong use after `close`: failures become messages. With MSPROBE_ON_ERROR=raise in the
// environment at construction, failures throw Error instead (async: at the next call).
// A forked child gets a session of its own at its first call: folder `proc{pid}`, synchronous, one warning.
class Debugger {
 public:
  // Creates `config.dump_path`. Throws: ConfigError, IoError.
  explicit Debugger(Config config, FrameworkHooks hooks = {});
  ~Debugger();
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;

  // Whether a save would be recorded now: the step and rank filters and `dump_enable`. Cheap; ask before any work.
  [[nodiscard]] bool is_active();

  // Saves `value` under `name`. Sync: on disk when it returns. Async: copied when it returns.
  // `with_gradient`: the gradient record is written along, null until save_gradient() fills its leaves.
  Ticket save(std::string_view name, Value value, bool with_gradient = false);

  // Saves the gradient of the `leaf`-th tensor (depth first, of those with `expects_gradient`) of a save, once; further
  // calls for the same leaf are counted only.
  void save_gradient(const Ticket& ticket, std::size_t leaf, TensorLeaf gradient);

  // A part of the save `name` could not be read by whoever made its Value: counted, and told at a limited rate.
  void report_failure(std::string_view name, std::string_view reason);

  void step();
  // Numbers the step that begins now `number`, 0 to 2^53. Throws: StateError for another number.
  void set_init_step(std::int64_t number);
  [[nodiscard]] std::int64_t current_step() const;

  // Waits until all that was saved before is on disk; shows progress as FrameworkHooks says.
  void drain();
  // Drains, gives up the rank's lock. Later saves throw StateError.
  void close();

  // Messages for the user that came up since the last call, oldest first. `has_messages` costs one load.
  [[nodiscard]] bool has_messages() const noexcept;
  [[nodiscard]] std::vector<Message> take_messages();
  [[nodiscard]] Summary summary() const;
  [[nodiscard]] const Config& config() const noexcept;

 private:
  class Impl;
  Impl& impl() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace msprobe
