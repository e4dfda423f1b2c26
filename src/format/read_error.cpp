#include "format/read_error.h"

#include <string_view>

namespace msprobe {
namespace {

// A message goes to terminals and logs: names in a hostile file must not steer them.
std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 300;
  std::string result(text.substr(0, kLongest));
  for (char& letter : result) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  return text.size() > kLongest ? result + "..." : result;
}

}  // namespace

std::string read_message(const std::string& path, const std::string& found, const std::string& wanted) {
  return "read: \"" + path + "\": found " + printable(found) + ", wanted " + printable(wanted);
}

}  // namespace msprobe
