#include "compare/match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "../format/scratch.h"
#include "msprobe/error.h"
#include "records.h"

namespace msprobe {
namespace {

using test::names_of;
using test::records_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

NameMap map_of(const std::string& json) {
  const test::ScratchFolder folder;
  std::ofstream(folder / "map.json") << json;
  return NameMap::read(folder / "map.json");
}

std::string error_of_map(const std::string& json) {
  try {
    static_cast<void>(map_of(json));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Match, PairsTheSameNamesInGoldensOrder) {
  const auto golden = records_of(R"("a.0.debug": null, "b.0.debug": null, "a.1.debug": null)");
  const auto target = records_of(R"("a.1.debug": null, "b.0.debug": null, "a.0.debug": null)");
  EXPECT_THAT(
      names_of(match(golden, target, {})),
      ElementsAre(Pair("a.0.debug", "a.0.debug"), Pair("b.0.debug", "b.0.debug"), Pair("a.1.debug", "a.1.debug")));
}

TEST(Match, KeepsWhatOnlyOneSideHasAtItsPlace) {
  const auto golden = records_of(R"("a.0.debug": null, "gone.0.debug": null, "b.0.debug": null)");
  const auto target = records_of(R"("first.0.debug": null, "a.0.debug": null, "new.0.debug": null, "b.0.debug": null)");
  EXPECT_THAT(names_of(match(golden, target, {})),
              ElementsAre(Pair("-", "first.0.debug"), Pair("a.0.debug", "a.0.debug"), Pair("-", "new.0.debug"),
                          Pair("gone.0.debug", "-"), Pair("b.0.debug", "b.0.debug")));
}

TEST(Match, OfAnEmptySideAllIsMissing) {
  const auto records = records_of(R"("a.0.debug": null, "b.0.debug": null)");
  EXPECT_THAT(names_of(match({}, records, {})), ElementsAre(Pair("-", "a.0.debug"), Pair("-", "b.0.debug")));
  EXPECT_THAT(names_of(match(records, {}, {})), ElementsAre(Pair("a.0.debug", "-"), Pair("b.0.debug", "-")));
  EXPECT_TRUE(match({}, {}, {}).empty());
}

TEST(Match, PairsLeavesOfANestingByTheirPlace) {
  const auto golden = records_of(R"("n.0.debug": {"a": [null, null], "b": null})");
  const auto target = records_of(R"("n.0.debug": {"b": null, "a": [null]})");
  EXPECT_THAT(names_of(match(golden, target, {})),
              ElementsAre(Pair("n.0.debug.a.0", "n.0.debug.a.0"), Pair("n.0.debug.a.1", "-"),
                          Pair("n.0.debug.b", "n.0.debug.b")));
}

TEST(Match, PairsANestingWithTheFlatNamesOfAGraph) {
  const auto golden = records_of(R"("n.2.debug": {"a": [null]})");
  std::vector<Record> graph(1);
  graph[0].key = "n.a.0.2";
  graph[0].name_bytes = 5;
  graph[0].count = 2;
  graph[0].leaves.resize(1);
  EXPECT_THAT(names_of(match(golden, graph, {})), ElementsAre(Pair("n.2.debug.a.0", "n.a.0.2")));
}

TEST(Match, PairsWhatReadsTheSameByItsOrder) {
  const auto records = records_of(R"("n.0.debug": {"a": null}, "n.a.0.debug": null)");
  EXPECT_THAT(names_of(match(records, records, {})),
              ElementsAre(Pair("n.0.debug.a", "n.0.debug.a"), Pair("n.a.0.debug", "n.a.0.debug")));
}

TEST(Match, NeverPairsAGradientWithAForwardRecord) {
  const auto golden = records_of(R"("x.0.debug": null, "x_grad.0.debug": null)");
  const auto target = records_of(R"("x_grad.0.debug": null)");  // the user's own name: there is no x
  EXPECT_THAT(names_of(match(golden, target, {})),
              ElementsAre(Pair("-", "x_grad.0.debug"), Pair("x.0.debug", "-"), Pair("x_grad.0.debug", "-")));
}

TEST(Match, MapsNamesWithTheirGradientsAndCounts) {
  MatchOptions options;
  options.map = map_of(R"json({"q": "attn.q", "layer(\\d+)_(.*)": "layers.\\1.\\2", "layer7_x": "seven"})json");
  const auto golden = records_of(
      R"("q.0.debug": null, "q_grad.0.debug": null, "layer12_out.3.debug": null, "layer7_x.0.debug": null, "qq.0.debug": null)");
  const auto target = records_of(
      R"("attn.q.0.debug": null, "attn.q_grad.0.debug": null, "layers.12.out.3.debug": null, "seven.0.debug": null, "qq.0.debug": null)");
  EXPECT_THAT(names_of(match(golden, target, options)),
              ElementsAre(Pair("q.0.debug", "attn.q.0.debug"), Pair("q_grad.0.debug", "attn.q_grad.0.debug"),
                          Pair("layer12_out.3.debug", "layers.12.out.3.debug"),
                          Pair("layer7_x.0.debug", "seven.0.debug"), Pair("qq.0.debug", "qq.0.debug")));
}

TEST(Match, SaysWhatIsWrongWithAMap) {
  EXPECT_THAT(error_of_map("[]"), HasSubstr(R"(found a list, expected {"golden": "target"})"));
  EXPECT_THAT(error_of_map(R"({"a": 1})"), HasSubstr("\"a\": found int 1, expected a name"));
  EXPECT_THAT(error_of_map(R"json({"a(": "b"})json"), HasSubstr("regular expression \"a(\": missing )"));
  EXPECT_THAT(error_of_map(R"({"a": "b\\1"})"), HasSubstr("\"a\": \"b\\\\1\""));
}

TEST(Match, LeavesOutWhatTheUserDoesNotWant) {
  const auto golden = records_of(R"("q.0.debug": null, "k.0.debug": null, "loss.0.debug": null)");
  const auto target = records_of(R"("attn.0.debug": null, "k.0.debug": null, "loss.0.debug": null)");
  MatchOptions options;
  options.map = map_of(R"({"q": "attn"})");
  options.name = Pattern("^(attn|k)\\.");  // of either side
  EXPECT_THAT(names_of(match(golden, target, options)),
              ElementsAre(Pair("q.0.debug", "attn.0.debug"), Pair("k.0.debug", "k.0.debug")));
  options.ignore = Pattern("k");
  EXPECT_THAT(names_of(match(golden, target, options)), ElementsAre(Pair("q.0.debug", "attn.0.debug")));
}

TEST(Pattern, TakesTimeLinearInTheText) {
  const Pattern pattern("(a*)*b");  // exponential in a backtracking matcher
  EXPECT_FALSE(pattern.is_in(std::string(100'000, 'a')));
}

}  // namespace
}  // namespace msprobe
