#include "config/setting.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <variant>

#include "config/keys.h"
#include "msprobe/error.h"

namespace msprobe {
namespace {

using Range = std::pair<std::int64_t, std::int64_t>;

constexpr auto kTasks = std::to_array<std::string_view>({"statistics", "tensor"});
constexpr auto kOtherTasks =
    std::to_array<std::string_view>({"acc_check", "diff_check", "exception_dump", "free_benchmark", "grad_probe",
                                     "nan_check", "overflow_check", "run_ut", "structure"});
constexpr auto kLevels = std::to_array<std::string_view>({"debug"});
constexpr auto kOtherLevels = std::to_array<std::string_view>({"L0", "L1", "L2", "mix"});
constexpr auto kSummaryModes = std::to_array<std::string_view>({"statistics", "md5"});

constexpr std::string_view kAllowedItems =
    R"(whole numbers from 0 to 9223372036854775807, as 3 or "3", and ranges as "4-6")";

[[noreturn]] void fail(const std::string& place, const std::string& found, std::string_view allowed) {
  throw ConfigError(place + ": found " + found + ", allowed " + std::string(allowed));
}

bool contains(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

[[noreturn]] void fail_choice(const std::string& place, const std::string& text,
                              std::span<const std::string_view> allowed) {
  std::string choices = allowed.size() == 1 ? "is " : "are ";
  for (const std::string_view word : allowed) {
    if (word != allowed.front()) choices += " and ";
    choices += in_quotes(word);
  }
  if (const auto meant = likely_meant(text, allowed)) choices += " (did you mean " + in_quotes(*meant) + "?)";
  fail(place, in_quotes(text), choices);
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// Digits only: no sign, no blanks.
std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.front() == '-') return std::nullopt;
  return number;
}

Range parse_range(const std::string& place, const std::string& text) {
  const std::string_view trimmed = trim(text);
  if (const auto number = parse_number(trimmed)) return {*number, *number};
  const std::size_t dash = trimmed.find('-');
  if (dash != std::string_view::npos) {
    const auto first = parse_number(trim(trimmed.substr(0, dash)));
    const auto last = parse_number(trim(trimmed.substr(dash + 1)));
    if (first && last && *last < *first) {
      throw ConfigError(place + ": found " + in_quotes(text) + ", a reversed range; write \"" + std::to_string(*last) +
                        "-" + std::to_string(*first) + "\"");
    }
    if (first && last) return {*first, *last};
  }
  fail(place, in_quotes(text), "are " + std::string(kAllowedItems));
}

Range parse_item(const std::string& place, const FilterItem& item) {
  if (const auto* text = std::get_if<std::string>(&item)) return parse_range(place, *text);
  if (const auto* unusable = std::get_if<Unusable>(&item)) {
    fail(place, unusable->description, "are " + std::string(kAllowedItems));
  }
  const std::int64_t number = std::get<std::int64_t>(item);
  if (number < 0) fail(place, "int " + std::to_string(number), "are " + std::string(kAllowedItems));
  return {number, number};
}

FilterItem as_filter_item(const JsonValue& value) {
  if (const auto* text = std::get_if<std::string>(&value.node)) return *text;
  if (const auto* number = std::get_if<JsonNumber>(&value.node)) {
    if (const auto integer = parse_number(number->text)) return *integer;
  }
  return Unusable{describe(value)};
}

}  // namespace

Task parse_task(const std::string& place, const std::string& text) {
  if (text == "statistics") return Task::kStatistics;
  if (text == "tensor") return Task::kTensor;
  if (contains(kOtherTasks, text)) {
    fail(place, in_quotes(text) + ", a task of another msProbe tool",
         R"(are "statistics" and "tensor": this tool does single-point save only)");
  }
  fail_choice(place, text, kTasks);
}

void check_level(const std::string& place, const std::string& text) {
  if (text == "debug") return;
  if (contains(kOtherLevels, text)) {
    fail(place, in_quotes(text) + ", a level of another msProbe tool",
         R"(is "debug": this tool does single-point save only (level "debug"))");
  }
  fail_choice(place, text, kLevels);
}

SummaryMode parse_summary_mode(const std::string& place, const std::string& text) {
  if (text == "statistics") return SummaryMode::kStatistics;
  if (text == "md5") return SummaryMode::kMd5;
  fail_choice(place, text, kSummaryModes);
}

std::string parse_dump_path(const std::string& place, const std::string& text) {
  if (text.empty()) fail(place, in_quotes(text), "is the path of a folder, which need not exist yet");
  if (text.find('\0') != std::string::npos) fail(place, in_quotes(text), "is a path without NUL bytes");
  return text;
}

Filter parse_filter(const std::string& place, const std::vector<FilterItem>& items) {
  std::vector<Range> ranges;
  ranges.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    ranges.push_back(parse_item(place + "[" + std::to_string(i) + "]", items[i]));
  }
  return Filter(std::move(ranges));
}

const std::string& as_text(const std::string& place, const JsonValue& value) {
  const auto* text = std::get_if<std::string>(&value.node);
  if (text == nullptr) fail(place, describe(value), "is text in double quotes");
  return *text;
}

bool as_bool(const std::string& place, const JsonValue& value) {
  const auto* flag = std::get_if<bool>(&value.node);
  if (flag == nullptr) fail(place, describe(value), "are true and false");
  return *flag;
}

const JsonObject& as_object(const std::string& place, const JsonValue& value) {
  const auto* object = std::get_if<JsonObject>(&value.node);
  if (object == nullptr) fail(place, describe(value), "is an object: {...}");
  return *object;
}

std::vector<FilterItem> as_filter_items(const std::string& place, const JsonValue& value) {
  const auto* list = std::get_if<JsonList>(&value.node);
  if (list == nullptr) fail(place, describe(value), R"(is a list such as [0, "3-5"])");
  std::vector<FilterItem> items;
  items.reserve(list->size());
  std::ranges::transform(*list, std::back_inserter(items), as_filter_item);
  return items;
}

}  // namespace msprobe
