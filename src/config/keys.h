#pragma once
// The keys of config.json that msProbe knows, ours and those of its other tools.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/json.h"

namespace msprobe {

// Number of single-character insertions, removals and replacements that turn `a` into `b` (Levenshtein).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// Returns the word of `allowed` that `word` is a misspelling of, or nothing if none is close enough.
[[nodiscard]] std::optional<std::string_view> likely_meant(std::string_view word,
                                                           std::span<const std::string_view> allowed);

// Returns a warning for each key of `root`, and of its sections `statistics` and `tensor`, that msProbe does not know,
// with the nearest known one. `file` stands in the text.
[[nodiscard]] std::vector<std::string> unknown_key_warnings(const JsonObject& root, const std::string& file);

}  // namespace msprobe
