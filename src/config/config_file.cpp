#include "config/config_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "config/json.h"
#include "msprobe/error.h"

namespace msprobe {
namespace {

// A config is a few hundred bytes; what is far larger is a wrong path, such as that of a checkpoint.
constexpr std::uintmax_t kMaxFileBytes = 10'000'000;

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw ConfigError(path + ": cannot be read: " + reason);
}

}  // namespace

std::string read_config_file(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    throw ConfigError("argument config_path: found " + in_quotes(path) + ", allowed is a path without NUL bytes");
  }
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (error) fail(path, error.message());
  if (std::filesystem::is_directory(status)) fail(path, "it is a directory, wanted is a file such as config.json");
  // A pipe would block, and could not be read again for dump_enable.
  if (!std::filesystem::is_regular_file(status)) fail(path, "it is not a regular file");
  if (std::filesystem::file_size(path, error) > kMaxFileBytes && !error) {
    fail(path, "it has more than " + std::to_string(kMaxFileBytes) + " bytes, wanted is a file such as config.json");
  }

  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) fail(path, std::generic_category().message(errno));
  std::string content{std::istreambuf_iterator<char>(stream), {}};
  if (stream.bad()) fail(path, std::generic_category().message(errno));
  return content;
}

}  // namespace msprobe
