#pragma once
// One tree of exceptions. Each message is for the user: operation, object, what was found, what is wanted.

#include <stdexcept>
#include <string>

namespace msprobe {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// config.json or an argument of the constructor is wrong.
class ConfigError : public Error {
 public:
  using Error::Error;
};

// A dtype that the asked-for operation cannot handle.
class UnsupportedDtype : public Error {
 public:
  using Error::Error;
};

// A file does not hold what its format demands.
class FormatError : public Error {
 public:
  using Error::Error;
};

// The operating system refused. `error_number()` is the errno.
class IoError : public Error {
 public:
  // Message: `operation: "path": words for error_number`.
  IoError(const std::string& operation, const std::string& path, int error_number);
  [[nodiscard]] int error_number() const noexcept { return error_number_; }

 private:
  int error_number_;
};

// A call in a state that does not allow it, such as `save` after `close`.
class StateError : public Error {
 public:
  using Error::Error;
};

}  // namespace msprobe
