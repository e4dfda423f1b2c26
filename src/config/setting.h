#pragma once
// Single settings: checked and converted. The same code serves config.json and the arguments of the constructor, which
// differ only in `place`, the words that say where a value stands: `config.json: task`, `argument task`.
//
// Every function throws ConfigError `place: found ..., allowed ...`.

#include <string>
#include <string_view>
#include <vector>

#include "config/json.h"
#include "msprobe/config.h"

namespace msprobe {

[[nodiscard]] Task parse_task(const std::string& place, const std::string& text);
// Accepts `debug` only.
void check_level(const std::string& place, const std::string& text);
[[nodiscard]] SummaryMode parse_summary_mode(const std::string& place, const std::string& text);
[[nodiscard]] std::string parse_dump_path(const std::string& place, const std::string& text);
// `items`: 3, "3" or "4-6" (inclusive) each; none: everything.
[[nodiscard]] Filter parse_filter(const std::string& place, const std::vector<FilterItem>& items);

// The value as the type that is wanted of it.
[[nodiscard]] const std::string& as_text(const std::string& place, const JsonValue& value);
[[nodiscard]] bool as_bool(const std::string& place, const JsonValue& value);
[[nodiscard]] const JsonObject& as_object(const std::string& place, const JsonValue& value);
[[nodiscard]] std::vector<FilterItem> as_filter_items(const std::string& place, const JsonValue& value);

}  // namespace msprobe
