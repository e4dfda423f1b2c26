#include "config/keys.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <variant>

namespace msprobe {
namespace {

constexpr auto kRootKeys = std::to_array<std::string_view>({
    // Read by this tool.
    "task",
    "level",
    "dump_path",
    "rank",
    "step",
    "async_dump",
    "dump_enable",
    "statistics",
    "tensor",
    // Of the other tools of msProbe, common to all of their tasks.
    "extra_info",
    "precision",
    "risk_level",
    "custom_op_namespaces",
    "load",
    "seed",
    "is_deterministic",
    "enable_dataloader",
    "acl_config",
    "scope",
    "list",
    "tensor_list",
    "data_mode",
    // Sections of their tasks.
    "acc_check",
    "diff_check",
    "exception_dump",
    "free_benchmark",
    "grad_probe",
    "nan_check",
    "overflow_check",
    "run_ut",
    "structure",
    "debug",
});

constexpr auto kSectionKeys = std::to_array<std::string_view>({
    "summary_mode",
    "scope",
    "list",
    "tensor_list",
    "data_mode",
    "slice",
    "request_id",
    "diff_nums",
    "bench_path",
    "device",
    "file_format",
    "online_run",
    "online_run_ut",
    "backward_input",
});

constexpr std::array kSections = {std::string_view("statistics"), std::string_view("tensor")};

bool contains(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> words) {
  return *std::ranges::min_element(words, {}, [&](std::string_view known) { return edit_distance(word, known); });
}

std::string warning(const std::string& file, const std::string& path, const std::string& known) {
  return file + ": " + path + ": unknown key, ignored; the nearest known key is " + in_quotes(known);
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // distances of a prefix of `a` to every prefix of `b`
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::optional<std::string_view> likely_meant(std::string_view word, std::span<const std::string_view> allowed) {
  const std::string_view candidate = nearest(word, allowed);
  const std::size_t tolerated = std::max<std::size_t>(1, candidate.size() / 3);
  if (edit_distance(word, candidate) > tolerated) return std::nullopt;
  return candidate;
}

std::vector<std::string> unknown_key_warnings(const JsonObject& root, const std::string& file) {
  std::vector<std::string> warnings;
  for (const auto& [key, value] : root) {
    if (contains(kRootKeys, key)) continue;
    // A key of a section that stands outside of it would silently have no effect.
    const bool misplaced = contains(kSectionKeys, key);
    warnings.push_back(warning(file, key, misplaced ? "statistics." + key : std::string(nearest(key, kRootKeys))));
  }
  for (const std::string_view section : kSections) {
    const JsonValue* value = find_key(root, section);
    if (value == nullptr || !std::holds_alternative<JsonObject>(value->node)) continue;
    for (const auto& [key, unused] : std::get<JsonObject>(value->node)) {
      if (contains(kSectionKeys, key)) continue;
      const std::string prefix = std::string(section) + ".";
      warnings.push_back(warning(file, prefix + key, prefix + std::string(nearest(key, kSectionKeys))));
    }
  }
  return warnings;
}

}  // namespace msprobe
