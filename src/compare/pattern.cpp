#include "compare/pattern.h"

#include <re2/re2.h>

#include <algorithm>

#include "config/json.h"
#include "format/file_io.h"
#include "msprobe/error.h"

namespace msprobe {

class Pattern::Impl {
 public:
  explicit Impl(const std::string& expression) : regex_(expression, RE2::Quiet) {
    if (!regex_.ok()) {
      throw ConfigError("regular expression " + in_quotes(expression) + ": " + regex_.error() + " at " +
                        in_quotes(regex_.error_arg()));
    }
  }
  [[nodiscard]] const RE2& regex() const { return regex_; }

 private:
  RE2 regex_;
};

Pattern::Pattern(const std::string& expression) : impl_(std::make_shared<const Impl>(expression)) {}

bool Pattern::is_in(std::string_view text) const {
  return RE2::PartialMatch({text.data(), text.size()}, impl_->regex());
}

NameMap NameMap::read(const std::string& path) {
  const InputFile file(path);
  std::string text(file.size(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  const JsonValue document = parse_json(text, path);
  const auto* object = std::get_if<JsonObject>(&document.node);
  if (object == nullptr)
    throw ConfigError(path + ": found " + describe(document) + R"(, expected {"golden": "target"})");
  NameMap map;
  for (const JsonEntry& entry : *object) {
    const auto* target = std::get_if<std::string>(&entry.value.node);
    if (target == nullptr) {
      throw ConfigError(path + ": " + in_quotes(entry.key) + ": found " + describe(entry.value) + ", expected a name");
    }
    Pattern pattern(entry.key);
    std::string problem;
    if (!pattern.impl_->regex().CheckRewriteString(*target, &problem)) {
      throw ConfigError(path + ": " + in_quotes(entry.key) + ": " + in_quotes(*target) + ": " + problem);
    }
    map.entries_.push_back({entry.key, std::move(pattern), *target});
  }
  return map;
}

std::string NameMap::target_name(const std::string& name) const {
  const auto literal = std::ranges::find(entries_, name, &Entry::golden);
  if (literal != entries_.end()) return literal->target;
  for (const Entry& entry : entries_) {
    const RE2& regex = entry.pattern.impl_->regex();
    if (!RE2::FullMatch(name, regex)) continue;
    std::string mapped = name;
    RE2::Replace(&mapped, regex, entry.target);
    return mapped;
  }
  return name;
}

}  // namespace msprobe
