#include "format/json_text.h"

#include <gtest/gtest.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include <limits>
#include <utility>
#include <vector>

namespace msprobe {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string shown(double value) {
  std::string out;
  append_json_double(out, value);
  return out;
}

// Expected texts: repr() of CPython 3.11.
TEST(JsonDouble, IsPythonsRepr) {
  const std::vector<std::pair<double, std::string>> table = {
      {0.0, "0.0"},
      {-0.0, "-0.0"},
      {1.0, "1.0"},
      {5.0, "5.0"},
      {-2.5, "-2.5"},
      {0.1, "0.1"},
      {1.0 / 3, "0.3333333333333333"},
      {2.2360680103302, "2.2360680103302"},
      {100000.0, "100000.0"},
      {123456789.123, "123456789.123"},
      {0.001, "0.001"},
      {0.0001, "0.0001"},
      {0.00012345, "0.00012345"},
      {0.00009999999999999999, "9.999999999999999e-05"},
      {0.00001, "1e-05"},
      {1.5e-7, "1.5e-07"},
      {1e15, "1000000000000000.0"},
      {9007199254740993.0, "9007199254740992.0"},
      {9999999999999998.0, "9999999999999998.0"},
      {1e16, "1e+16"},
      {12345678901234567.0, "1.2345678901234568e+16"},
      {1e22, "1e+22"},
      {1e23, "1e+23"},
      {1.5e300, "1.5e+300"},
      {1e100, "1e+100"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {-1.7976931348623157e308, "-1.7976931348623157e+308"},
      {2.2250738585072014e-308, "2.2250738585072014e-308"},
      {5e-324, "5e-324"},
      {static_cast<double>(0.1F), "0.10000000149011612"},
      {65504.0, "65504.0"},
      {std::numeric_limits<double>::quiet_NaN(), "NaN"},
      {-std::numeric_limits<double>::quiet_NaN(), "NaN"},
      {std::numeric_limits<double>::infinity(), "Infinity"},
      {-std::numeric_limits<double>::infinity(), "-Infinity"},
  };
  for (const auto& [value, expected] : table) EXPECT_EQ(shown(value), expected);
}

#ifdef __x86_64__
TEST(JsonDouble, ShowsSubnormalsWhereTheProcessorTakesThemForZero) {
  constexpr unsigned kDenormalsAreZero = 0x8040;  // MXCSR bits FTZ and DAZ: torch.set_flush_denormal(True)
  const unsigned old = _mm_getcsr();
  _mm_setcsr(old | kDenormalsAreZero);
  const std::string text = shown(std::numeric_limits<double>::denorm_min());
  const unsigned mode_after = _mm_getcsr();
  _mm_setcsr(old);
  EXPECT_EQ(text, "5e-324");
  EXPECT_EQ(mode_after, old | kDenormalsAreZero) << "the caller's mode must come back";
}
#endif

// Expected texts: json.dumps() of CPython 3.11.
TEST(JsonString, IsAsciiAsPythonsJson) {
  EXPECT_EQ(escaped(""), "\"\"");
  EXPECT_EQ(escaped("plain /~ text"), "\"plain /~ text\"");
  EXPECT_EQ(escaped("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(escaped("\n\r\t\b\f"), R"("\n\r\t\b\f")");
  EXPECT_EQ(escaped(std::string_view("\0\x01\x1f\x7f", 4)), R"("\u0000\u0001\u001f\u007f")");
  EXPECT_EQ(escaped("\xC3\xA9\xE4\xB8\xAD!"), R"("\u00e9\u4e2d!")");
  EXPECT_EQ(escaped("\xF0\x9F\x98\x80"), R"("\ud83d\ude00")");
  EXPECT_EQ(escaped("\xF4\x8F\xBF\xBF"), R"("\udbff\udfff")");
  EXPECT_EQ(escaped("\xED\xA0\x80z"), R"("\ud800z")") << "a lone surrogate, as surrogatepass encodes it";
  EXPECT_EQ(escaped("\xED\xBF\xBF"), R"("\udfff")");
}

TEST(JsonString, ReplacesEachByteThatIsNotUtf8) {
  EXPECT_EQ(escaped("a\xFF\x80z"), R"("a\ufffd\ufffdz")");
  EXPECT_EQ(escaped("\xC3"), R"("\ufffd")") << "cut short";
  EXPECT_EQ(escaped("\xE4\xB8"), R"("\ufffd\ufffd")");
  EXPECT_EQ(escaped("\xC3z"), R"("\ufffdz")");
  EXPECT_EQ(escaped("\xC0\x80"), R"("\ufffd\ufffd")") << "overlong";
  EXPECT_EQ(escaped("\xE0\x80\x80"), R"("\ufffd\ufffd\ufffd")");
  EXPECT_EQ(escaped("\xF4\x90\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")") << "over U+10FFFF";
}

TEST(JsonHex, HasTheDigitsAskedFor) {
  std::string out;
  append_hex(out, 0xD53A3, 8);
  append_hex(out, 0xABCD, 2);
  EXPECT_EQ(out, "000d53a3cd");
}

}  // namespace
}  // namespace msprobe
