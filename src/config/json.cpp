#include "config/json.h"

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "msprobe/error.h"

namespace msprobe {
namespace {

constexpr std::size_t kMaxQuotedBytes = 100;

// Builds the tree from the events of the parser. A false return stops the parser; `problem` says why.
class TreeBuilder {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the reader calls these names
  bool Null() { return add(JsonNull{}); }
  bool Bool(bool value) { return add(value); }
  bool RawNumber(const char* text, rapidjson::SizeType length, bool) {
    return add(JsonNumber{std::string(text, length)});
  }
  bool String(const char* text, rapidjson::SizeType length, bool) { return add(std::string(text, length)); }
  bool StartObject() { return open(JsonObject{}); }
  bool StartArray() { return open(JsonList{}); }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool EndArray(rapidjson::SizeType) { return close(); }

  bool Key(const char* text, rapidjson::SizeType length, bool) {
    auto& object = std::get<JsonObject>(open_.back()->node);
    std::string key(text, length);
    if (std::ranges::find(object, key, &JsonEntry::key) != object.end()) {
      problem_ = "the key " + in_quotes(key) + " stands here a second time, allowed is once";
      return false;
    }
    object.push_back({std::move(key), {}});
    return true;
  }

  // Never called: numbers come as text.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }
  // NOLINTEND(readability-identifier-naming)

  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  [[nodiscard]] JsonValue take_root() noexcept { return std::move(root_); }

 private:
  // Where the next value belongs.
  JsonValue& place() {
    if (open_.empty()) return root_;
    if (auto* list = std::get_if<JsonList>(&open_.back()->node)) return list->emplace_back();
    return std::get<JsonObject>(open_.back()->node).back().value;
  }

  template <class Node>
  bool add(Node node) {
    place().node = std::move(node);
    return true;
  }

  template <class Node>
  bool open(Node node) {
    if (open_.size() == kMaxJsonDepth) {
      problem_ = "found nesting deeper than " + std::to_string(kMaxJsonDepth) + " levels";
      return false;
    }
    JsonValue& container = place();
    container.node = std::move(node);
    open_.push_back(&container);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  JsonValue root_;
  // From the outermost to the innermost. Only the innermost grows, so that none of the others moves.
  std::vector<JsonValue*> open_;
  std::string problem_;
};

const char* expected_at(rapidjson::ParseErrorCode code, bool at_backslash) {
  switch (code) {
    case rapidjson::kParseErrorDocumentRootNotSingular:
      return "expected nothing more after the document";
    case rapidjson::kParseErrorObjectMissName:
      return "expected a key in double quotes (and no ',' after the last entry)";
    case rapidjson::kParseErrorObjectMissColon:
      return "expected ':' after the key";
    case rapidjson::kParseErrorObjectMissCommaOrCurlyBracket:
      return "expected ',' or '}' after the value";
    case rapidjson::kParseErrorArrayMissCommaOrSquareBracket:
      return "expected ',' or ']' after the value";
    case rapidjson::kParseErrorStringUnicodeEscapeInvalidHex:
      return "expected four hexadecimal digits after \\u";
    case rapidjson::kParseErrorStringUnicodeSurrogateInvalid:
      return "expected both halves of a surrogate pair";
    case rapidjson::kParseErrorStringEscapeInvalid:
      // The parser has no code of its own for a raw control character.
      if (!at_backslash) return "expected '\"' at the end of the text (a line break in it is written \\n)";
      return "expected one of \" \\ / b f n r t u after '\\' (a '\\' itself is written \\\\)";
    case rapidjson::kParseErrorStringMissQuotationMark:
      return "expected '\"' at the end of the text";
    case rapidjson::kParseErrorStringInvalidEncoding:
      return "expected text in UTF-8";
    case rapidjson::kParseErrorNumberTooBig:
      return "expected a number in the range of double";
    case rapidjson::kParseErrorNumberMissFraction:
      return "expected a digit after the decimal point";
    case rapidjson::kParseErrorNumberMissExponent:
      return "expected a digit in the exponent";
    default:
      return "expected a value: text in double quotes, a number, true, false, null, a list or an object";
  }
}

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

std::string position(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto line = 1 + std::ranges::count(before, '\n');
  const auto column =
      1 + std::ranges::count_if(before.substr(line_start), [](char byte) { return !is_continuation(byte); });
  return std::to_string(line) + ":" + std::to_string(column);
}

std::string found_at(std::string_view text, std::size_t offset) {
  if (offset >= text.size()) return "the end of the file";
  const std::string_view rest = text.substr(offset);
  if (rest.front() == '\n' || rest.front() == '\r') return "the end of the line";
  constexpr std::string_view kWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  std::size_t length = std::min(rest.find_first_not_of(kWord), rest.size());
  if (length == 0) {
    length = 1;
    while (length < rest.size() && is_continuation(rest[length])) ++length;
  }
  return in_quotes(rest.substr(0, length));
}

}  // namespace

JsonValue parse_json(std::string_view text, const std::string& file) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (text.starts_with("\xFE\xFF") || text.starts_with("\xFF\xFE")) {
    throw ConfigError(file + ": found text in UTF-16, allowed is UTF-8");
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw ConfigError(file + ": the file is empty, expected an object such as {\"dump_path\": \"./dump\"}");
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {  // the parser would stop there
    throw ConfigError(file + ":" + position(text, nul) + ": expected text, found a NUL byte");
  }
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag | rapidjson::kParseNumbersAsStringsFlag;
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  TreeBuilder builder;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, builder);
  if (result) return builder.take_root();
  const std::string place = file + ":" + position(text, result.Offset()) + ": ";
  if (result.Code() == rapidjson::kParseErrorTermination) throw ConfigError(place + builder.problem());
  throw ConfigError(place + expected_at(result.Code(), text.substr(result.Offset()).starts_with('\\')) + ", found " +
                    found_at(text, result.Offset()));
}

const JsonValue* find_key(const JsonObject& object, std::string_view key) noexcept {
  const auto entry = std::ranges::find(object, key, &JsonEntry::key);
  return entry == object.end() || entry->value.is_null() ? nullptr : &entry->value;
}

std::string in_quotes(std::string_view text) {
  std::string_view shown = text;
  if (text.size() > kMaxQuotedBytes) {
    std::size_t length = kMaxQuotedBytes;
    while (length > 0 && is_continuation(text[length])) --length;
    shown = text.substr(0, length);
  }
  std::string out = "\"";
  for (const char byte : shown) {
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F) {
      constexpr std::string_view kHex = "0123456789abcdef";
      out += "\\x";
      out += kHex[static_cast<unsigned char>(byte) / 16U];
      out += kHex[static_cast<unsigned char>(byte) % 16U];
    } else {
      if (byte == '"' || byte == '\\') out += '\\';
      out += byte;
    }
  }
  return out + (shown.size() < text.size() ? "...\"" : "\"");
}

std::string describe(const JsonValue& value) {
  if (const auto* flag = std::get_if<bool>(&value.node)) return *flag ? "bool true" : "bool false";
  if (const auto* number = std::get_if<JsonNumber>(&value.node)) {
    return (number->is_integer() ? "int " : "float ") + number->text;
  }
  if (const auto* text = std::get_if<std::string>(&value.node)) return in_quotes(*text);
  if (std::holds_alternative<JsonList>(value.node)) return "a list";
  if (std::holds_alternative<JsonObject>(value.node)) return "an object";
  return "null";
}

}  // namespace msprobe
