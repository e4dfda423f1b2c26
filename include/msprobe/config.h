#pragma once
// Settings of a debugger, from config.json, from arguments, or from both.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace msprobe {

enum class Task : std::uint8_t { kStatistics, kTensor };
enum class SummaryMode : std::uint8_t { kStatistics, kMd5 };

// A set of steps or ranks: inclusive ranges, sorted and disjoint. No ranges: everything.
class Filter {
 public:
  Filter() = default;
  // `ranges`: inclusive, in any order, may overlap.
  explicit Filter(std::vector<std::pair<std::int64_t, std::int64_t>> ranges);

  [[nodiscard]] bool matches(std::int64_t number) const noexcept;
  [[nodiscard]] bool matches_all() const noexcept { return ranges_.empty(); }
  [[nodiscard]] const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges() const noexcept { return ranges_; }
  friend bool operator==(const Filter&, const Filter&) = default;

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;
};

struct Config {
  Task task = Task::kStatistics;
  std::string dump_path;
  Filter rank;
  Filter step;
  bool async_dump = false;
  SummaryMode summary_mode = SummaryMode::kStatistics;
  bool dump_enable = true;
  std::string config_path;            // empty: no file; else re-read for dump_enable
  std::vector<std::string> warnings;  // unknown keys with the nearest known one
};

// An element of a `step` or `rank` list that is neither an integer nor text, as it was found: "float 1.5".
struct Unusable {
  std::string description;
};
using FilterItem = std::variant<std::int64_t, std::string, Unusable>;

// Arguments of the constructor; each one given overrides the file's key.
struct ConfigOverrides {
  std::optional<std::string> task;
  std::optional<std::string> dump_path;
  std::optional<std::string> level;
  std::optional<std::vector<FilterItem>> step;
};

// Returns the settings of the file at `config_path` (empty: of no file) with `overrides` laid over them.
// Throws: ConfigError with the file, line and column or key path, what was found and what is allowed.
[[nodiscard]] Config load_config(const std::string& config_path, const ConfigOverrides& overrides = {});

// Returns `dump_enable` of the file, nothing if it does not hold the key.
// Throws: ConfigError if the file cannot be read or parsed, or the key is not a bool.
[[nodiscard]] std::optional<bool> read_dump_enable(const std::string& config_path);

}  // namespace msprobe
