#include "format/json_text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <charconv>
#include <cmath>

namespace msprobe {
namespace {

void append_code_unit(std::string& out, std::uint32_t unit) {
  out += "\\u";
  append_hex(out, unit, 4);
}

void append_code_point(std::string& out, std::uint32_t code) {
  if (code < 0x10000U) return append_code_unit(out, code);
  append_code_unit(out, 0xD800U + ((code - 0x10000U) >> 10U));
  append_code_unit(out, 0xDC00U + ((code - 0x10000U) & 0x3FFU));
}

// Takes the character at the start of `text` off it: UTF-8 (RFC 3629) with surrogates let through. A byte that begins
// no such character is U+FFFD.
std::uint32_t take_code_point(std::string_view& text) {
  constexpr std::uint32_t kReplacement = 0xFFFD;
  constexpr std::array<std::uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};  // by length: no overlong forms
  const auto byte = [&](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(text[i])}; };
  const std::uint32_t first = byte(0);
  const std::size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF8 ? 4 : 1;
  if (length > 1) {
    std::uint32_t code = first & (0x7FU >> length);
    bool valid = length <= text.size();
    for (std::size_t i = 1; valid && i < length; ++i) {
      valid = (byte(i) & 0xC0U) == 0x80U;
      code = (code << 6U) | (byte(i) & 0x3FU);
    }
    if (valid && code >= kSmallest[length] && code <= 0x10FFFF) {
      text.remove_prefix(length);
      return code;
    }
  }
  text.remove_prefix(1);
  return first < 0x80 ? first : kReplacement;
}

void append_escaped(std::string& out, std::uint32_t code) {
  switch (code) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\b':
      out += "\\b";
      break;
    case '\f':
      out += "\\f";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      append_code_point(out, code);
  }
}

// By its bits, which do not depend on the mode of the processor.
bool is_subnormal(double value) {
  constexpr std::uint64_t kExponent = 0x7FF0'0000'0000'0000;
  constexpr std::uint64_t kMantissa = 0x000F'FFFF'FFFF'FFFF;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return (bits & kExponent) == 0 && (bits & kMantissa) != 0;
}

void append_shortest(std::string& out, double value, std::chars_format format) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format).ptr;
  out.append(text.data(), end);
}

constexpr bool stands_as_it_is(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto special = std::find_if_not(text.begin(), text.end(), stands_as_it_is);
    const auto plain = static_cast<std::size_t>(special - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (!text.empty()) append_escaped(out, take_code_point(text));
  }
  out += '"';
}

void append_json_double(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
    return;
  }
  if (std::isinf(value)) {
    out += value > 0 ? "Infinity" : "-Infinity";
    return;
  }
  if (is_subnormal(value)) {
    // Where training has the processor take subnormals for zeros, to_chars would do so too.
    std::fenv_t environment{};
    std::fegetenv(&environment);
    std::fesetenv(FE_DFL_ENV);
    append_shortest(out, value, std::chars_format::scientific);
    std::fesetenv(&environment);
    return;
  }
  const double magnitude = std::fabs(value);
  const bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  const std::size_t begin = out.size();
  append_shortest(out, value, plain ? std::chars_format::fixed : std::chars_format::scientific);
  if (plain && out.find('.', begin) == std::string::npos) out += ".0";
}

void append_hex(std::string& out, std::uint32_t value, int digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kDigits[(value >> shift) & 0xFU];
}

}  // namespace msprobe
