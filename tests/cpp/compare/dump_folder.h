#pragma once
// Dumps for tests, written as they lie on disk.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "../format/scratch.h"

namespace msprobe::test {

inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

// A debug.json whose "data" has these members.
inline void write_records(const std::filesystem::path& folder, std::string_view data) {
  write_text(folder / "debug.json", R"({"task": "statistics", "level": "debug", "framework": "pytorch", "data": {)" +
                                        std::string(data) + "}}");
}

// A .npy file of float32 in one dimension.
inline void write_npy(const std::filesystem::path& path, const std::vector<float>& values) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(values.size()) + ",), }";
  header.resize(117, ' ');
  header += '\n';
  std::string text = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
  text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  write_text(path, text);
}

}  // namespace msprobe::test
