#pragma once
// Everything that went wrong or is worth saying, until the adapter shows it. Nothing here prints or throws.

#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "msprobe/debugger.h"

namespace msprobe {

// Thread: any.
class ErrorBook {
 public:
  // `keep_first`: the first error is kept for throw_first().
  explicit ErrorBook(bool keep_first) noexcept : keep_first_(keep_first) {}
  // Keeps the first error if MSPROBE_ON_ERROR is `raise`.
  [[nodiscard]] static std::shared_ptr<ErrorBook> from_environment();

  // Something named `what` (a record, a file) was not saved. The first failure of a kind becomes a warning, then the
  // 10th, the 100th and so on; all are counted. Kinds are told apart by the error's reason.
  void add_failure(std::string_view what, const std::exception_ptr& error) noexcept;

  // The same for a reason in words; then as throw_first().
  void report(std::string_view what, std::string_view reason);

  // A warning that is given once for each `kind`.
  void warn_once(const std::string& kind, const std::string& text) noexcept;

  void count_saves(std::uint64_t n = 1) noexcept { saves_ += n; }
  void count_gradients(std::uint64_t n = 1) noexcept { gradients_ += n; }
  void count_repeated_gradient() noexcept { ++repeated_gradients_; }

  [[nodiscard]] bool has_messages() const noexcept { return has_messages_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::vector<Message> take_messages();
  [[nodiscard]] Summary summary() const;

  // Throws the kept error, once. Nothing kept: returns.
  void throw_first();

 private:
  void push(Message::Level level, const std::string& text);

  const bool keep_first_;
  std::atomic<std::uint64_t> saves_ = 0;
  std::atomic<std::uint64_t> gradients_ = 0;
  std::atomic<std::uint64_t> repeated_gradients_ = 0;
  std::atomic<bool> has_messages_ = false;

  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::vector<Message> messages_;
  std::map<std::string, std::uint64_t> failures_;  // by reason
  std::set<std::string> warned_;
  std::exception_ptr first_;
};

}  // namespace msprobe
