#pragma once
// A config file for one test, and the message of what it makes load_config() throw.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msprobe/config.h"
#include "msprobe/error.h"

namespace msprobe {

// A folder of its own with a file `config.json`; both go with the object.
class TemporaryConfig {
 public:
  explicit TemporaryConfig(std::string_view text = "{}") {
    std::string name = (std::filesystem::temp_directory_path() / "msprobe_config_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder_ = name;
    rewrite(text);
  }
  ~TemporaryConfig() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TemporaryConfig(const TemporaryConfig&) = delete;
  TemporaryConfig& operator=(const TemporaryConfig&) = delete;

  void rewrite(std::string_view text) const { std::ofstream(path(), std::ios::binary) << text; }
  [[nodiscard]] std::string folder() const { return folder_.string(); }
  [[nodiscard]] std::string path() const { return (folder_ / "config.json").string(); }

 private:
  std::filesystem::path folder_;
};

inline ConfigOverrides with_task(std::string task) {
  ConfigOverrides overrides;
  overrides.task = std::move(task);
  return overrides;
}
inline ConfigOverrides with_dump_path(std::string dump_path) {
  ConfigOverrides overrides;
  overrides.dump_path = std::move(dump_path);
  return overrides;
}
inline ConfigOverrides with_level(std::string level) {
  ConfigOverrides overrides;
  overrides.level = std::move(level);
  return overrides;
}
inline ConfigOverrides with_step(std::vector<FilterItem> step) {
  ConfigOverrides overrides;
  overrides.step = std::move(step);
  return overrides;
}

// The settings of a file that holds `text`.
inline Config load_text(std::string_view text, const ConfigOverrides& overrides = {}) {
  const TemporaryConfig file(text);
  return load_config(file.path(), overrides);
}

// Returns the message of the ConfigError that `call` throws, with `path` cut down to "config.json".
template <class Call>
std::string config_error(Call call, const std::string& path) {
  try {
    call();
  } catch (const ConfigError& error) {
    std::string message = error.what();
    if (const auto at = message.find(path); !path.empty() && at != std::string::npos) {
      message.replace(at, path.size(), "config.json");
    }
    return message;
  }
  ADD_FAILURE() << "no ConfigError";
  return {};
}

inline std::string error_of_text(std::string_view text, const ConfigOverrides& overrides = {}) {
  const TemporaryConfig file(text);
  return config_error([&] { static_cast<void>(load_config(file.path(), overrides)); }, file.path());
}

inline std::string error_of_arguments(const ConfigOverrides& overrides) {
  return config_error([&] { static_cast<void>(load_config("", overrides)); }, "");
}

}  // namespace msprobe
