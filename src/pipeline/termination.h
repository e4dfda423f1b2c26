#pragma once
// Runs a function when SIGTERM comes, before the signal takes its usual course.
//
// A handler may do almost nothing, and Python's own handlers run only when the main thread returns to the interpreter,
// which it does not while it waits in a collective. So the native handler wakes a thread of ours through a pipe; that
// thread drains, restores the previous disposition and raises the signal again. Another SIGTERM meanwhile changes
// nothing.

#include <functional>
#include <memory>
#include <thread>

namespace msprobe {

// At most one in a process. Installs nothing if SIGTERM is not at its default: a user's handler is never replaced.
class TerminationGuard {
 public:
  // `drain` runs on the guard's own thread and must not throw.
  explicit TerminationGuard(std::function<void()> drain);
  // Gives the signal back if the handler is still ours.
  ~TerminationGuard();
  TerminationGuard(const TerminationGuard&) = delete;
  TerminationGuard& operator=(const TerminationGuard&) = delete;

 private:
  void run_and_raise() noexcept;

  std::function<void()> drain_;
  std::thread thread_;
};

}  // namespace msprobe
