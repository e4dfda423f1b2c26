// The messages for what config.json and the arguments must not say.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "temporary_config.h"

namespace msprobe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kItems =
    R"(, allowed are whole numbers from 0 to 9223372036854775807, as 3 or "3", and ranges as "4-6")";

std::string error_of_step(const std::string& item) {
  return error_of_text(R"({"dump_path": "d", "step": [0, )" + item + "]}");
}

std::string error_of_path(const std::string& path) {
  return config_error([&] { static_cast<void>(load_config(path)); }, path);
}

TEST(ConfigError, IsAnErrorOfTheTree) { EXPECT_THROW(static_cast<void>(load_config("")), Error); }

TEST(ConfigError, MissingDumpPath) {
  const std::string message =
      "argument dump_path: missing; give it in config.json or as PrecisionDebugger(dump_path=...)";
  EXPECT_EQ(error_of_text("{}"), message);
  EXPECT_EQ(error_of_text(R"({"dump_path": null})"), message);
  EXPECT_EQ(error_of_arguments({}), message);
}

TEST(ConfigError, BadDumpPath) {
  EXPECT_EQ(error_of_text(R"({"dump_path": ""})"),
            R"(config.json: dump_path: found "", allowed is the path of a folder, which need not exist yet)");
  EXPECT_EQ(error_of_text(R"({"dump_path": "a\u0000b"})"),
            R"(config.json: dump_path: found "a\x00b", allowed is a path without NUL bytes)");
  EXPECT_EQ(error_of_text(R"({"dump_path": 3})"),
            "config.json: dump_path: found int 3, allowed is text in double quotes");
  EXPECT_THAT(error_of_arguments(with_dump_path("")), StartsWith(R"(argument dump_path: found "")"));
}

TEST(ConfigError, MisspelledTask) {
  EXPECT_EQ(error_of_text(R"({"task": "tensr"})"),
            R"(config.json: task: found "tensr", allowed are "statistics" and "tensor" (did you mean "tensor"?))");
  EXPECT_EQ(error_of_arguments(with_task("statistic")),
            R"(argument task: found "statistic", allowed are "statistics" and "tensor" (did you mean "statistics"?))");
  EXPECT_EQ(error_of_text(R"({"task": "banana"})"),
            R"(config.json: task: found "banana", allowed are "statistics" and "tensor")");
  EXPECT_EQ(error_of_text(R"({"task": ["tensor"]})"),
            "config.json: task: found a list, allowed is text in double quotes");
}

TEST(ConfigError, TaskOfAnotherTool) {
  for (const char* task : {"overflow_check", "structure", "acc_check", "nan_check", "exception_dump"}) {
    EXPECT_EQ(error_of_arguments(with_task(task)),
              std::string("argument task: found \"") + task +
                  R"(", a task of another msProbe tool, allowed are "statistics" and "tensor": )"
                  "this tool does single-point save only");
  }
}

TEST(ConfigError, LevelOfAnotherTool) {
  for (const char* level : {"L0", "L1", "L2", "mix"}) {
    EXPECT_EQ(error_of_text(std::string(R"({"level": ")") + level + "\"}"),
              std::string("config.json: level: found \"") + level +
                  R"(", a level of another msProbe tool, allowed is "debug": )"
                  R"(this tool does single-point save only (level "debug"))");
  }
}

TEST(ConfigError, UnknownLevel) {
  EXPECT_EQ(error_of_arguments(with_level("Debug")),
            R"(argument level: found "Debug", allowed is "debug" (did you mean "debug"?))");
  EXPECT_EQ(error_of_text(R"({"level": true})"),
            "config.json: level: found bool true, allowed is text in double quotes");
}

TEST(ConfigError, ReversedRange) {
  EXPECT_EQ(error_of_step("\"6-4\""), R"(config.json: step[1]: found "6-4", a reversed range; write "4-6")");
  EXPECT_EQ(error_of_arguments(with_step({"6 - 4"})),
            R"(argument step[0]: found "6 - 4", a reversed range; write "4-6")");
}

TEST(ConfigError, FilterItemsOfWrongType) {
  EXPECT_EQ(error_of_step("-3"), std::string("config.json: step[1]: found int -3") + kItems);
  EXPECT_EQ(error_of_step("true"), std::string("config.json: step[1]: found bool true") + kItems);
  EXPECT_EQ(error_of_step("3.0"), std::string("config.json: step[1]: found float 3.0") + kItems);
  EXPECT_EQ(error_of_step("1e3"), std::string("config.json: step[1]: found float 1e3") + kItems);
  EXPECT_EQ(error_of_step("null"), std::string("config.json: step[1]: found null") + kItems);
  EXPECT_EQ(error_of_step("[1]"), std::string("config.json: step[1]: found a list") + kItems);
  EXPECT_EQ(error_of_step("9223372036854775808"),
            std::string("config.json: step[1]: found int 9223372036854775808") + kItems);
  EXPECT_EQ(error_of_arguments(with_step({Unusable{"float 1.5"}})),
            std::string("argument step[0]: found float 1.5") + kItems);
  EXPECT_EQ(error_of_arguments(with_step({std::int64_t{0}, std::int64_t{-1}})),
            std::string("argument step[1]: found int -1") + kItems);
}

TEST(ConfigError, FilterItemsThatAreJunk) {
  for (const std::string junk : {"", " ", "-", "-3", "3-", "-3-5", "+3", "a", "4-6-8", "1,2", "0x10", "1.5", "3 4",
                                 "1:2", "9223372036854775808", "0-9223372036854775808"}) {
    EXPECT_EQ(error_of_step('"' + junk + '"'), "config.json: step[1]: found \"" + junk + '"' + kItems);
  }
}

TEST(ConfigError, FilterThatIsNoList) {
  EXPECT_EQ(error_of_text(R"({"dump_path": "d", "rank": 0})"),
            R"(config.json: rank: found int 0, allowed is a list such as [0, "3-5"])");
  EXPECT_THAT(error_of_text(R"({"dump_path": "d", "rank": [{}]})"),
              StartsWith("config.json: rank[0]: found an object, allowed are whole numbers"));
}

TEST(ConfigError, FlagsThatAreNoBool) {
  EXPECT_EQ(error_of_text(R"({"dump_path": "d", "async_dump": "true"})"),
            R"(config.json: async_dump: found "true", allowed are true and false)");
  EXPECT_EQ(error_of_text(R"({"dump_path": "d", "dump_enable": 0})"),
            "config.json: dump_enable: found int 0, allowed are true and false");
}

TEST(ConfigError, SummaryMode) {
  EXPECT_EQ(error_of_text(R"({"dump_path": "d", "statistics": {"summary_mode": "xor_checksum"}})"),
            R"(config.json: statistics.summary_mode: found "xor_checksum", allowed are "statistics" and "md5")");
  EXPECT_EQ(error_of_text(R"({"dump_path": "d", "statistics": {"summary_mode": 5}})"),
            "config.json: statistics.summary_mode: found int 5, allowed is text in double quotes");
}

TEST(ConfigError, SectionsThatAreNoObject) {
  EXPECT_EQ(error_of_text(R"({"dump_path": "d", "statistics": "md5"})"),
            R"(config.json: statistics: found "md5", allowed is an object: {...})");
  EXPECT_EQ(error_of_text(R"({"dump_path": "d", "tensor": []})"),
            "config.json: tensor: found a list, allowed is an object: {...}");
}

TEST(ConfigError, RootThatIsNoObject) {
  EXPECT_EQ(error_of_text("[]"), "config.json: found a list, allowed is an object: {...}");
  EXPECT_EQ(error_of_text("3"), "config.json: found int 3, allowed is an object: {...}");
}

TEST(ConfigError, LongTextIsCut) {
  const std::string message = error_of_arguments(with_task(std::string(10'000, 'x')));
  EXPECT_LT(message.size(), 300U);
  EXPECT_THAT(message, HasSubstr("xxx...\""));
}

TEST(ConfigFile, SyntaxErrorHasLineAndColumn) {
  EXPECT_THAT(error_of_text("{\n  \"task\": \"tensor\"\n  \"level\": \"debug\"\n}"),
              StartsWith("config.json:3:3: expected ',' or '}'"));
}

TEST(ConfigFile, Empty) {
  EXPECT_THAT(error_of_text(""), StartsWith("config.json: the file is empty"));
  EXPECT_THAT(error_of_text(" \n\t"), StartsWith("config.json: the file is empty"));
  EXPECT_THAT(error_of_text("\xEF\xBB\xBF"), StartsWith("config.json: the file is empty"));
}

TEST(ConfigFile, MissingOrNotAFile) {
  const TemporaryConfig file;
  EXPECT_EQ(error_of_path(file.folder() + "/none.json"), "config.json: cannot be read: No such file or directory");
  EXPECT_THAT(error_of_path(file.folder()), StartsWith("config.json: cannot be read: it is a directory"));
  EXPECT_EQ(error_of_path(file.path() + "/x.json"), "config.json: cannot be read: Not a directory");
  EXPECT_EQ(error_of_path("/dev/null"), "config.json: cannot be read: it is not a regular file");
}

TEST(ConfigFile, LinkLoop) {
  const TemporaryConfig file;
  const std::string link = file.folder() + "/loop.json";
  std::filesystem::create_symlink(link, link);
  EXPECT_EQ(error_of_path(link), "config.json: cannot be read: Too many levels of symbolic links");
}

// Gives up the superuser's right to read every file while it lives.
class OrdinaryUser {
 public:
  OrdinaryUser() {
    constexpr uid_t kNobody = 65534;
    if (was_ == 0 && seteuid(kNobody) != 0) throw std::runtime_error("seteuid failed");
  }
  ~OrdinaryUser() {
    if (was_ == 0 && seteuid(was_) != 0) std::abort();
  }
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;

 private:
  uid_t was_ = geteuid();
};

TEST(ConfigFile, Unreadable) {
  const TemporaryConfig file;
  std::filesystem::permissions(file.folder(), std::filesystem::perms::others_exec, std::filesystem::perm_options::add);
  std::filesystem::permissions(file.path(), std::filesystem::perms::none);
  const OrdinaryUser user;
  EXPECT_EQ(error_of_path(file.path()), "config.json: cannot be read: Permission denied");
}

TEST(ConfigFile, NulInPath) {
  const std::string path("a\0b", 3);
  EXPECT_EQ(config_error([&] { static_cast<void>(load_config(path)); }, ""),
            R"(argument config_path: found "a\x00b", allowed is a path without NUL bytes)");
}

TEST(ConfigFile, TooLargeForAConfig) {
  const TemporaryConfig file;
  std::filesystem::resize_file(file.path(), 10'000'001);
  EXPECT_THAT(error_of_path(file.path()), HasSubstr("it has more than 10000000 bytes, wanted is a file such as"));
  std::filesystem::resize_file(file.path(), 10'000'000);  // is read, but NUL bytes are no JSON
  EXPECT_THAT(error_of_path(file.path()), EndsWith("found a NUL byte"));
}

}  // namespace
}  // namespace msprobe
