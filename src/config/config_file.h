#pragma once
// Reads the text of config.json.

#include <string>

namespace msprobe {

// Returns the content of the file at `path`. Throws: ConfigError with the reason: no such file, a directory, not
// readable, or far too large for a config.
[[nodiscard]] std::string read_config_file(const std::string& path);

}  // namespace msprobe
