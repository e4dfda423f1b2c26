#pragma once
// One tensor file for people: what its header says, its statistics, the values at its corners.

#include <string>

namespace msprobe {

// Several lines. Reads the whole file once. Throws: IoError, FormatError, UnsupportedFile.
[[nodiscard]] std::string tensor_file_text(const std::string& path);
// The same without the values, as a JSON object and a newline.
[[nodiscard]] std::string tensor_file_json(const std::string& path);

}  // namespace msprobe
