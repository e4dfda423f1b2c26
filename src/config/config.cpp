#include "msprobe/config.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "config/config_file.h"
#include "config/json.h"
#include "config/keys.h"
#include "config/setting.h"
#include "msprobe/error.h"

namespace msprobe {
namespace {

// The settings of one file; without a file, an object without keys.
class Settings {
 public:
  explicit Settings(const std::string& path) : path_(path) {
    if (!path.empty()) document_ = parse_json(read_config_file(path), path);
    static_cast<void>(as_object(path, document_));
  }

  [[nodiscard]] const JsonObject& root() const { return std::get<JsonObject>(document_.node); }
  [[nodiscard]] std::string place(const std::string& key) const { return path_ + ": " + key; }

  [[nodiscard]] const JsonValue* find(std::string_view key) const { return find_key(root(), key); }

  [[nodiscard]] std::optional<bool> flag(const std::string& key) const {
    const JsonValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    return as_bool(place(key), *value);
  }

  [[nodiscard]] const JsonObject* section(const std::string& key) const {
    const JsonValue* value = find(key);
    return value == nullptr ? nullptr : &as_object(place(key), *value);
  }

  // Hands text of the argument, else of the file, to `accept` together with its place. Returns whether there is any.
  template <class Accept>
  bool text(const std::string& key, const std::optional<std::string>& argument, Accept accept) const {
    if (argument) {
      accept("argument " + key, *argument);
      return true;
    }
    const JsonValue* value = find(key);
    if (value == nullptr) return false;
    accept(place(key), as_text(place(key), *value));
    return true;
  }

  [[nodiscard]] Filter filter(const std::string& key, const std::optional<std::vector<FilterItem>>& argument) const {
    if (argument) return parse_filter("argument " + key, *argument);
    const JsonValue* value = find(key);
    return value == nullptr ? Filter() : parse_filter(place(key), as_filter_items(place(key), *value));
  }

 private:
  std::string path_;
  JsonValue document_{JsonObject{}};
};

SummaryMode summary_mode(const Settings& settings) {
  const JsonObject* section = settings.section("statistics");
  const JsonValue* mode = section == nullptr ? nullptr : find_key(*section, "summary_mode");
  if (mode == nullptr) return SummaryMode::kStatistics;
  const std::string place = settings.place("statistics.summary_mode");
  return parse_summary_mode(place, as_text(place, *mode));
}

// The working directory may change before the file is read again.
std::string absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path result = std::filesystem::absolute(path, error);
  return error ? path : result.string();
}

}  // namespace

Config load_config(const std::string& config_path, const ConfigOverrides& overrides) {
  const Settings settings(config_path);
  Config config;
  settings.text("task", overrides.task,
                [&](const std::string& place, const std::string& text) { config.task = parse_task(place, text); });
  settings.text("level", overrides.level, check_level);
  const bool has_path = settings.text(
      "dump_path", overrides.dump_path,
      [&](const std::string& place, const std::string& text) { config.dump_path = parse_dump_path(place, text); });
  config.rank = settings.filter("rank", std::nullopt);
  config.step = settings.filter("step", overrides.step);
  config.async_dump = settings.flag("async_dump").value_or(false);
  config.dump_enable = settings.flag("dump_enable").value_or(true);
  static_cast<void>(settings.section("tensor"));  // has no keys of its own, but must be an object
  config.summary_mode = summary_mode(settings);
  if (!has_path) {
    throw ConfigError("argument dump_path: missing; give it in config.json or as PrecisionDebugger(dump_path=...)");
  }
  if (config_path.empty()) return config;
  config.config_path = absolute(config_path);
  config.warnings = unknown_key_warnings(settings.root(), config_path);
  return config;
}

std::optional<bool> read_dump_enable(const std::string& config_path) {
  return Settings(config_path).flag("dump_enable");
}

}  // namespace msprobe
