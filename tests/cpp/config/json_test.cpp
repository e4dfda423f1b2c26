#include "config/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temporary_config.h"

namespace msprobe {
namespace {

using testing::StartsWith;

std::string error_of(std::string_view text) {
  return config_error([&] { static_cast<void>(parse_json(text, "f")); }, "");
}

TEST(ParseJson, BuildsTheTree) {
  const JsonValue value = parse_json(R"({"a": [1, -2.50, "x\n\u00e9", true, null], "b": {"c": {}}})", "f");
  const auto& root = std::get<JsonObject>(value.node);
  ASSERT_EQ(root.size(), 2U);
  const auto& list = std::get<JsonList>(root[0].value.node);
  ASSERT_EQ(list.size(), 5U);
  EXPECT_EQ(std::get<JsonNumber>(list[0].node).text, "1");
  EXPECT_EQ(std::get<JsonNumber>(list[1].node).text, "-2.50");
  EXPECT_EQ(std::get<std::string>(list[2].node), "x\n\xC3\xA9");
  EXPECT_EQ(std::get<bool>(list[3].node), true);
  EXPECT_TRUE(list[4].is_null());
  EXPECT_EQ(root[1].key, "b");
  EXPECT_TRUE(std::holds_alternative<JsonObject>(find_key(std::get<JsonObject>(root[1].value.node), "c")->node));
}

TEST(ParseJson, FindKeyTreatsNullAsMissing) {
  const JsonValue value = parse_json(R"({"a": null, "b": false})", "f");
  const auto& root = std::get<JsonObject>(value.node);
  EXPECT_EQ(find_key(root, "a"), nullptr);
  EXPECT_EQ(find_key(root, "c"), nullptr);
  EXPECT_NE(find_key(root, "b"), nullptr);
}

TEST(ParseJson, NamesWhatIsExpectedAndFound) {
  EXPECT_EQ(error_of(R"({"a": 1 "b": 2})"), R"(f:1:9: expected ',' or '}' after the value, found "\"")");
  EXPECT_EQ(error_of("[1 2]"), R"(f:1:4: expected ',' or ']' after the value, found "2")");
  EXPECT_EQ(error_of(R"({"a" 1})"), R"(f:1:6: expected ':' after the key, found "1")");
  EXPECT_EQ(error_of("{a: 1}"),
            R"(f:1:2: expected a key in double quotes (and no ',' after the last entry), found "a")");
  EXPECT_EQ(error_of("{\"a\": 1,\n}"),
            R"(f:2:1: expected a key in double quotes (and no ',' after the last entry), found "}")");
  EXPECT_THAT(error_of("[1,]"), StartsWith("f:1:4: expected a value: "));
  EXPECT_EQ(error_of("{} x"), R"(f:1:4: expected nothing more after the document, found "x")");
  EXPECT_EQ(error_of(R"({"a": True})"),
            "f:1:7: expected a value: text in double quotes, a number, true, false, null, a list or an object, "
            R"(found "True")");
  EXPECT_EQ(error_of("{\"a\": 1"), "f:1:8: expected ',' or '}' after the value, found the end of the file");
  EXPECT_THAT(error_of("{'a': 1}"), StartsWith("f:1:2: expected a key in double quotes"));
  EXPECT_THAT(error_of("{\"a\":\n// why\n1}"), StartsWith("f:2:1: expected a value: "));
}

TEST(ParseJson, NamesWhatIsWrongInText) {
  EXPECT_THAT(error_of("[\"a]"), StartsWith("f:1:5: expected '\"' at the end of the text, found the end of the file"));
  EXPECT_THAT(error_of("[\"C:\\data\"]"), StartsWith("f:1:5: expected one of \" \\ / b f n r t u after '\\'"));
  EXPECT_THAT(error_of("[\"\\u12g4\"]"), StartsWith("f:1:3: expected four hexadecimal digits after \\u"));
  EXPECT_THAT(error_of("[\"\\ud800\"]"), StartsWith("f:1:3: expected both halves of a surrogate pair"));
  EXPECT_THAT(error_of("[\"a\xFF\"]"), StartsWith("f:1:4: expected text in UTF-8,"));
  EXPECT_THAT(error_of("[\"a\nb\"]"), StartsWith("f:1:4: expected '\"' at the end of the text (a line break in it is "
                                                 "written \\n), found the end of the line"));
}

TEST(ParseJson, NamesWhatIsWrongInNumbers) {
  EXPECT_THAT(error_of("[1.]"), StartsWith("f:1:4: expected a digit after the decimal point"));
  EXPECT_THAT(error_of("[1e]"), StartsWith("f:1:4: expected a digit in the exponent"));
  EXPECT_THAT(error_of("[1e999999999999]"), StartsWith("f:1:2: expected a number in the range of double"));
}

TEST(ParseJson, CountsColumnsInCharacters) {
  EXPECT_THAT(error_of("{\"\xE6\x95\xB0\": 1 2}"), StartsWith("f:1:9: expected ','"));
  EXPECT_THAT(error_of("\xEF\xBB\xBF{\"a\": 1 2}"), StartsWith("f:1:9: expected ','"));
}

TEST(ParseJson, RefusesDuplicateKeys) {
  EXPECT_EQ(error_of("{\"step\": [],\n \"step\": [1]}"),
            R"(f:2:8: the key "step" stands here a second time, allowed is once)");
  EXPECT_NO_THROW(static_cast<void>(parse_json(R"({"a": {"b": 1}, "c": {"b": 1}})", "f")));
}

TEST(ParseJson, RefusesDeepNestingWithoutUsingTheStack) {
  EXPECT_EQ(error_of(std::string(1'000'000, '[')), "f:1:101: found nesting deeper than 100 levels");
  const std::string open(kMaxJsonDepth, '[');
  EXPECT_NO_THROW(static_cast<void>(parse_json(open + std::string(kMaxJsonDepth, ']'), "f")));
}

TEST(ParseJson, RefusesOtherEncodings) {
  EXPECT_EQ(error_of(std::string_view("\xFF\xFE{\0}\0", 6)), "f: found text in UTF-16, allowed is UTF-8");
  EXPECT_EQ(error_of(std::string_view("{}\n\0x", 5)), "f:2:1: expected text, found a NUL byte");
}

TEST(InQuotes, EscapesAndCuts) {
  EXPECT_EQ(in_quotes("a\"b\\c\x1B\x7F"), R"("a\"b\\c\x1b\x7f")");
  EXPECT_EQ(in_quotes(std::string(100, 'x')), '"' + std::string(100, 'x') + '"');
  EXPECT_EQ(in_quotes(std::string(101, 'x')), '"' + std::string(100, 'x') + "...\"");
  EXPECT_EQ(in_quotes(std::string(99, 'x') + "\xC3\xA9"), '"' + std::string(99, 'x') + "...\"");
}

}  // namespace
}  // namespace msprobe
