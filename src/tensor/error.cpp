#include "msprobe/error.h"

#include <system_error>

namespace msprobe {

IoError::IoError(const std::string& operation, const std::string& path, int error_number)
    : Error(operation + ": \"" + path + "\": " + std::generic_category().message(error_number)),
      error_number_(error_number) {}

}  // namespace msprobe
