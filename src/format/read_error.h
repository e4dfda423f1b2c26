#pragma once
// What the readers of files from somewhere else say when one cannot be read.

#include <string>

#include "msprobe/error.h"

namespace msprobe {

// A file that is not damaged but of a kind that only the framework that wrote it reads: a quantized tensor, a dict.
// Its own type, since a tool goes on with "cannot be checked here" where a FormatError is damage. Not part of the
// public API: nothing that saves throws it.
class UnsupportedFile : public Error {
 public:
  using Error::Error;
};

// Returns the message `read: "path": found X, wanted Y` of a FormatError or UnsupportedFile. X and Y may hold text of
// the file: what is not printable ASCII becomes '?', and each is cut to a few hundred characters.
[[nodiscard]] std::string read_message(const std::string& path, const std::string& found, const std::string& wanted);

}  // namespace msprobe
