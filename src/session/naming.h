#pragma once
// Every key and every file name. Nothing else in the tool composes one.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "msprobe/value.h"

namespace msprobe {

// The names of one save: `x` and, with a gradient, `x_grad`, each with `#2` behind it if another owner had it first.
struct SaveName {
  std::string forward;
  std::string gradient;
  std::int64_t count = 0;
  bool collided = false;  // for the first time, so that one warning is due
};

// The names that one step has used. One entry for each name, however often it is saved.
class NameRegistry {
 public:
  // Counts a save of `name`. Thread: the caller serialises.
  [[nodiscard]] SaveName next(std::string_view name, bool with_gradient);

 private:
  struct Entry {
    std::string forward;  // empty until claimed
    std::string gradient;
    std::int64_t count = 0;
  };
  std::string claim(const std::string& base, bool& collided);

  std::unordered_map<std::string, Entry> entries_;  // by the user's name
  // What is claimed, as forward or as gradient name.
  std::unordered_set<std::string> claimed_;
};

// "{name}.{count}.debug"
[[nodiscard]] std::string record_key(std::string_view name, std::int64_t count);

// Gives the second of two equal keys of a map `#2` behind it, in all of `value`. Returns whether there was one.
bool make_keys_unique(Value& value);

// A tensor leaf and its place in the record: `key2.0`, empty at the top.
struct LeafPlace {
  TensorLeaf* leaf = nullptr;
  std::string indexes;
};
// The tensor leaves of `value`, depth first. Borrows `value`.
[[nodiscard]] std::vector<LeafPlace> tensor_leaves(Value& value);

// The file name for the leaf at `indexes` of the record `key`: "{key}[.{indexes}]{suffix}", where `/`, NUL, `%`,
// control characters and bytes that are not UTF-8 stand as %XX, and a name over 255 bytes is cut and gets a hash.
// `attempt` > 1 puts `#{attempt}` before the suffix, for a name that is taken.
[[nodiscard]] std::string file_name(std::string_view key, std::string_view indexes, std::string_view suffix,
                                    int attempt = 1);

// Upper bound of the length of any name that file_name() returns.
inline constexpr std::size_t kMaxFileNameBytes = 255;

}  // namespace msprobe
