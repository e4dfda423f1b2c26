#pragma once
// Re-reads `dump_enable` from config.json when the file has changed, so that a running job can be switched.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>

#include "session/error_book.h"

namespace msprobe {

// Thread: any.
class ConfigWatch {
 public:
  // `path` empty: nothing to watch. `enabled` is what the file says now.
  ConfigWatch(const std::string& path, bool enabled);
  // Of a forked child: goes on from the parent's state and reads the file at the next refresh(). Locks nothing.
  [[nodiscard]] static ConfigWatch for_forked_child(const ConfigWatch& parent) {
    return {parent.path_, parent.enabled_, Signature{}};
  }

  // Looks at the file (one stat if it has not changed) and returns the state. A file that cannot be read or is half
  // written leaves the last state, with one warning.
  bool refresh(ErrorBook& errors);
  [[nodiscard]] bool enabled() const noexcept { return enabled_; }

 private:
  struct Signature {
    std::filesystem::file_time_type time;
    std::uintmax_t bytes = 0;
    friend bool operator==(const Signature&, const Signature&) = default;
  };
  ConfigWatch(std::string path, bool enabled, Signature seen);
  [[nodiscard]] static Signature look(const std::string& path);

  const std::string path_;
  std::atomic<bool> enabled_;
  std::mutex mutex_;
  Signature seen_;  // guarded by mutex_
};

}  // namespace msprobe
