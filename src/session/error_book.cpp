#include "session/error_book.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "msprobe/error.h"

namespace msprobe {
namespace {

// So that a run with a new failure for each save does not grow without bound.
constexpr std::size_t kMaxKinds = 64;
constexpr std::size_t kMaxMessages = 1000;

struct Reason {
  std::string kind;
  std::string text;
};

Reason reason_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const IoError& io) {
    return {std::strerror(io.error_number()), io.what()};
  } catch (const std::bad_alloc&) {
    return {"out of memory", "out of memory"};
  } catch (const std::exception& other) {
    return {other.what(), other.what()};
  } catch (...) {
    return {"unknown error", "unknown error"};
  }
}

bool is_power_of_ten(std::uint64_t n) noexcept {
  while (n >= 10 && n % 10 == 0) n /= 10;
  return n == 1;
}

}  // namespace

std::shared_ptr<ErrorBook> ErrorBook::from_environment() {
  const char* const text = std::getenv("MSPROBE_ON_ERROR");
  return std::make_shared<ErrorBook>(text != nullptr && std::string_view(text) == "raise");
}

void ErrorBook::add_failure(std::string_view what, const std::exception_ptr& error) noexcept {
  try {
    Reason reason = reason_of(error);
    const std::lock_guard lock(mutex_);
    if (keep_first_ && !first_) first_ = error;
    if (failures_.size() >= kMaxKinds && !failures_.contains(reason.kind)) reason.kind = "other reasons";
    const std::uint64_t count = ++failures_[reason.kind];
    if (!is_power_of_ten(count)) return;
    std::string text = "not saved: \"" + std::string(what) + "\": " + reason.text;
    if (count > 1) text += " (" + std::to_string(count) + " failures of this kind so far)";
    push(Message::Level::kWarning, text);
  } catch (const std::bad_alloc&) {
    has_messages_ = true;  // nothing more can be said without memory
  }
}

void ErrorBook::report(std::string_view what, std::string_view reason) {
  add_failure(what, std::make_exception_ptr(Error(std::string(reason))));
  throw_first();
}

void ErrorBook::warn_once(const std::string& kind, const std::string& text) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (warned_.size() < kMaxMessages && warned_.insert(kind).second) push(Message::Level::kWarning, text);
  } catch (const std::bad_alloc&) {
    has_messages_ = true;
  }
}

void ErrorBook::push(Message::Level level, const std::string& text) {
  if (messages_.size() < kMaxMessages) messages_.push_back({level, text});
  has_messages_ = true;
}

std::vector<Message> ErrorBook::take_messages() {
  const std::lock_guard lock(mutex_);
  has_messages_ = false;
  return std::exchange(messages_, {});
}

Summary ErrorBook::summary() const {
  Summary summary;
  summary.saves = saves_;
  summary.gradients = gradients_;
  summary.repeated_gradients = repeated_gradients_;
  const std::lock_guard lock(mutex_);
  for (const auto& [reason, count] : failures_) {
    summary.failures += count;
    summary.reasons.emplace_back(reason, count);
  }
  return summary;
}

void ErrorBook::throw_first() {
  std::exception_ptr first;
  {
    const std::lock_guard lock(mutex_);
    first = std::exchange(first_, nullptr);
  }
  if (first) std::rethrow_exception(first);
}

std::string Summary::text() const {
  std::string out = std::to_string(saves) + " saved, " + std::to_string(gradients) + " gradients";
  if (repeated_gradients > 0) {
    out += ", " + std::to_string(repeated_gradients) +
           " more backwards over the same graph (their gradients are not kept)";
  }
  if (failures == 0) return out + ", none lost";
  out += ", " + std::to_string(failures) + " NOT saved:";
  for (const auto& [reason, count] : reasons) out += " " + reason + " (" + std::to_string(count) + ");";
  out.pop_back();
  return out;
}

}  // namespace msprobe
