#include "session/config_watch.h"

#include <gmock/gmock.h>

#include <fstream>

#include "temporary_folder.h"

namespace msprobe {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class ConfigWatchTest : public testing::Test {
 protected:
  // Writes the file with a modification time that differs from the last one.
  void write(const std::string& text) {
    std::ofstream(path_) << text;
    std::filesystem::last_write_time(path_, std::filesystem::file_time_type{} + std::chrono::seconds(++seconds_));
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.path() / "config.json";
  int seconds_ = 0;
  ErrorBook errors_{false};
};

TEST_F(ConfigWatchTest, FollowsTheFile) {
  write(R"({"dump_enable": false})");
  ConfigWatch watch(path_, false);
  EXPECT_FALSE(watch.refresh(errors_));
  write(R"({"dump_enable": true})");
  EXPECT_TRUE(watch.refresh(errors_));
  EXPECT_TRUE(watch.enabled());
  write(R"({"dump_enable": false})");
  EXPECT_FALSE(watch.refresh(errors_));
}

TEST_F(ConfigWatchTest, WithoutTheKeySavingIsOn) {
  write(R"({"dump_enable": false})");
  ConfigWatch watch(path_, false);
  write("{}");
  EXPECT_TRUE(watch.refresh(errors_));
}

TEST_F(ConfigWatchTest, AHalfWrittenFileLeavesTheStateAndWarnsOnce) {
  write(R"({"dump_enable": false})");
  ConfigWatch watch(path_, false);
  write(R"({"dump_ena)");
  EXPECT_FALSE(watch.refresh(errors_));
  write(R"({"dump_enable": tr)");
  EXPECT_FALSE(watch.refresh(errors_));
  const auto messages = errors_.take_messages();
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_THAT(messages[0].text, HasSubstr("dump_enable stays false"));
  write(R"({"dump_enable": true})");
  EXPECT_TRUE(watch.refresh(errors_));
}

TEST_F(ConfigWatchTest, ARemovedFileLeavesTheState) {
  write("{}");
  ConfigWatch watch(path_, true);
  std::filesystem::remove(path_);
  EXPECT_TRUE(watch.refresh(errors_));
}

TEST_F(ConfigWatchTest, WithoutAFileTheStateIsThatOfTheStart) {
  ConfigWatch watch("", true);
  EXPECT_TRUE(watch.refresh(errors_));
}

}  // namespace
}  // namespace msprobe
