#pragma once
// Lets several threads share the work on one large tensor while its caller waits.
//
//   caller                                helper 1..n, asleep between runs
//   run(parts) ---- wakes --------------> part 1, part 3, ...
//   meanwhile(), then part 0, part 2, ...
//   waits for the helpers' last parts
//
// Any number of threads may call run() at once: callers and helpers at work are together at most threads(), as long as
// the callers alone are not more. A helper that is one too many leaves after its part.

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace msprobe {

class ThreadTeam {
 public:
  using Part = std::function<void(std::size_t)>;

  // `threads` > 0, the callers included; 1: run() works alone. The helpers start with the first run that wants them.
  explicit ThreadTeam(unsigned threads) noexcept;
  // Joins. No run may be going on.
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  [[nodiscard]] unsigned threads() const noexcept { return threads_; }

  // Calls part(0) ... part(parts - 1), each once, in any order and several at once, and `meanwhile` on this thread
  // before it takes parts itself; returns when all are over. Without a helper to be had this thread does it all.
  // Throws: the first exception of `meanwhile` or a part, after which no further part begins.
  // Thread: any but within a part.
  void run(std::size_t parts, const Part& part, const std::function<void()>& meanwhile = {});

 private:
  // One call of run(), on the stack of its caller. Guarded by mutex_.
  struct Run {
    const Part& part;
    std::size_t parts;
    std::size_t next = 0;        // the first part that nobody has taken
    unsigned helpers = 0;        // at work on it
    std::exception_ptr error{};  // the first

    [[nodiscard]] bool is_open() const noexcept { return next < parts && !error; }
  };

  void help();
  void take_part(Run& run, std::unique_lock<std::mutex>& lock) noexcept;
  [[nodiscard]] Run* find_open() const noexcept;
  void start_helpers(std::size_t wanted) noexcept;

  const unsigned threads_;
  std::mutex mutex_;
  // Guarded by mutex_:
  std::condition_variable work_ready_;
  std::condition_variable helper_left_;
  std::vector<Run*> runs_;
  unsigned busy_ = 0;  // callers in run(), and helpers at work
  bool stopping_ = false;
  std::vector<std::thread> helpers_;
};

// Calls item(i) for each i below `count`, `part_size` of them in a row on one thread. As ThreadTeam::run.
template <class Item>
void run_in_parts(std::size_t count, std::size_t part_size, ThreadTeam& team, const Item& item) {
  team.run((count + part_size - 1) / part_size, [&](std::size_t part) {
    const std::size_t end = std::min(count, (part + 1) * part_size);
    for (std::size_t i = part * part_size; i < end; ++i) item(i);
  });
}

}  // namespace msprobe
