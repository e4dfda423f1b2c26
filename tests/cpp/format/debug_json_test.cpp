#include "format/debug_json.h"

#include <gmock/gmock.h>
#include <malloc.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "scratch.h"

namespace msprobe {
namespace {

namespace fs = std::filesystem;
using test::bytes_of;
using test::count_entries;
using test::error_of;
using test::FileSizeLimit;
using test::read_file;
using test::ScratchFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::size_t kPage = 4096;
constexpr std::string_view kClosing = "\n }\n}\n";
const DebugJsonHeader kHeader{"statistics", "debug", "pytorch", ""};
constexpr std::string_view kHeaderText =
    "{\n \"task\": \"statistics\",\n \"level\": \"debug\",\n \"framework\": \"pytorch\",\n \"dump_data_dir\": null,\n"
    " \"data\": {\n";

std::string spaces(std::size_t count) { return std::string(count, ' '); }

std::string numbered(std::string prefix, std::uint64_t number) { return prefix += std::to_string(number); }

// A JSON string of `count` characters.
std::string quoted(std::size_t count, char c) {
  std::string text(count + 2, c);
  text.front() = text.back() = '"';
  return text;
}

// `"name": "xxx"`, `bytes` long altogether, and the separator before it if asked for.
std::string record_of(const std::string& name, std::size_t bytes, bool with_separator = false) {
  const std::string start = "\"" + name + "\": \"";
  std::string record = with_separator ? ",\n" : "";
  record += start;
  record.append(bytes - start.size() - 1, 'x');
  record += '"';
  return record;
}

class DebugJsonTest : public ::testing::Test {
 protected:
  [[nodiscard]] fs::path path() const { return scratch_ / "debug.json"; }
  [[nodiscard]] std::string content() const { return read_file(path()); }

  // The `data` of the file. Fails the test if it is not JSON.
  const rapidjson::Value& data() {
    document_.Parse<rapidjson::kParseNanAndInfFlag>(content().c_str());
    if (document_.HasParseError()) {
      throw std::runtime_error(std::string(rapidjson::GetParseError_En(document_.GetParseError())) + " at offset " +
                               std::to_string(document_.GetErrorOffset()));
    }
    return document_["data"];
  }

  std::vector<std::string> keys() {
    std::vector<std::string> names;
    for (const auto& member : data().GetObject()) names.emplace_back(member.name.GetString());
    return names;
  }

  // Offset of `text`, which must be in the file exactly once.
  [[nodiscard]] std::size_t offset_of(const std::string& text) const {
    const std::string file = content();
    const std::size_t at = file.find(text);
    EXPECT_NE(at, std::string::npos) << text;
    EXPECT_EQ(file.find(text, at + 1), std::string::npos) << text;
    return at;
  }

  [[nodiscard]] bool is_within_page(const std::string& text) const {
    return offset_of(text) % kPage + text.size() <= kPage;
  }

  const ScratchFolder scratch_;
  const Directory folder_ = scratch_.open();

 private:
  rapidjson::Document document_;
};

TEST_F(DebugJsonTest, EmptyFileHasHeaderSpacesAndClosingInOnePage) {
  const DebugJson json(folder_, kHeader);
  EXPECT_EQ(content(),
            std::string(kHeaderText) + spaces(kPage - kHeaderText.size() - kClosing.size()) + std::string(kClosing));
  EXPECT_TRUE(keys().empty());
  EXPECT_EQ(count_entries(scratch_.path()), 1U);
}

TEST_F(DebugJsonTest, HeaderIsEscapedAndMayBeLongerThanAPage) {
  const std::string folder = "/dump \"1\"/\xE4\xB8\xAD/" + std::string(5000, 'd');
  DebugJson json(folder_, {"tensor", "debug", "mindspore", folder});
  json.append({"\"x.0.debug\": 1"});
  EXPECT_THAT(keys(), ElementsAre("x.0.debug"));
  rapidjson::Document document;
  document.Parse(content().c_str());
  EXPECT_STREQ(document["task"].GetString(), "tensor");
  EXPECT_STREQ(document["framework"].GetString(), "mindspore");
  EXPECT_EQ(document["dump_data_dir"].GetString(), folder);
}

TEST_F(DebugJsonTest, RecordsFollowEachOtherByteForByte) {
  DebugJson json(folder_, kHeader);
  json.append({"\"a\": 1"});
  json.append({"\"b\": ", Slot{9}, ",\n\"c\": 3"});
  const std::string records = "\"a\": 1,\n\"b\": null     ,\n\"c\": 3";
  EXPECT_EQ(content(), std::string(kHeaderText) + records +
                           spaces(kPage - kHeaderText.size() - records.size() - kClosing.size()) +
                           std::string(kClosing));
  EXPECT_THAT(keys(), ElementsAre("a", "b", "c"));
}

TEST_F(DebugJsonTest, FailsIfTheFileExists) {
  const DebugJson first(folder_, kHeader);
  const std::string before = content();
  std::string message;
  EXPECT_EQ(error_of([&] { DebugJson(folder_, {"tensor", "", "", ""}); }, &message), EEXIST);
  EXPECT_EQ(message, "create file: \"" + path().string() + "\": File exists");
  EXPECT_EQ(content(), before);
  EXPECT_EQ(count_entries(scratch_.path()), 1U);
}

TEST_F(DebugJsonTest, RecordThatWouldCrossAPageStartsTheNext) {
  DebugJson json(folder_, kHeader);
  const std::string first = record_of("a", kPage - kHeaderText.size());  // ends with its page
  json.append({first});
  EXPECT_EQ(content().size(), 2 * kPage) << "the closing braces did not fit behind it";
  const std::string second = record_of("b", 3000, true);
  json.append({second.substr(2)});
  const std::string third = record_of("c", 2000, true);
  json.append({third.substr(2)});
  EXPECT_EQ(content().size(), 4 * kPage);
  EXPECT_EQ(offset_of(first), kHeaderText.size());
  EXPECT_EQ(offset_of(second), kPage);
  EXPECT_EQ(offset_of(third), 2 * kPage);
  EXPECT_EQ(content().substr(kPage + second.size(), kPage - second.size()), spaces(kPage - second.size()));
  EXPECT_THAT(keys(), ElementsAre("a", "b", "c"));
}

TEST_F(DebugJsonTest, DoublesAndKeepsTheBytes) {
  DebugJson json(folder_, kHeader);
  std::string before = content();
  std::size_t doublings = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    json.append({record_of(numbered("r", i), 300)});
    const std::string after = content();
    if (after.size() != before.size()) {
      ++doublings;
      EXPECT_EQ(after.size(), 2 * before.size());
    }
    const std::string_view kept = std::string_view(before).substr(0, before.find_last_of('"') + 1);
    EXPECT_THAT(after, StartsWith(kept));
    before = after;
  }
  EXPECT_EQ(doublings, 5U);  // 400 * 302 bytes: 128 KiB
  EXPECT_EQ(keys().size(), 400U);
  EXPECT_EQ(count_entries(scratch_.path()), 1U);
}

TEST_F(DebugJsonTest, IsValidAfterEachAppendOfAnySize) {
  std::mt19937 random(1);
  std::uniform_int_distribution<std::size_t> small(10, 400);
  std::uniform_int_distribution<std::size_t> large(3900, 9000);
  DebugJson json(folder_, kHeader);
  std::vector<std::string> expected;
  for (std::uint64_t i = 0; i < 150; ++i) {
    expected.push_back(numbered("r", i));
    const std::string record = record_of(expected.back(), i % 5 == 4 ? large(random) : small(random));
    json.append({record});
    ASSERT_EQ(keys(), expected);
    ASSERT_EQ(content().size() % kPage, 0U);
    if (record.size() + 2 <= kPage) {
      ASSERT_TRUE(is_within_page(i == 0 ? record : ",\n" + record)) << i;
    }
  }
}

TEST_F(DebugJsonTest, TakesRecordsAroundThePageSize) {
  DebugJson json(folder_, kHeader);
  std::vector<std::string> expected;
  for (std::size_t bytes = kPage - 12; bytes <= kPage + 4; ++bytes) {
    expected.push_back(numbered("r", bytes));
    json.append({record_of(expected.back(), bytes)});
    ASSERT_EQ(keys(), expected);
    EXPECT_EQ(data()[expected.back().c_str()].GetStringLength(), bytes - expected.back().size() - 6);
    if (bytes + 2 <= kPage) {
      EXPECT_TRUE(is_within_page(record_of(expected.back(), bytes, expected.size() > 1)));
    }
  }
}

RecordText with_slot(const std::string& key, std::size_t capacity) { return {"\"" + key + "\": ", Slot{capacity}}; }

TEST_F(DebugJsonTest, ACompanionStandsDirectlyBehindItsRecordHoweverLargeTheyAre) {
  DebugJson json(folder_, kHeader);
  std::vector<std::string> expected;
  for (const std::size_t bytes : {20U, 1000U, 2500U, 4000U, 4095U, 5000U}) {
    for (const std::size_t capacity : {4U, 1000U, 2500U, 4000U, 5000U}) {
      const std::string name = "r" + std::to_string(bytes) + "." + std::to_string(capacity);
      const auto slots = json.append({record_of(name, bytes)}, with_slot(name + "_grad", capacity));
      ASSERT_EQ(slots.size(), 1U);
      json.fill(slots[0], quoted(capacity - 2, 'g'));
      expected.push_back(name);
      expected.push_back(name + "_grad");
      ASSERT_EQ(keys(), expected);
    }
  }
}

TEST_F(DebugJsonTest, ACompanionThatFillsItsOwnPageNeedsNoNewFile) {
  DebugJson json(folder_, kHeader);
  json.append({record_of("grow", 5 * kPage)});  // room for what follows
  const auto inode = [&] {
    struct stat status {};
    stat(path().c_str(), &status);
    return status.st_ino;
  };
  const auto before = inode();
  json.append({record_of("a", 3000)}, with_slot("a_grad", 3000));
  EXPECT_EQ(inode(), before);
  EXPECT_THAT(keys(), ElementsAre("grow", "a", "a_grad"));
}

TEST_F(DebugJsonTest, TakesRecordOfAMegabyteAndGoesOn) {
  DebugJson json(folder_, kHeader);
  json.append({"\"a\": 1"});
  json.append({record_of("big", 1'000'000)});
  json.append({"\"b\": ", Slot{20}});
  EXPECT_THAT(keys(), ElementsAre("a", "big", "b"));
  EXPECT_EQ(content().size(), 256 * kPage);
}

TEST_F(DebugJsonTest, SlotIsFilledInPlace) {
  DebugJson json(folder_, kHeader);
  const auto slots = json.append({"\"x\": 1,\n\"x_grad\": [", Slot{30}, ", ", Slot{1}, "]"});
  ASSERT_EQ(slots.size(), 2U);
  EXPECT_TRUE(data()["x_grad"][0].IsNull());
  std::string expected = content();
  json.fill(slots[0], "{\"Max\": NaN}");
  expected.replace(expected.find("null", kHeaderText.size()), 12, "{\"Max\": NaN}");
  EXPECT_EQ(content(), expected);
  json.fill(slots[1], "7");
  expected.replace(expected.find("null", kHeaderText.size()), 4, "7   ");
  EXPECT_EQ(content(), expected);
  EXPECT_EQ(data()["x_grad"][1].GetInt(), 7);
}

TEST_F(DebugJsonTest, SlotKeepsItsPlaceOverDoublings) {
  DebugJson json(folder_, kHeader);
  const auto slots = json.append({"\"early\": ", Slot{10}});
  for (std::uint64_t i = 0; i < 100; ++i) json.append({record_of(numbered("r", i), 500)});
  json.fill(slots[0], "true");
  EXPECT_TRUE(data()["early"].GetBool());
}

TEST_F(DebugJsonTest, SlotsOfALargeRecordDoNotCrossPages) {
  DebugJson json(folder_, kHeader);
  RecordText record{"\"x\": ["};
  for (int i = 0; i < 100; ++i) {
    record.emplace_back(i == 0 ? "" : ", ");
    record.emplace_back(Slot{300});
  }
  record.emplace_back("]");
  const auto slots = json.append(record);
  ASSERT_EQ(slots.size(), 100U);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const std::string text = numbered("\"", i) + std::string(290, '-') + "\"";
    const auto size_before = fs::file_size(path());
    json.fill(slots[i], text);
    EXPECT_TRUE(is_within_page(text));
    EXPECT_EQ(fs::file_size(path()), size_before);
  }
  EXPECT_THAT(data()["x"][99].GetString(), StartsWith("99--"));
}

TEST_F(DebugJsonTest, LongTextMovesWhatFollowsByWholePages) {
  DebugJson json(folder_, kHeader);
  const auto slots = json.append({"\"a\": ", Slot{10}, ",\n\"b\": ", Slot{10}, ",\n\"c\": ", Slot{10}});
  const std::size_t offset_of_c = offset_of("\"c\"");
  json.fill(slots[1], quoted(5000, 'b'));
  EXPECT_EQ(offset_of("\"c\""), offset_of_c + 2 * kPage);
  json.fill(slots[0], "1");
  json.fill(slots[2], "3");
  json.append({"\"d\": 4"});
  EXPECT_EQ(data()["a"].GetInt(), 1);
  EXPECT_EQ(data()["b"].GetStringLength(), 5000U);
  EXPECT_EQ(data()["c"].GetInt(), 3);
  EXPECT_EQ(data()["d"].GetInt(), 4);
}

TEST_F(DebugJsonTest, SlotLargerThanAPageTakesShortAndLongText) {
  DebugJson json(folder_, kHeader);
  const auto slots = json.append({"\"a\": ", Slot{10'000}, ",\n\"b\": ", Slot{10'000}, ",\n\"c\": ", Slot{10'000}});
  json.fill(slots[0], "1");
  json.fill(slots[1], quoted(9'000, 'x'));
  json.fill(slots[2], quoted(20'000, 'x'));
  EXPECT_EQ(data()["a"].GetInt(), 1);
  EXPECT_EQ(data()["b"].GetStringLength(), 9'000U);
  EXPECT_EQ(data()["c"].GetStringLength(), 20'000U);
}

TEST_F(DebugJsonTest, SlotIsFilledOnlyOnce) {
  DebugJson json(folder_, kHeader);
  const auto slots = json.append({"\"a\": ", Slot{10}, ",\n\"b\": ", Slot{10}});
  json.fill(slots[0], "1");
  json.forget(slots[0]);
  json.forget(slots[1]);
  json.forget(12345);
  EXPECT_THROW(json.fill(slots[0], "2"), StateError);
  EXPECT_THROW(json.fill(slots[1], "2"), StateError);
  EXPECT_EQ(data()["a"].GetInt(), 1);
  EXPECT_TRUE(data()["b"].IsNull());
}

TEST_F(DebugJsonTest, SuspendGivesTheDescriptorUpUntilTheNextWrite) {
  const auto descriptors = [] { return count_entries("/proc/self/fd"); };
  DebugJson json(folder_, kHeader);
  const std::size_t without_file = descriptors();
  const auto slots = json.append({"\"a\": ", Slot{10}});
  EXPECT_EQ(descriptors(), without_file + 1);
  json.suspend();
  json.suspend();
  EXPECT_EQ(descriptors(), without_file);
  json.fill(slots[0], "1");
  json.suspend();
  json.append({record_of("b", 10'000)});
  EXPECT_EQ(data()["a"].GetInt(), 1);
  EXPECT_THAT(keys(), ElementsAre("a", "b"));
}

TEST_F(DebugJsonTest, DeletedOrReplacedFileIsAnErrorAfterSuspend) {
  DebugJson json(folder_, kHeader);
  const auto slots = json.append({"\"a\": ", Slot{10}});
  json.suspend();
  fs::rename(path(), scratch_ / "moved");
  EXPECT_EQ(error_of([&] { json.append({"\"b\": 1"}); }), ENOENT);
  fs::create_symlink(scratch_ / "moved", path());
  EXPECT_EQ(error_of([&] { json.fill(slots[0], "1"); }), ELOOP);
  fs::remove(path());
  std::ofstream(path()) << "not ours";
  EXPECT_EQ(error_of([&] { json.append({record_of("b", 10'000)}); }), ESTALE);
  EXPECT_EQ(content(), "not ours");
  fs::rename(scratch_ / "moved", path());
  json.fill(slots[0], "1");
  EXPECT_EQ(data()["a"].GetInt(), 1);
}

TEST_F(DebugJsonTest, DeletedFileComesBackWithAllItsRecords) {
  DebugJson json(folder_, kHeader);
  json.append({"\"a\": 1"});
  fs::remove(path());
  json.append({"\"b\": 2"});
  json.suspend();
  EXPECT_THAT(keys(), ElementsAre("a", "b"));
  json.append({"\"c\": 2"});
  fs::remove(path());
  for (int i = 0; i < 64; ++i) json.append({"\"d" + std::to_string(i) + "\": 1"});
  EXPECT_EQ(keys().size(), 67U);
}

TEST_F(DebugJsonTest, DeletedFolderIsAnError) {
  DebugJson json(folder_, kHeader);
  json.append({"\"a\": 1"});
  fs::remove_all(path().parent_path());
  EXPECT_THROW(json.suspend(), IoError);
  EXPECT_THROW(json.append({"\"b\": 2"}), IoError);
}

TEST_F(DebugJsonTest, ShortWriteOfARecordIsTakenBack) {
  DebugJson json(folder_, kHeader);
  json.append({"\"a\": 1"});
  const std::string before = content();
  const std::size_t cursor = before.find("\"a\": 1") + 6;
  std::string message;
  {
    const FileSizeLimit limit(cursor + 20);
    EXPECT_EQ(error_of([&] { json.append({record_of("b", 100)}); }, &message), EFBIG);
  }
  EXPECT_EQ(message, "write: \"" + path().string() + "\": File too large");
  EXPECT_EQ(content(), before);
  json.append({"\"c\": 3"});
  EXPECT_THAT(keys(), ElementsAre("a", "c"));
}

TEST_F(DebugJsonTest, ShortWriteOfASlotIsTakenBack) {
  DebugJson json(folder_, kHeader);
  const auto slots = json.append({"\"a\": ", Slot{100}});
  const std::string before = content();
  const std::string text = quoted(60, 'y');
  for (const std::size_t written : {0, 2, 20}) {
    const FileSizeLimit limit(before.find("null", kHeaderText.size()) + written);
    EXPECT_EQ(error_of([&] { json.fill(slots[0], text); }), EFBIG);
    EXPECT_EQ(content(), before) << written;
  }
  json.fill(slots[0], text);
  EXPECT_EQ(data()["a"].GetStringLength(), 60U);
}

TEST_F(DebugJsonTest, FailedRewriteLeavesTheFileAsItWas) {
  DebugJson json(folder_, kHeader);
  const auto slots = json.append({"\"a\": ", Slot{10}});
  const std::string before = content();
  const std::string long_text = quoted(10'000, 'y');
  {
    const FileSizeLimit limit(2 * kPage);
    EXPECT_EQ(error_of([&] { json.append({record_of("b", 100'000)}); }), EFBIG);
    EXPECT_EQ(error_of([&] { json.fill(slots[0], long_text); }), EFBIG);
    EXPECT_EQ(content(), before);
    EXPECT_EQ(count_entries(scratch_.path()), 1U);
  }
  json.fill(slots[0], long_text);
  EXPECT_EQ(data()["a"].GetStringLength(), 10'000U);
}

TEST_F(DebugJsonTest, FullDiskLosesNothingAndWritingGoesOnOnceThereIsSpace) {
  const fs::path disk = scratch_ / "disk";
  fs::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=256k") != 0) {
    GTEST_SKIP() << "cannot mount a tmpfs here: " << std::generic_category().message(errno);
  }
  const std::unique_ptr<const fs::path, void (*)(const fs::path*)> mounted(
      &disk, [](const fs::path* where) { umount2(where->c_str(), MNT_DETACH); });
  const Directory folder = Directory::create_root(disk);
  DebugJson json(folder, kHeader);
  std::ofstream(disk / "filler") << std::string(200 * 1024, 'f');
  std::vector<std::string> expected;
  std::string message;
  int error = 0;
  while (error == 0 && expected.size() < 10'000) {
    const std::string name = numbered("r", expected.size());
    error = error_of([&] { json.append({record_of(name, 500)}); }, &message);
    if (error == 0) expected.push_back(name);
  }
  EXPECT_EQ(error, ENOSPC);
  EXPECT_EQ(message, "write: \"" + (disk / "debug.json").string() + "\": No space left on device");
  EXPECT_GT(expected.size(), 10U);
  EXPECT_EQ(count_entries(disk), 2U) << "no temporary file is left";
  const auto names_on_disk = [&] {
    rapidjson::Document document;
    document.Parse(read_file(disk / "debug.json").c_str());
    std::vector<std::string> names;
    for (const auto& member : document["data"].GetObject()) names.emplace_back(member.name.GetString());
    return names;
  };
  EXPECT_EQ(names_on_disk(), expected);
  fs::remove(disk / "filler");
  json.append({"\"after\": 1"});
  expected.emplace_back("after");
  EXPECT_EQ(names_on_disk(), expected);
}

TEST_F(DebugJsonTest, MemoryDoesNotGrowWithRecords) {
  DebugJson json(folder_, kHeader);
  const auto append = [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto slots = json.append({numbered("\"r", i) + "\": [", Slot{20}, ", ", Slot{20}, "]"});
      json.fill(slots[0], "1.5");
      json.forget(slots[1]);
    }
  };
  append(100);
  const std::size_t before = mallinfo2().uordblks;
  append(20'000);
  EXPECT_LT(mallinfo2().uordblks, before + 4096);
}

TEST_F(DebugJsonTest, ThreadsAppendAndFillAtOnce) {
  DebugJson json(folder_, kHeader);
  constexpr int kThreads = 4;
  constexpr int kRecords = 300;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&json, t] {
        for (int i = 0; i < kRecords; ++i) {
          const std::string key = std::to_string(t) + "/" + std::to_string(i);
          const auto slots = json.append({"\"" + key + "\": ", Slot{16}});
          json.fill(slots[0], "\"" + key + std::string(i % 50 == 0 ? 40 : 0, '!') + "\"");
        }
      });
    }
  }
  EXPECT_EQ(keys().size(), static_cast<std::size_t>(kThreads * kRecords));
  for (const auto& member : data().GetObject()) {
    EXPECT_THAT(member.value.GetString(), StartsWith(member.name.GetString()));
  }
}

// What the killed process had finished.
struct Progress {
  std::atomic<std::uint64_t> appended = 0;
  std::atomic<std::uint64_t> filled = 0;
};

// Appends records and fills their slots until it is killed: small ones, some of about a page, few large ones, and now
// and then a text that is longer than its slot.
[[noreturn]] void write_until_killed(const Directory& folder, Progress& progress) {
  DebugJson json(folder, kHeader);
  for (std::uint64_t i = 0;; ++i) {
    const std::size_t padding = i % 41 == 40 ? 100'000 : i % 5 == 4 ? 3'900 : 150;
    const std::string number = std::to_string(i);
    const auto slots =
        json.append({"\"r" + number + "\": [" + number + ", \"" + std::string(padding, 'x') + "\", ", Slot{200}, "]"});
    progress.appended = i + 1;
    json.fill(slots[0], quoted(i % 67 == 66 ? 300 : 180, 'g'));
    progress.filled = i + 1;
  }
}

TEST_F(DebugJsonTest, IsValidAndCompleteAfterSigkillAtAnyMoment) {
  void* const memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const progress = static_cast<Progress*>(memory);
  std::mt19937 random(std::random_device{}());
  std::uniform_int_distribution<std::uint64_t> goal_distribution(1, 200);
  std::uniform_int_distribution<int> delay_ns(0, 200'000);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (int round = 0; round < 60; ++round) {
    new (memory) Progress();
    fs::remove(path());
    const std::uint64_t goal = goal_distribution(random);
    const pid_t child = fork();
    if (child == 0) write_until_killed(folder_, *progress);
    while (progress->appended < goal && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    const auto moment = std::chrono::steady_clock::now() + std::chrono::nanoseconds(delay_ns(random));
    while (std::chrono::steady_clock::now() < moment) {
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    ASSERT_GE(progress->appended, goal) << "the writer came to a halt";

    const rapidjson::Value* records = nullptr;
    ASSERT_NO_THROW(records = &data()) << "round " << round << ", " << progress->appended << " appended";
    ASSERT_GE(records->MemberCount(), progress->appended);
    ASSERT_LE(records->MemberCount(), progress->appended + 1);
    std::uint64_t number = 0;
    for (const auto& member : records->GetObject()) {
      ASSERT_EQ(member.name.GetString(), numbered("r", number));
      ASSERT_EQ(member.value[0].GetUint64(), number);
      if (number < progress->filled) {
        ASSERT_TRUE(member.value[2].IsString()) << number;
      }
      ++number;
    }
  }
  munmap(memory, sizeof(Progress));
}

}  // namespace
}  // namespace msprobe
