#include "pipeline/pipeline.h"

#include <algorithm>
#include <system_error>

#include "pipeline/signals_blocked.h"

namespace msprobe {
namespace {

void run_guarded(Job& job) noexcept {
  try {
    job.run();
  } catch (...) {
    job.fail(std::current_exception());
  }
}

void commit_guarded(Job& job) noexcept {
  try {
    job.commit();
  } catch (...) {
    job.fail(std::current_exception());
  }
}

}  // namespace

void run_inline(Job& job) noexcept {
  run_guarded(job);
  commit_guarded(job);
}

Pipeline::Pipeline(std::size_t limit_bytes, unsigned threads)
    : limit_bytes_(std::max<std::size_t>(limit_bytes, 1)), thread_count_(std::max(threads, 1U)) {}

Pipeline::~Pipeline() {
  drain();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<Reservation> Pipeline::reserve(std::size_t bytes) {
  auto reservation = std::make_shared<Reservation>(*this);
  std::unique_lock lock(mutex_);
  space_freed_.wait(lock, [&] { return !held_ && state_.reserved_bytes + bytes <= limit_bytes_; });
  state_.reserved_bytes += bytes;
  reservation->bytes_ = bytes;
  return reservation;
}

void Pipeline::release(std::size_t bytes) noexcept {
  {
    const std::lock_guard lock(mutex_);
    state_.reserved_bytes -= bytes;
  }
  space_freed_.notify_all();
}

void Pipeline::submit(std::unique_ptr<Job> job, std::shared_ptr<Reservation> reservation) {
  Task task{std::move(job), std::move(reservation)};  // outlives the lock, which its reservation takes when it ends
  std::unique_lock lock(mutex_);
  if (!start_threads()) {
    lock.unlock();
    run_inline(*task.job);
    return;
  }
  queue_.push_back(std::move(task));
  ++state_.submitted;
  lock.unlock();
  work_ready_.notify_one();
}

bool Pipeline::start_threads() {
  if (threads_.size() == thread_count_) return true;
  const SignalsBlocked blocked;
  try {
    while (threads_.size() < thread_count_) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    return !threads_.empty();
  }
  return true;
}

void Pipeline::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_ready_.wait(lock, [&] { return stopping_ || started_ < state_.submitted; });
    if (started_ == state_.submitted) return;
    Task& task = queue_[static_cast<std::size_t>(started_++ - state_.committed)];
    lock.unlock();
    run_guarded(*task.job);
    lock.lock();
    task.has_run = true;
    commit_ready(lock);
  }
}

// One thread at a time commits, whatever is next in order; the others go on running jobs.
void Pipeline::commit_ready(std::unique_lock<std::mutex>& lock) {
  if (committing_) return;
  committing_ = true;
  while (!queue_.empty() && queue_.front().has_run) {
    Task task = std::move(queue_.front());
    lock.unlock();
    commit_guarded(*task.job);
    task = {};  // frees the buffers and ends the reservation before anyone is told
    lock.lock();
    queue_.pop_front();
    ++state_.committed;
    progress_.notify_all();
  }
  committing_ = false;
}

bool Pipeline::wait_for(std::uint64_t jobs, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return progress_.wait_for(lock, timeout, [&] { return state_.committed >= jobs; });
}

void Pipeline::hold() noexcept {
  const std::lock_guard lock(mutex_);
  held_ = true;
}

void Pipeline::drain() {
  std::unique_lock lock(mutex_);
  const std::uint64_t target = state_.submitted;
  progress_.wait(lock, [&] { return state_.committed >= target; });
}

QueueState Pipeline::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

}  // namespace msprobe
