#include "format/zip_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "archive.h"
#include "format/read_error.h"
#include "tensor_file_support.h"

namespace msprobe {
namespace {

using test::archive;
using test::bytes;
using test::Part;
using test::patched;
using test::ScratchFile;
using testing::HasSubstr;

std::string content_of(const ZipReader& zip, std::string_view name) {
  const ZipMember* member = zip.find(name);
  if (member == nullptr) return "none";
  const std::vector<std::byte> content = zip.content(*member, 1U << 20U);
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

// The message of the FormatError that reading `text` and all its entries ends with.
std::string damage(const std::string& text) {
  const ScratchFile scratch(text);
  try {
    const InputFile file(scratch.path());
    const ZipReader zip(file);
    for (const ZipMember& member : zip.members()) zip.verify(member);
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), HasSubstr(scratch.path()));
    return error.what();
  }
  return "none";
}

TEST(ZipReader, ReadsEveryWayToWriteAnEntry) {
  const std::string text = test::pattern(3000);
  for (const bool deflated : {false, true}) {
    for (const bool descriptor : {false, true}) {
      for (const bool zip64 : {false, true}) {
        const ScratchFile scratch(archive({{"top/b", text, deflated, descriptor, zip64},
                                           {"top/", ""},
                                           {"top/a", "short", deflated, descriptor, zip64},
                                           {"top/none", "", deflated, descriptor, zip64}},
                                          "a comment with PK\x05\x06 in it"));
        const InputFile file(scratch.path());
        const ZipReader zip(file);
        ASSERT_EQ(zip.members().size(), 4U);
        EXPECT_EQ(content_of(zip, "top/a"), "short");
        EXPECT_EQ(content_of(zip, "top/b"), text);
        EXPECT_EQ(content_of(zip, "top/none"), "");
        EXPECT_EQ(zip.find("top/c"), nullptr);
        for (const ZipMember& member : zip.members()) EXPECT_NO_THROW(zip.verify(member));
      }
    }
  }
}

TEST(ZipReader, ReadsStoredEntriesWhereTheLocalHeaderEnds) {
  const ZipEntry entry{"x", 5, 0x3610A686, 0};  // the CRC-32 of "hello"
  std::string text = zip_local_header(entry) + "hello";
  text += zip_directory({&entry, 1}, text.size());
  const ScratchFile scratch(text);
  const InputFile file(scratch.path());
  const ZipReader zip(file);
  EXPECT_EQ(zip.members()[0].data_offset, kZipAlignment);
  EXPECT_EQ(content_of(zip, "x"), "hello");
}

TEST(ZipReader, ReadsAnEmptyArchive) {
  const ScratchFile scratch(archive({}));
  const InputFile file(scratch.path());
  EXPECT_TRUE(ZipReader(file).members().empty());
}

TEST(ZipReader, DoesNotCheckACrcThatWasNotRecorded) {
  // As torch.serialization.set_crc32_options(False) leaves it.
  const std::string crc = bytes("\x86\xA6\x10\x36");
  const std::string zeros(4, '\0');
  EXPECT_EQ(damage(patched(patched(archive({{"x", "hello"}}), crc, zeros), crc, zeros)), "none");
}

TEST(ZipReader, NamesTheDamagedEntry) {
  EXPECT_THAT(damage(patched(archive({{"a", "other"}, {"b/x", "hello"}}), "hello", "hellO")), HasSubstr("\"b/x\""));
  const std::string packed = test::deflate(std::string(100, 'x') + "hello");
  EXPECT_THAT(damage(patched(archive({{"x", std::string(100, 'x') + "hello", true}}), packed,
                             std::string(packed.size(), '\xFF'))),
              HasSubstr("\"x\""));
}

TEST(ZipReader, RefusesAFileThatIsCutOff) {
  const std::string text = archive({{"x", "hello"}});
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_THAT(damage(text.substr(0, length)), HasSubstr("end record")) << length;
  }
}

TEST(ZipReader, RefusesEncryptedSplitAndUnknownEntries) {
  const std::string text = archive({{"x", "hello"}});
  const std::string head = bytes("PK\x01\x02\x2D\x00\x2D\x00");
  EXPECT_THAT(damage(patched(text, head + bytes("\x00\x00"), head + bytes("\x01\x00"))), HasSubstr("encrypted"));
  EXPECT_THAT(damage(patched(text, head + bytes("\x00\x00\x00\x00"), head + bytes("\x00\x00\x0C\x00"))),
              HasSubstr("method 12"));
  EXPECT_THAT(damage(patched(text, bytes("PK\x05\x06\x00\x00"), bytes("PK\x05\x06\x01\x00"))), HasSubstr("split"));
}

TEST(ZipReader, RefusesTwoEntriesOfOneName) {
  EXPECT_THAT(damage(archive({{"x", "1"}, {"y", "2"}, {"x", "3"}})), HasSubstr("two entries \"x\""));
}

TEST(ZipReader, RefusesEntriesThatOverlap) {
  // The second entry's header is part of the first one's data.
  const std::string inner = archive({{"y", "2"}});
  std::string text = archive({{"x", inner}});
  const std::size_t inner_begin = 31;
  const std::size_t directory = text.size() - 22 - 47;
  std::string second = inner.substr(inner.size() - 22 - 47, 47);
  second[42] = static_cast<char>(inner_begin);
  text.insert(directory + 47, second);
  text = patched(text, bytes("\x01\x00\x01\x00\x2F\x00\x00\x00"), bytes("\x02\x00\x02\x00\x5E\x00\x00\x00"), 1);
  EXPECT_THAT(damage(text), HasSubstr("overlap"));
}

TEST(ZipReader, RefusesHeadersThatDisagree) {
  const std::string text = archive({{"name", "hello"}});
  EXPECT_THAT(damage(patched(text, "name", "nome", 0)), HasSubstr("local header"));
  EXPECT_THAT(damage(patched(text, "name", "nome", 1)), HasSubstr("local header"));
  EXPECT_THAT(damage(patched(text, bytes("\x05\x00\x00\x00\x05"), bytes("\x05\x00\x00\x00\x04"), 1)),
              HasSubstr("of 4 bytes stored in 5"));
  EXPECT_THAT(damage(patched(text, "PK\x03\x04", "PK\x03\x05")), HasSubstr("local header"));
}

TEST(ZipReader, RefusesPartsOutOfTheFile) {
  const std::string text = archive({{"x", "hello", false, false, true}});
  const std::string size(1, '\x05');
  // Size and packed size of the zip64 field in the directory, then its offset.
  const std::string zeros(7, '\0');
  EXPECT_THAT(damage(patched(text, size + zeros + size + zeros + std::string(8, '\0'),
                             std::string(16, '\x7F') + std::string(8, '\0'))),
              HasSubstr("before the central directory"));
  EXPECT_THAT(damage(patched(text, size + zeros + size + zeros + std::string(8, '\0'),
                             size + zeros + size + zeros + std::string(8, '\xFF'))),
              HasSubstr("before the central directory"));
  const std::string plain = archive({{"x", "hello"}});
  std::string far = plain;
  far[far.size() - 4] = '\x7F';
  EXPECT_THAT(damage(far), HasSubstr("central directory"));
  std::string many = plain;
  many[many.size() - 11] = '\x7F';
  EXPECT_THAT(damage(many), HasSubstr("at least 46 bytes"));
}

TEST(ZipReader, RefusesADeflatedEntryThatClaimsTooMuchBeforeItAllocates) {
  const std::string sizes = bytes("\x05\x00\x00\x00\x00\x00\x00\x00");
  const std::string text = archive({{"x", "hello", true, true, true}});
  const std::string huge = bytes("\x00\x00\x00\x00\x00\x00\x00\x10");
  const ScratchFile scratch(patched(text, sizes, huge, 1));
  const InputFile file(scratch.path());
  const ZipReader zip(file);
  EXPECT_EQ(zip.members()[0].size, std::uint64_t{1} << 60U);
  EXPECT_THROW(zip.verify(zip.members()[0]), UnsupportedFile);
  EXPECT_THROW(static_cast<void>(zip.content(zip.members()[0], std::uint64_t{1} << 62U)), FormatError);
}

TEST(ZipReader, ReadsNoMoreOfAnEntryThanAskedFor) {
  const ScratchFile scratch(archive({{"x", "hello"}}));
  const InputFile file(scratch.path());
  const ZipReader zip(file);
  EXPECT_THROW(static_cast<void>(zip.content(zip.members()[0], 4)), UnsupportedFile);
}

}  // namespace
}  // namespace msprobe
