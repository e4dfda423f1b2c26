#pragma once
// Runs jobs on native threads, in parallel, and commits their results in the order in which they were submitted.
//
//   caller                                   worker 1..n
//   reserve(bytes)  blocks while full
//   copy the data into pool buffers
//   submit(job)  --> queue --> run()  --> waits for its turn --> commit()   errors: job.fail()
//                                                            \-> the job dies, its reservation ends
//
// The queue is bounded in bytes: what is reserved never exceeds the limit, and nothing is dropped.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace msprobe {

class Job {
 public:
  virtual ~Job() = default;
  // The work that needs no order: statistics, checksum, tensor files. May throw.
  virtual void run() = 0;
  // The work that is done in the order of submission, after `run` (also after a failed one, so that a record can say
  // what is known). May throw.
  virtual void commit() = 0;
  // Takes what `run` or `commit` threw.
  virtual void fail(std::exception_ptr error) noexcept = 0;
};

// Runs `job` in the calling thread, the way a worker would.
void run_inline(Job& job) noexcept;

// Bytes of the queue that a caller holds until the object dies.
class Reservation;

struct QueueState {
  std::uint64_t submitted = 0;  // jobs
  std::uint64_t committed = 0;
  std::size_t reserved_bytes = 0;
};

class Pipeline {
 public:
  // `limit_bytes` > 0, `threads` > 0. The threads start with the first job.
  Pipeline(std::size_t limit_bytes, unsigned threads);
  // Drains and joins.
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Waits until `bytes` fit in the queue; `bytes` <= limit_bytes(). Thread: any but a worker.
  [[nodiscard]] std::shared_ptr<Reservation> reserve(std::size_t bytes);

  // Queues `job`, whose memory `reservation` stands for. Where the system gives no thread, runs it here.
  void submit(std::unique_ptr<Job> job, std::shared_ptr<Reservation> reservation);

  // Waits until the first `jobs` jobs are committed, at most `timeout`; returns whether they are.
  bool wait_for(std::uint64_t jobs, std::chrono::milliseconds timeout);
  // Waits until every job submitted before this call is committed.
  void drain();
  // From now on reserve() waits for ever: the process is about to end, and what it takes in would be lost.
  void hold() noexcept;

  [[nodiscard]] QueueState state() const;
  [[nodiscard]] std::size_t limit_bytes() const noexcept { return limit_bytes_; }

 private:
  friend class Reservation;
  struct Task {
    std::unique_ptr<Job> job;
    std::shared_ptr<Reservation> reservation;
    bool has_run = false;
  };

  bool start_threads();
  void work();
  void commit_ready(std::unique_lock<std::mutex>& lock);
  void release(std::size_t bytes) noexcept;

  const std::size_t limit_bytes_;
  const unsigned thread_count_;

  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::condition_variable work_ready_;
  std::condition_variable space_freed_;
  std::condition_variable progress_;
  std::deque<Task> queue_;     // jobs [committed, submitted): waiting, running, or waiting for their turn
  std::uint64_t started_ = 0;  // jobs that a worker has taken
  bool committing_ = false;
  bool stopping_ = false;
  bool held_ = false;
  QueueState state_;
  std::vector<std::thread> threads_;
};

class Reservation {
 public:
  explicit Reservation(Pipeline& pipeline) noexcept : pipeline_(pipeline) {}
  ~Reservation() { pipeline_.release(bytes_); }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

 private:
  friend class Pipeline;
  Pipeline& pipeline_;
  std::size_t bytes_ = 0;
};

}  // namespace msprobe
