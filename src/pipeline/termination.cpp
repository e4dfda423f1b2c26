#include "pipeline/termination.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

namespace msprobe {
namespace {

// What the handler may touch: lock-free atomics only.
std::atomic<int> g_wake_descriptor{-1};
std::atomic<pid_t> g_owner{0};

// What a byte in the pipe says to the guard's thread.
constexpr char kTerminated = 'T';
constexpr char kStop = 'S';

void raise_with_default(int signal_number) noexcept {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(signal_number, &usual, nullptr);
  kill(getpid(), signal_number);
}

void on_signal(int signal_number) noexcept {
  const int saved_errno = errno;
  const int descriptor = g_wake_descriptor.load();
  // A forked child has the handler but not the thread that it wakes.
  if (g_owner.load() != getpid() || descriptor < 0 || ::write(descriptor, &kTerminated, 1) != 1) {
    raise_with_default(signal_number);
  }
  errno = saved_errno;
}

// Also where the handler is ours but belongs to the process that this one was forked from.
bool may_install() noexcept {
  struct sigaction current {};
  if (sigaction(SIGTERM, nullptr, &current) != 0 || (current.sa_flags & SA_SIGINFO) != 0) return false;
  return current.sa_handler == SIG_DFL || (current.sa_handler == on_signal && g_owner.load() != getpid());
}

// The process's pipe. It is never closed, so that a handler that has just read its number cannot write into another
// file. Returns an invalid one where the system has none left.
struct Pipe {
  int read_end = -1;
  int write_end = -1;
};
Pipe process_pipe() noexcept {
  static Pipe pipe;
  static pid_t owner = 0;
  if (owner == getpid()) return pipe;
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  owner = getpid();
  pipe = {ends[0], ends[1]};
  return pipe;
}

char read_byte(int descriptor) noexcept {
  char byte = 0;
  while (::read(descriptor, &byte, 1) < 0 && errno == EINTR) continue;
  return byte;
}

}  // namespace

TerminationGuard::TerminationGuard(std::function<void()> drain) : drain_(std::move(drain)) {
  if (!may_install()) return;
  const Pipe pipe = process_pipe();
  if (pipe.read_end < 0) return;
  sigset_t all;
  sigset_t previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  try {
    // A second SIGTERM is a byte that nobody reads: the drain goes on.
    thread_ = std::thread([this, pipe] {
      if (read_byte(pipe.read_end) == kTerminated) run_and_raise();
    });
  } catch (const std::system_error&) {
    // No thread to be had: SIGTERM keeps its usual course.
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  if (!thread_.joinable()) return;
  g_owner = getpid();
  g_wake_descriptor = pipe.write_end;
  struct sigaction ours {};
  ours.sa_handler = on_signal;
  ours.sa_flags = SA_RESTART;
  sigfillset(&ours.sa_mask);
  sigaction(SIGTERM, &ours, nullptr);
}

void TerminationGuard::run_and_raise() noexcept {
  drain_();
  raise_with_default(SIGTERM);
}

TerminationGuard::~TerminationGuard() {
  if (!thread_.joinable()) return;
  struct sigaction current {};
  if (sigaction(SIGTERM, nullptr, &current) == 0 && current.sa_handler == on_signal) {
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    sigaction(SIGTERM, &usual, nullptr);
  }
  const int descriptor = g_wake_descriptor.exchange(-1);
  while (::write(descriptor, &kStop, 1) < 0 && errno == EINTR) continue;
  thread_.join();
}

}  // namespace msprobe
