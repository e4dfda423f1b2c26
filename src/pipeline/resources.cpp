#include "pipeline/resources.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#include "msprobe/error.h"

namespace msprobe {
namespace {

constexpr std::size_t kSmallestQueueBytes = std::size_t{16} << 20;

std::optional<std::size_t> parse_number(std::string_view text) noexcept {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::size_t> read_number(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word)) return std::nullopt;
  return parse_number(word);
}

std::optional<std::size_t> available_by_meminfo() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::size_t kibibytes = 0;
  std::string unit;
  while (file >> key >> kibibytes && std::getline(file, unit)) {
    if (key == "MemAvailable:") return kibibytes * 1024;
  }
  return std::nullopt;
}

// The value of `key` in a file of lines "key value".
std::optional<std::size_t> read_keyed(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string word;
  std::size_t value = 0;
  while (file >> word >> value) {
    if (word == key) return value;
  }
  return std::nullopt;
}

// The files of a memory controller.
struct CgroupFiles {
  const char* root;
  const char* limit;
  const char* used;
  const char* inactive;  // in memory.stat: page cache that the kernel gives back when memory runs short
};
constexpr CgroupFiles kVersion2{"/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"};
constexpr CgroupFiles kVersion1{"/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                "total_inactive_file"};

// What the group at `folder` may still take. Nothing: it has no limit.
std::optional<std::size_t> left_in_group(const std::string& folder, const CgroupFiles& files) {
  const auto limit = read_number(folder + files.limit);
  if (!limit) return std::nullopt;
  const std::size_t used = read_number(folder + files.used).value_or(0);
  const std::size_t reclaimable = read_keyed(folder + "/memory.stat", files.inactive).value_or(0);
  const std::size_t held = used - std::min(used, reclaimable);
  return *limit - std::min(*limit, held);
}

// Calls visit(group, is_version_2) with the folder of each group from this process's own to the root, "" for the root,
// of the hierarchy of version 2 and of that of the version 1 controller `controller`.
template <class Visit>
void for_each_cgroup(std::string_view controller, Visit visit) {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool version2 = controllers == ",,";
    if (!version2 && controllers.find("," + std::string(controller) + ",") == std::string::npos) continue;
    std::string group = line.substr(second + 1);
    while (!group.empty()) {
      visit(group, version2);
      group.resize(group.find_last_of('/'));
    }
    visit(group, version2);
  }
}

// The least that is left on the path from this process's cgroup to the root.
std::optional<std::size_t> available_by_cgroup() {
  std::optional<std::size_t> available;
  for_each_cgroup("memory", [&](const std::string& group, bool version2) {
    const CgroupFiles& files = version2 ? kVersion2 : kVersion1;
    const auto left = left_in_group(files.root + group, files);
    if (left) available = std::min(available.value_or(*left), *left);
  });
  return available;
}

// Whole cores that the quota of the group allows. Nothing: it has none ("max", -1).
std::optional<std::size_t> cores_of_group(const std::string& group, bool version2) {
  std::optional<std::size_t> quota;
  std::optional<std::size_t> period;
  if (version2) {
    std::ifstream file("/sys/fs/cgroup" + group + "/cpu.max");
    std::string quota_text;
    std::string period_text;
    if (file >> quota_text >> period_text) {
      quota = parse_number(quota_text);
      period = parse_number(period_text);
    }
  } else {
    quota = read_number("/sys/fs/cgroup/cpu" + group + "/cpu.cfs_quota_us");
    period = read_number("/sys/fs/cgroup/cpu" + group + "/cpu.cfs_period_us");
  }
  if (!quota || !period || *period == 0) return std::nullopt;
  return *quota / *period;
}

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

// Processes that share this machine.
std::size_t local_world_size() {
  const char* text = environment("LOCAL_WORLD_SIZE");
  return text != nullptr ? std::max<std::size_t>(parse_number(text).value_or(1), 1) : 1;
}

// Nothing: the variable is not set.
std::optional<unsigned> thread_count_of(const char* variable) {
  const char* text = environment(variable);
  if (text == nullptr) return std::nullopt;
  const auto count = parse_number(text);
  if (count && *count > 0 && *count <= 1024) return static_cast<unsigned>(*count);
  throw ConfigError("environment " + std::string(variable) + ": found \"" + std::string(text) +
                    "\", allowed is a whole number from 1 to 1024");
}

}  // namespace

std::optional<std::size_t> parse_byte_size(std::string_view text) noexcept {
  constexpr std::string_view kUnits = "KMGT";
  unsigned shift = 0;
  if (!text.empty()) {
    const auto unit = kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(text.back()))));
    if (unit != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(unit) + 1);
      text.remove_suffix(1);
    }
  }
  const auto number = parse_number(text);
  if (!number || *number == 0 || *number > (std::numeric_limits<std::size_t>::max() >> shift)) return std::nullopt;
  return *number << shift;
}

std::size_t async_memory_limit_bytes() {
  if (const char* text = environment("MSPROBE_ASYNC_MEMORY")) {
    if (const auto bytes = parse_byte_size(text)) return *bytes;
    throw ConfigError("environment MSPROBE_ASYNC_MEMORY: found \"" + std::string(text) +
                      "\", allowed is a positive number of bytes, also with K, M, G or T (\"64M\")");
  }
  std::size_t available = available_by_meminfo().value_or(std::size_t{4} << 30);
  if (const auto left = available_by_cgroup()) available = std::min(available, *left);
  return std::max(available / 4 / local_world_size(), kSmallestQueueBytes);
}

unsigned usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::size_t cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? static_cast<std::size_t>(CPU_COUNT(&set)) : 1;
  for_each_cgroup("cpu", [&](const std::string& group, bool version2) {
    if (const auto quota = cores_of_group(group, version2)) cores = std::min(cores, *quota);
  });
  return static_cast<unsigned>(std::max<std::size_t>(cores, 1));
}

unsigned compute_thread_count() {
  if (const auto count = thread_count_of("MSPROBE_THREADS")) return *count;
  return static_cast<unsigned>(std::max<std::size_t>(usable_cores() / local_world_size(), 1));
}

unsigned async_thread_count() {
  if (const auto count = thread_count_of("MSPROBE_ASYNC_THREADS")) return *count;
  return std::clamp(usable_cores() / 2, 1U, 4U);
}

}  // namespace msprobe
