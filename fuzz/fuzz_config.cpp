// Reads any bytes as a JSON document of a user: config.json, or a map of names; to be started with DIR/config of
// make_corpus.py.

#include <cstdint>
#include <string_view>

#include "config/json.h"
#include "msprobe/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace msprobe;
  try {
    const JsonValue document = parse_json(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    static_cast<void>(describe(document));
  } catch (const ConfigError&) {
    return 0;
  }
  return 0;
}
