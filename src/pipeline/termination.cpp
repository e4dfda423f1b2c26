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

void raise_with_default(int signal_number) noexcept {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(signal_number, &usual, nullptr);
  kill(getpid(), signal_number);
}

void on_signal(int signal_number) noexcept {
  const int saved_errno = errno;
  const int descriptor = g_wake_descriptor.load();
  const char byte = 'T';
  // A forked child has the handler but not the thread that it wakes.
  if (g_owner.load() != getpid() || descriptor < 0 || ::write(descriptor, &byte, 1) != 1) {
    raise_with_default(signal_number);
  }
  errno = saved_errno;
}

bool has_default_handler() noexcept {
  struct sigaction current {};
  return sigaction(SIGTERM, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) == 0 &&
         current.sa_handler == SIG_DFL;
}

}  // namespace

TerminationGuard::TerminationGuard(std::function<void()> drain) : drain_(std::move(drain)) {
  if (!has_default_handler()) return;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
  sigset_t all;
  sigset_t previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  try {
    thread_ = std::thread([this, read_end = ends[0]] {
      char byte = 0;
      ssize_t count = 0;
      do {
        count = ::read(read_end, &byte, 1);
      } while (count < 0 && errno == EINTR);
      ::close(read_end);
      if (count == 1 && byte == 'T') run_and_raise();
    });
  } catch (const std::system_error&) {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  if (!thread_.joinable()) return;
  g_owner = getpid();
  g_wake_descriptor = ends[1];
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
  if (descriptor >= 0) ::close(descriptor);  // end of file ends the thread
  thread_.join();
}

}  // namespace msprobe
