#pragma once
// Regular expressions of the user (RE2 syntax: https://github.com/google/re2/wiki/Syntax), in time linear in the text,
// so that no name of a dump can make a search hang.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

class Pattern {
 public:
  // Throws: ConfigError with what is wrong with `expression`.
  explicit Pattern(const std::string& expression);
  // Whether the expression matches anywhere in `text`.
  [[nodiscard]] bool is_in(std::string_view text) const;

 private:
  friend class NameMap;
  class Impl;
  std::shared_ptr<const Impl> impl_;
};

// What a variable of the golden side is called on the target side.
class NameMap {
 public:
  NameMap() = default;
  // Reads a JSON object {"golden name": "target name"}. A key may be a regular expression that matches the whole name,
  // and the value may then hold \1 ... \9. The name as it stands is looked up before any expression; among those the
  // first that matches counts. Throws: IoError, ConfigError.
  [[nodiscard]] static NameMap read(const std::string& path);

  // Returns the target's name of `name`, `name` itself if nothing maps it.
  [[nodiscard]] std::string target_name(const std::string& name) const;

 private:
  struct Entry {
    std::string golden;
    Pattern pattern;
    std::string target;
  };
  std::vector<Entry> entries_;
};

}  // namespace msprobe
