#pragma once
// A small JSON document as a tree, and the text of values for messages.

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace msprobe {

struct JsonValue;
struct JsonEntry;
using JsonList = std::vector<JsonValue>;
using JsonObject = std::vector<JsonEntry>;  // in the order of the file; keys are unique

struct JsonNull {};

// A number as it stands in the text: a config is better off without the detour over double.
struct JsonNumber {
  std::string text;
  [[nodiscard]] bool is_integer() const noexcept { return text.find_first_of(".eE") == std::string::npos; }
};

struct JsonValue {
  std::variant<JsonNull, bool, JsonNumber, std::string, JsonList, JsonObject> node;

  [[nodiscard]] bool is_null() const noexcept { return std::holds_alternative<JsonNull>(node); }
};

struct JsonEntry {
  std::string key;
  JsonValue value;
};

// Deeper nesting is refused: no config needs it, and trees are destroyed recursively.
inline constexpr std::size_t kMaxJsonDepth = 100;

// Returns the document in `text` (UTF-8, a byte order mark is skipped).
// Throws: ConfigError `file:line:column: expected ..., found ...`, lines and columns (of characters) from 1; also for
// a key that an object holds twice.
[[nodiscard]] JsonValue parse_json(std::string_view text, const std::string& file);

// Returns the value of `key`, or nothing: also where it is null, which means the same as no key at all.
[[nodiscard]] const JsonValue* find_key(const JsonObject& object, std::string_view key) noexcept;

// Returns `text` in double quotes for a message, control characters escaped, cut where it is too long.
[[nodiscard]] std::string in_quotes(std::string_view text);

// Returns what `value` is, for a message: `"x"`, `int 3`, `float 1.5`, `bool true`, `null`, `a list`, `an object`.
[[nodiscard]] std::string describe(const JsonValue& value);

}  // namespace msprobe
