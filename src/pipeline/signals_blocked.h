#pragma once
// Signals are for the user's threads: a Python handler must not be entered on a thread of ours.

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace msprobe {

// Threads started in the scope get no signals but those of a crash, so that faulthandler can tell of it.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int crash : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&blocked, crash);
    pthread_sigmask(SIG_SETMASK, &blocked, &previous_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t previous_{};
};

}  // namespace msprobe
