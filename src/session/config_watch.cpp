#include "session/config_watch.h"

#include <system_error>
#include <utility>

#include "msprobe/config.h"
#include "msprobe/error.h"

namespace msprobe {

ConfigWatch::ConfigWatch(std::string path, bool enabled, Signature seen)
    : path_(std::move(path)), enabled_(enabled), seen_(seen) {}

ConfigWatch::ConfigWatch(const std::string& path, bool enabled) : ConfigWatch(path, enabled, look(path)) {}

ConfigWatch::Signature ConfigWatch::look(const std::string& path) {
  Signature signature;
  if (path.empty()) return signature;
  std::error_code error;
  signature.time = std::filesystem::last_write_time(path, error);
  signature.bytes = std::filesystem::file_size(path, error);
  return signature;
}

bool ConfigWatch::refresh(ErrorBook& errors) {
  const std::lock_guard lock(mutex_);
  const Signature now = look(path_);
  if (now == seen_) return enabled_;
  try {
    enabled_ = read_dump_enable(path_).value_or(true);
    seen_ = now;
  } catch (const Error& error) {
    errors.warn_once("config watch",
                     std::string("dump_enable stays ") + (enabled_ ? "true" : "false") + ": " + error.what());
  }
  return enabled_;
}

}  // namespace msprobe
