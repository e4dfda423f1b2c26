#pragma once
// JSON text, byte for byte as Python's json.dumps writes it.

#include <cstdint>
#include <string>
#include <string_view>

namespace msprobe {

// Appends `text` as a JSON string to `out`, ASCII only, as Python's json does. `text` is UTF-8 in which lone
// surrogates may stand as three bytes (Python's surrogatepass); anything else that is not UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);

// Appends `value` as Python's repr: the shortest digits that give the same double back, with an exponent below 1e-4 and
// from 1e16 on. NaN, Infinity and -Infinity are these tokens. At most 24 characters.
void append_json_double(std::string& out, double value);

// Appends the low `digits` hexadecimal digits of `value`, lower case.
void append_hex(std::string& out, std::uint32_t value, int digits);

}  // namespace msprobe
