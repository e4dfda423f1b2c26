#include "pipeline/fork.h"

#include <pthread.h>

#include <atomic>

namespace msprobe {
namespace {

std::atomic<std::uint64_t> g_generation{0};

const int kRegistered = pthread_atfork(nullptr, nullptr, [] { ++g_generation; });

}  // namespace

std::uint64_t fork_generation() noexcept {
  static_cast<void>(kRegistered);
  return g_generation.load(std::memory_order_relaxed);
}

}  // namespace msprobe
