// What config.json and the arguments may say.

#include "msprobe/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "temporary_config.h"

namespace msprobe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(LoadConfig, WithoutFileHasDefaults) {
  const Config config = load_config("", with_dump_path("./dump"));
  EXPECT_EQ(config.task, Task::kStatistics);
  EXPECT_EQ(config.dump_path, "./dump");
  EXPECT_TRUE(config.rank.matches_all());
  EXPECT_TRUE(config.step.matches_all());
  EXPECT_FALSE(config.async_dump);
  EXPECT_EQ(config.summary_mode, SummaryMode::kStatistics);
  EXPECT_TRUE(config.dump_enable);
  EXPECT_EQ(config.config_path, "");
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(LoadConfig, ReadsEveryKey) {
  const TemporaryConfig file(R"({
    "task": "statistics", "level": "debug", "dump_path": "/data/dump", "rank": [0, "2-3"], "step": ["7", 1],
    "async_dump": true, "dump_enable": false, "statistics": {"summary_mode": "md5"}, "tensor": {}
  })");
  const Config config = load_config(file.path());
  EXPECT_EQ(config.task, Task::kStatistics);
  EXPECT_EQ(config.dump_path, "/data/dump");
  EXPECT_THAT(config.rank.ranges(), ElementsAre(Pair(0, 0), Pair(2, 3)));
  EXPECT_THAT(config.step.ranges(), ElementsAre(Pair(1, 1), Pair(7, 7)));
  EXPECT_TRUE(config.async_dump);
  EXPECT_FALSE(config.dump_enable);
  EXPECT_EQ(config.summary_mode, SummaryMode::kMd5);
  EXPECT_EQ(config.config_path, file.path());
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(LoadConfig, MakesConfigPathAbsolute) {
  const TemporaryConfig file(R"({"dump_path": "d"})");
  const std::string relative = std::filesystem::relative(file.path()).string();
  ASSERT_NE(relative.front(), '/');
  EXPECT_TRUE(std::filesystem::equivalent(load_config(relative).config_path, file.path()));
  EXPECT_TRUE(std::filesystem::path(load_config(relative).config_path).is_absolute());
}

TEST(LoadConfig, ArgumentsOverrideTheFile) {
  const Config config = load_text(R"({"task": "statistics", "level": "L1", "dump_path": "a", "step": [1]})",
                                  {.task = "tensor", .dump_path = "b", .level = "debug", .step = {{std::int64_t{2}}}});
  EXPECT_EQ(config.task, Task::kTensor);
  EXPECT_EQ(config.dump_path, "b");
  EXPECT_THAT(config.step.ranges(), ElementsAre(Pair(2, 2)));
}

TEST(LoadConfig, EmptyStepArgumentOverridesWithEverything) {
  EXPECT_TRUE(load_text(R"({"dump_path": "a", "step": [1]})", with_step({})).step.matches_all());
}

TEST(LoadConfig, NullMeansNoKey) {
  const Config config = load_text(
      R"({"task": null, "level": null, "dump_path": "d", "rank": null, "step": null, "async_dump": null,
          "dump_enable": null, "statistics": null, "tensor": null})");
  EXPECT_EQ(config.task, Task::kStatistics);
  EXPECT_TRUE(config.rank.matches_all());
  EXPECT_FALSE(config.async_dump);
  EXPECT_TRUE(config.dump_enable);
}

TEST(LoadConfig, AcceptsEveryFormOfFilterItem) {
  const Config config = load_text(
      R"({"dump_path": "d", "rank": [], "step": [0, "10", "20-22", " 30 ", " 40 - 41 ", "50-50", 9223372036854775807]})");
  EXPECT_TRUE(config.rank.matches_all());
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(config.step.ranges(), ElementsAre(Pair(0, 0), Pair(10, 10), Pair(20, 22), Pair(30, 30), Pair(40, 41),
                                                Pair(50, 50), Pair(largest, largest)));
}

TEST(LoadConfig, SummaryModeMd5GoesWithTaskTensorToo) {
  const Config config =
      load_text(R"({"task": "tensor", "dump_path": "d", "statistics": {"summary_mode": "md5"}, "tensor": {}})");
  EXPECT_EQ(config.summary_mode, SummaryMode::kMd5);
}

TEST(LoadConfig, AcceptsKeysOfOtherToolsOfMsprobe) {
  const Config config = load_text(R"({
    "dump_path": "d", "extra_info": true, "precision": "low", "risk_level": "FOCUS", "custom_op_namespaces": [],
    "scope": [], "list": [], "tensor_list": [], "data_mode": ["all"],
    "statistics": {"scope": [], "list": [], "tensor_list": [], "data_mode": ["all"], "summary_mode": "statistics"},
    "tensor": {"scope": [], "list": [], "data_mode": ["all"], "slice": null},
    "acc_check": {"white_list": [], "black_list": [], "error_data_path": "./"}, "overflow_check": {"overflow_nums": 1}
  })");
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(LoadConfig, WarnsAboutUnknownKeys) {
  const TemporaryConfig file(R"({"dump_path": "d", "asink_dump": true, "statistics": {"sumary_mode": "md5"}})");
  EXPECT_THAT(load_config(file.path()).warnings,
              ElementsAre(file.path() + R"(: asink_dump: unknown key, ignored; the nearest known key is "async_dump")",
                          file.path() + R"(: statistics.sumary_mode: unknown key, ignored; )"
                                        R"(the nearest known key is "statistics.summary_mode")"));
}

TEST(LoadConfig, SkipsByteOrderMark) { EXPECT_EQ(load_text("\xEF\xBB\xBF{\"dump_path\": \"d\"}").dump_path, "d"); }

TEST(LoadConfig, KeepsUtf8InDumpPath) {
  EXPECT_EQ(load_text("{\"dump_path\": \"/\xE6\x95\xB0\xE6\x8D\xAE\"}").dump_path, "/\xE6\x95\xB0\xE6\x8D\xAE");
  EXPECT_EQ(load_text(R"({"dump_path": "/\u6570\u636e"})").dump_path, "/\xE6\x95\xB0\xE6\x8D\xAE");
}

TEST(ReadDumpEnable, ReturnsTheKeyOrNothing) {
  const TemporaryConfig file(R"({"dump_enable": true, "task": "of no interest here"})");
  EXPECT_EQ(read_dump_enable(file.path()), true);
  file.rewrite(R"({"dump_enable": false})");
  EXPECT_EQ(read_dump_enable(file.path()), false);
  file.rewrite(R"({"dump_path": "d"})");
  EXPECT_EQ(read_dump_enable(file.path()), std::nullopt);
}

TEST(ReadDumpEnable, ThrowsOnHalfWrittenFile) {
  const TemporaryConfig file(R"({"dump_enable": fal)");
  EXPECT_THROW(static_cast<void>(read_dump_enable(file.path())), ConfigError);
  file.rewrite("");
  EXPECT_THROW(static_cast<void>(read_dump_enable(file.path())), ConfigError);
  file.rewrite(R"({"dump_enable": 1})");
  EXPECT_EQ(config_error([&] { static_cast<void>(read_dump_enable(file.path())); }, file.path()),
            "config.json: dump_enable: found int 1, allowed are true and false");
}

}  // namespace
}  // namespace msprobe
