#include "session/session.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "msprobe/error.h"
#include "pipeline/fork.h"
#include "pipeline/resources.h"

namespace msprobe {
namespace {

// What a queued job takes besides the data: names, shapes, the record. Keeps a queue of tiny saves bounded too.
constexpr std::size_t kJobOverheadBytes = 1024;
constexpr std::chrono::milliseconds kProgressInterval{200};
constexpr int kSilentIntervals = 5;
constexpr std::int64_t kLargestStep = std::int64_t{1} << 53;  // what JSON readers hold exactly

}  // namespace

Session::Session(std::shared_ptr<const Config> config, std::shared_ptr<const FrameworkHooks> hooks)
    : Session(std::move(config), std::move(hooks), nullptr) {
  if (!config_->async_dump) return;
  const std::size_t limit = async_memory_limit_bytes();
  pool_ = BufferPool::create(limit);
  pipeline_ = std::make_unique<Pipeline>(limit, async_thread_count());
  termination_ = std::make_unique<TerminationGuard>([this] {
    pipeline_->hold();
    drain();
  });
}

Session::Session(std::shared_ptr<const Config> config, std::shared_ptr<const FrameworkHooks> hooks,
                 const Session* parent)
    : config_(std::move(config)),
      hooks_(std::move(hooks)),
      generation_(fork_generation()),
      errors_(ErrorBook::from_environment()),
      run_folder_(std::make_shared<RunFolder>(
          parent != nullptr ? parent->run_folder_->root() : Directory::create_root(config_->dump_path),
          parent == nullptr, errors_)),
      config_watch_(parent != nullptr ? ConfigWatch::for_forked_child(parent->config_watch_)
                                      : ConfigWatch(config_->config_path, config_->dump_enable)),
      team_(parent != nullptr ? 1 : compute_thread_count()) {
  if (parent != nullptr) step_number_ = parent->step_number_.load();
}

std::unique_ptr<Session> Session::for_forked_child(const Session& parent) {
  std::unique_ptr<Session> child(new Session(parent.config_, parent.hooks_, &parent));
  child->closed_ = parent.closed_.load();
  child->errors_->warn_once("forked", "this forked process writes to " + child->run_folder_->root().path() +
                                          "/step*/proc" + std::to_string(getpid()));
  return child;
}

Session::~Session() { close(); }

bool Session::is_active() {
  const Activity activity = activity_.load(std::memory_order_acquire);
  if (activity != Activity::kUndecided) return activity == Activity::kActive;
  try {
    return decide();
  } catch (...) {
    errors_->add_failure("a save", std::current_exception());
    return false;
  }
}

// Asks the framework for the rank without the lock: it may run Python, which may wait for a thread that wants the lock.
bool Session::decide() {
  const bool rank_known = [&] {
    const std::lock_guard lock(mutex_);
    return rank_.has_value();
  }();
  const std::optional<std::int64_t> asked = hooks_->rank && !rank_known ? hooks_->rank() : std::nullopt;
  if (closed_) throw StateError("the debugger is closed: the process ends");
  const std::lock_guard lock(mutex_);
  if (!rank_) rank_ = asked;
  const bool active = !closed_ && config_watch_.enabled() && config_->step.matches(step_number_) &&
                      config_->rank.matches(rank_.value_or(0));
  if (active && !step_) {
    const bool with_files = config_->task == Task::kTensor;
    DebugJsonHeader header{with_files ? "tensor" : "statistics", "debug", hooks_->name, ""};
    auto fresh = std::make_unique<Step>();
    fresh->folder = std::make_shared<StepFolder>(run_folder_, step_number_, rank_, std::move(header),
                                                 with_files ? TensorPlace::kSubfolder : TensorPlace::kNone);
    step_ = std::move(fresh);
  }
  activity_ = active ? Activity::kActive : Activity::kInactive;
  return active;
}

LeafWork Session::work() noexcept {
  return {.with_checksum = config_->summary_mode == SummaryMode::kMd5,
          .with_file = config_->task == Task::kTensor,
          .team = &team_};
}

Ticket Session::save(std::string_view name, Value value, bool with_gradient) {
  if (closed_) throw StateError("save: the debugger is closed");
  Ticket ticket;
  try {
    if (auto job = make_job(name, std::move(value), with_gradient, ticket)) execute(std::move(job));
  } catch (...) {
    errors_->add_failure(name, std::current_exception());
  }
  errors_->throw_first();
  return ticket;
}

// Nothing: the step is filtered out.
std::unique_ptr<SaveJob> Session::make_job(std::string_view name, Value value, bool with_gradient, Ticket& ticket) {
  if (make_keys_unique(value)) {
    errors_->warn_once("equal keys", "\"" + std::string(name) +
                                         "\": a mapping has two keys with the same text; the second gets #2 behind it");
  }
  SaveName names;
  std::shared_ptr<StepFolder> folder;
  while (!folder) {
    if (!is_active()) return nullptr;
    const std::lock_guard lock(mutex_);
    if (!step_) continue;  // another thread has ended the step just now: this save belongs to the next one
    names = step_->names.next(name, with_gradient);
    folder = step_->folder;
  }
  if (names.collided) {
    errors_->warn_once("name " + std::string(name),
                       "\"" + std::string(name) +
                           "\" and the gradient of another variable have the same name; saved as \"" + names.forward +
                           "\"" + (with_gradient ? ", gradient \"" + names.gradient + "\"" : ""));
  }
  std::shared_ptr<TicketState> state;
  if (with_gradient) state = std::make_shared<TicketState>(record_key(names.gradient, names.count), folder);
  auto job = std::make_unique<SaveJob>(record_key(names.forward, names.count), std::move(value), state, folder, work(),
                                       errors_);
  if (state && !state->leaves.empty()) ticket = Ticket(std::move(state));
  return job;
}

void Session::save_gradient(const Ticket& ticket, std::size_t leaf, TensorLeaf gradient) {
  const auto& state = ticket.state();
  if (!state || closed_ || state->generation != generation_ || leaf >= state->leaves.size()) return;
  TicketState::Leaf& place = *state->leaves[leaf];
  if (place.spent.exchange(true)) {
    errors_->count_repeated_gradient();
    return;
  }
  try {
    execute(std::make_unique<GradientJob>(state, place, std::move(gradient), work(), errors_));
  } catch (...) {
    errors_->add_failure(state->key, std::current_exception());
  }
  errors_->throw_first();
}

// Runs the job here, or hands it a copy of the data and queues it.
void Session::execute(std::unique_ptr<DataJob> job) {
  if (!pipeline_) {
    run_inline(*job);
    return;
  }
  const std::size_t bytes = job->snapshot_size() + kJobOverheadBytes;
  if (bytes <= pipeline_->limit_bytes()) {
    auto reservation = pipeline_->reserve(bytes);
    try {
      job->take_snapshot(*pool_);
      pipeline_->submit(std::move(job), std::move(reservation));
      return;
    } catch (const std::bad_alloc&) {
      if (!job) throw;
    }
  }
  // Too large for the queue, or no memory for a copy: in place, after what was saved before.
  pipeline_->drain();
  run_inline(*job);
}

void Session::begin_step(std::optional<std::int64_t> number) {
  std::unique_ptr<Step> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = std::move(step_);
    step_number_ = number.value_or(step_number_ + 1);
    activity_ = Activity::kUndecided;
  }
  if (!ended) return;
  if (pipeline_) {
    pipeline_->submit(std::make_unique<EndStepJob>(ended->folder), nullptr);
  } else {
    ended->folder->end_step();
  }
}

void Session::step() {
  if (closed_) return;
  try {
    config_watch_.refresh(*errors_);
  } catch (...) {
    errors_->add_failure("dump_enable", std::current_exception());
  }
  try {
    begin_step(std::nullopt);
  } catch (...) {
    errors_->add_failure("step", std::current_exception());
  }
  errors_->throw_first();
}

void Session::set_init_step(std::int64_t number) {
  if (number < 0 || number > kLargestStep) {
    throw StateError("set_init_step: found " + std::to_string(number) + ", allowed is 0 to 2^53");
  }
  if (closed_) return;
  try {
    begin_step(number);
  } catch (...) {
    errors_->add_failure("set_init_step", std::current_exception());
  }
}

void Session::drain() {
  if (!pipeline_) return;
  const QueueState at_start = pipeline_->state();
  const std::uint64_t total = at_start.submitted - at_start.committed;
  int intervals = 0;
  bool shown = false;
  while (!pipeline_->wait_for(at_start.submitted, kProgressInterval)) {
    if (!hooks_->drain_progress || ++intervals < kSilentIntervals) continue;
    const std::uint64_t done = pipeline_->state().committed - at_start.committed;
    show_progress(std::min(done, total), total);
    shown = true;
  }
  if (shown) show_progress(total, total);
}

// The hook is the framework's code and the thread may be the guard's, where nothing may escape.
void Session::show_progress(std::uint64_t done, std::uint64_t total) noexcept {
  try {
    hooks_->drain_progress(done, total);
  } catch (...) {
    errors_->add_failure("progress", std::current_exception());
  }
}

// A second caller waits until the first one has drained.
void Session::close() {
  std::call_once(closing_, [this] { close_once(); });
}

void Session::close_once() {
  closed_ = true;
  begin_step(step_number_);
  drain();
  termination_.reset();
  run_folder_->release_lock();
}

void Session::abandon() noexcept { run_folder_->release_lock(); }

}  // namespace msprobe
