#pragma once
// The interpreter's lock around calls of the core. A daemon thread that asks for it while the interpreter ends is ended
// by Python up to 3.13 (pthread_exit), in the middle of C++ frames that must not be left so; here it sleeps until the
// process is gone, as Python does from 3.14 on.

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

namespace msprobe {

// Releases the lock for a core call.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased() {
    try {
      PyEval_RestoreThread(state_);
    } catch (abi::__forced_unwind&) {
      while (true) pause();
    }
  }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

// Takes the lock for a call back into Python, in a thread that has it or not.
class GilHeld {
 public:
  GilHeld() : state_(take()) {}
  ~GilHeld() { PyGILState_Release(state_); }
  GilHeld(const GilHeld&) = delete;
  GilHeld& operator=(const GilHeld&) = delete;

 private:
  static PyGILState_STATE take() {
    try {
      return PyGILState_Ensure();
    } catch (abi::__forced_unwind&) {
      while (true) pause();
    }
  }
  PyGILState_STATE state_;
};

}  // namespace msprobe
