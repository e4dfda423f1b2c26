#pragma once
// Re-reads `dump_enable` from config.json when the file has changed, so that a running job can be switched.

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>

#include "session/error_book.h"

namespace msprobe {

// Thread: any.
class ConfigWatch {
 public:
  // `path` empty: nothing to watch.
  ConfigWatch(std::string path, bool enabled);

  // Looks at the file (one stat if it has not changed) and returns the state. A file that cannot be read or is half
  // written leaves the last state, with one warning.
  bool refresh(ErrorBook& errors);
  [[nodiscard]] bool enabled() const;

 private:
  struct Signature {
    std::filesystem::file_time_type time;
    std::uintmax_t bytes = 0;
    friend bool operator==(const Signature&, const Signature&) = default;
  };
  [[nodiscard]] Signature look() const;

  const std::string path_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  bool enabled_;
  Signature seen_;
};

}  // namespace msprobe
