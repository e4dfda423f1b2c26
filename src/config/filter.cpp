#include <algorithm>
#include <iterator>
#include <string>

#include "msprobe/config.h"
#include "msprobe/error.h"

namespace msprobe {

Filter::Filter(std::vector<std::pair<std::int64_t, std::int64_t>> ranges) {
  std::ranges::sort(ranges);
  for (const auto& [first, last] : ranges) {
    if (last < first) {
      throw ConfigError("Filter: found the reversed range " + std::to_string(first) + " to " + std::to_string(last) +
                        ", allowed are ranges from low to high");
    }
    // Ranges that touch become one; `first` - 1 cannot overflow where an earlier range ends below `first`.
    const bool joins = !ranges_.empty() && (first <= ranges_.back().second || first - 1 == ranges_.back().second);
    if (joins) {
      ranges_.back().second = std::max(ranges_.back().second, last);
    } else {
      ranges_.emplace_back(first, last);
    }
  }
}

bool Filter::matches(std::int64_t number) const noexcept {
  if (ranges_.empty()) return true;
  const auto next = std::ranges::upper_bound(ranges_, number, {}, &std::pair<std::int64_t, std::int64_t>::first);
  return next != ranges_.begin() && number <= std::prev(next)->second;
}

}  // namespace msprobe
