#include "config/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace msprobe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> warnings_of(std::string_view text) {
  const JsonValue value = parse_json(text, "f");
  return unknown_key_warnings(std::get<JsonObject>(value.node), "f");
}

TEST(EditDistance, CountsInsertionsRemovalsAndReplacements) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);  // the example of every textbook
  EXPECT_EQ(edit_distance("tensr", "tensor"), 1U);
  EXPECT_EQ(edit_distance("tensor", "tensro"), 2U);
}

TEST(LikelyMeant, TakesNearWordsOnly) {
  constexpr std::array<std::string_view, 2> kWords = {"statistics", "tensor"};
  EXPECT_EQ(likely_meant("tensors", kWords), "tensor");
  EXPECT_EQ(likely_meant("stats", kWords), std::nullopt);
  EXPECT_EQ(likely_meant("", kWords), std::nullopt);
}

TEST(UnknownKeyWarnings, NameTheNearestKnownKey) {
  EXPECT_THAT(warnings_of(R"({"dump_pth": 1, "task": 1})"),
              ElementsAre(R"(f: dump_pth: unknown key, ignored; the nearest known key is "dump_path")"));
  EXPECT_THAT(warnings_of(R"({"tensor": {"listt": []}})"),
              ElementsAre(R"(f: tensor.listt: unknown key, ignored; the nearest known key is "tensor.list")"));
}

TEST(UnknownKeyWarnings, TellWhereAMisplacedKeyBelongs) {
  EXPECT_THAT(
      warnings_of(R"({"summary_mode": "md5"})"),
      ElementsAre(R"(f: summary_mode: unknown key, ignored; the nearest known key is "statistics.summary_mode")"));
}

TEST(UnknownKeyWarnings, LeaveSectionsOfOtherToolsAlone) {
  EXPECT_THAT(warnings_of(R"({"acc_check": {"whatever": 1}, "statistics": null, "tensor": 3})"), IsEmpty());
}

}  // namespace
}  // namespace msprobe
