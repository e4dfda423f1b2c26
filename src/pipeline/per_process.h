#pragma once
// An object of which a forked child makes its own: the parent's mutexes may be locked for ever there, and its threads
// do not exist.

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "pipeline/fork.h"

namespace msprobe {

// `T` has `static std::unique_ptr<T> for_forked_child(const T& parent)`, which touches nothing of the parent that
// another thread could hold locked, and `void abandon() noexcept`, which lets go of what the child shares with it.
// Thread: any.
template <class T>
class PerProcess {
 public:
  explicit PerProcess(std::unique_ptr<T> object) : owner_(new Owner{std::move(object), fork_generation()}) {}
  ~PerProcess() {
    Owner* const current = owner_.load();
    if (is_ours(*current)) const std::unique_ptr<Owner> dies(current);  // the parent's is left as it is
  }
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  // This process's object; in a forked child its first call makes it.
  [[nodiscard]] T& get() {
    Owner* const current = owner_.load(std::memory_order_acquire);
    return is_ours(*current) ? *current->object : get_of_child(current);
  }

  // Nothing in a forked child that has not called get().
  [[nodiscard]] T* get_if_made() noexcept {
    Owner* const current = owner_.load(std::memory_order_acquire);
    return is_ours(*current) ? current->object.get() : nullptr;
  }

 private:
  struct Owner {
    std::unique_ptr<T> object;
    std::uint64_t generation;
  };
  static bool is_ours(const Owner& owner) noexcept { return owner.generation == fork_generation(); }

  T& get_of_child(Owner* parent) {
    std::unique_ptr<Owner> child(new Owner{T::for_forked_child(*parent->object), fork_generation()});
    Owner* expected = parent;
    if (!owner_.compare_exchange_strong(expected, child.get())) return *expected->object;  // another thread was first
    parent->object->abandon();
    return *child.release()->object;
  }

  std::atomic<Owner*> owner_;
};

}  // namespace msprobe
