#include "pipeline/thread_team.h"

#include <algorithm>

#include "pipeline/signals_blocked.h"

namespace msprobe {

ThreadTeam::ThreadTeam(unsigned threads) noexcept : threads_(std::max(threads, 1U)) {}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_ready_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadTeam::run(std::size_t parts, const Part& part, const std::function<void()>& meanwhile) {
  Run run{part, parts};
  std::unique_lock lock(mutex_);
  runs_.push_back(&run);
  ++busy_;
  start_helpers(meanwhile ? parts : parts - std::min<std::size_t>(parts, 1));
  if (meanwhile) {
    lock.unlock();
    std::exception_ptr error;
    try {
      meanwhile();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !run.error) run.error = error;
  }
  while (run.is_open()) take_part(run, lock);
  std::erase(runs_, &run);
  --busy_;
  helper_left_.wait(lock, [&] { return run.helpers == 0; });
  if (find_open() != nullptr) work_ready_.notify_all();  // there is room for a helper more
  if (run.error) std::rethrow_exception(run.error);
}

void ThreadTeam::take_part(Run& run, std::unique_lock<std::mutex>& lock) noexcept {
  const std::size_t index = run.next++;
  lock.unlock();
  std::exception_ptr error;
  try {
    run.part(index);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (error && !run.error) run.error = error;
}

void ThreadTeam::help() {
  std::unique_lock lock(mutex_);
  while (true) {
    Run* run = nullptr;
    work_ready_.wait(lock, [&] { return stopping_ || (busy_ < threads_ && (run = find_open()) != nullptr); });
    if (stopping_) return;
    ++busy_;
    ++run->helpers;
    while (run->is_open() && busy_ <= threads_) take_part(*run, lock);
    --run->helpers;
    --busy_;
    if (run->helpers == 0) helper_left_.notify_all();
  }
}

ThreadTeam::Run* ThreadTeam::find_open() const noexcept {
  const auto found = std::ranges::find_if(runs_, &Run::is_open);
  return found != runs_.end() ? *found : nullptr;
}

// Fewer than `wanted` where the system gives no thread: then there is less help.
void ThreadTeam::start_helpers(std::size_t wanted) noexcept {
  const std::size_t target = std::min<std::size_t>(wanted, threads_ - 1);
  try {
    const SignalsBlocked blocked;
    while (helpers_.size() < target) helpers_.emplace_back([this] { help(); });
  } catch (const std::exception&) {
    // std::system_error or std::bad_alloc
  }
  for (std::size_t i = 0; i < target; ++i) work_ready_.notify_one();
}

}  // namespace msprobe
