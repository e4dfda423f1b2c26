#include "format/zip_reader.h"

#include <libdeflate.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "checksum/crc32.h"
#include "format/byte_parser.h"
#include "format/little_endian.h"
#include "format/zip.h"
#include "tensor/block_reader.h"

namespace msprobe {
namespace {

constexpr std::uint64_t kEndRecordBytes = 22;
constexpr std::uint64_t kMaxCommentBytes = 0xFFFF;
constexpr std::uint64_t kZip64LocatorBytes = 20;
constexpr std::uint64_t kZip64EndRecordBytes = 56;
constexpr std::uint64_t kCentralHeaderBytes = 46;
constexpr std::uint64_t kLocalHeaderBytes = 30;
// More than 100,000 entries; one tensor has fewer than ten.
constexpr std::uint64_t kMaxDirectoryBytes = std::uint64_t{16} << 20U;
// Source: zlib's technical details: 258 bytes for two bits.
constexpr std::uint64_t kMaxDeflateRatio = 1032;

constexpr std::uint16_t kSeeZip64Short = 0xFFFF;
constexpr std::uint16_t kMethodStored = 0;
constexpr std::uint16_t kMethodDeflated = 8;
constexpr std::uint16_t kFlagEncrypted = 1U << 0U;
constexpr std::uint16_t kFlagDataDescriptor = 1U << 3U;
constexpr std::uint16_t kFlagStronglyEncrypted = 1U << 6U;
constexpr std::uint16_t kFlagHeadersMasked = 1U << 13U;
constexpr std::uint16_t kAnyEncryption = kFlagEncrypted | kFlagStronglyEncrypted | kFlagHeadersMasked;

[[noreturn]] void fail(const InputFile& file, const std::string& found, const std::string& wanted) {
  throw FormatError(read_message(file.path(), found, wanted));
}

std::vector<std::byte> read_part(const InputFile& file, std::uint64_t offset, std::uint64_t size) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  file.read_at(offset, bytes);
  return bytes;
}

struct CentralDirectory {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t count = 0;
  std::uint64_t limit = 0;  // where the end records begin
};

std::uint64_t find_end_record(const InputFile& file) {
  const std::uint64_t tail_bytes = std::min(file.size(), kEndRecordBytes + kMaxCommentBytes);
  const std::vector<std::byte> tail = read_part(file, file.size() - tail_bytes, tail_bytes);
  for (std::uint64_t at = tail_bytes - std::min(tail_bytes, kEndRecordBytes) + 1; at-- > 0;) {
    const auto rest = std::span(tail).subspan(static_cast<std::size_t>(at));
    if (rest.size() < kEndRecordBytes || load_little_endian<std::uint32_t>(rest) != kZipEndRecord) continue;
    const auto comment_bytes = load_little_endian<std::uint16_t>(rest.subspan(kEndRecordBytes - 2));
    if (kEndRecordBytes + comment_bytes == rest.size()) return file.size() - tail_bytes + at;
  }
  fail(file, "no end record", "the end of a zip archive (is the file cut off?)");
}

// Replaces the numbers of `directory` by those of the zip64 end record, if there is one before the end record at `end`.
void read_zip64_end(const InputFile& file, std::uint64_t end, CentralDirectory& directory) {
  if (end < kZip64LocatorBytes) return;
  const std::vector<std::byte> locator_bytes = read_part(file, end - kZip64LocatorBytes, kZip64LocatorBytes);
  ByteParser locator(locator_bytes, file.path(), "zip64 locator");
  if (locator.number<std::uint32_t>() != kZip64EndLocator) return;
  locator.take(4);  // disk
  const auto record_offset = locator.number<std::uint64_t>();
  if (record_offset > end - kZip64LocatorBytes || end - kZip64LocatorBytes - record_offset < kZip64EndRecordBytes) {
    fail(file, "a zip64 end record at byte " + std::to_string(record_offset), "one before its locator");
  }
  const std::vector<std::byte> record_bytes = read_part(file, record_offset, kZip64EndRecordBytes);
  ByteParser record(record_bytes, file.path(), "zip64 end record");
  if (record.number<std::uint32_t>() != kZip64EndRecord) {
    fail(file, "something else at byte " + std::to_string(record_offset), "the zip64 end record");
  }
  record.take(28);  // size of the record, versions, disks, entries on this disk
  const auto replace = [&](std::uint64_t& number, std::uint64_t see_zip64) {
    const auto large = record.number<std::uint64_t>();
    if (number != see_zip64 && number != large) {
      fail(file, std::to_string(number) + " in the end record and " + std::to_string(large) + " in the zip64 one",
           "the same number in both");
    }
    number = large;
  };
  replace(directory.count, kSeeZip64Short);
  replace(directory.size, kZipSeeZip64);
  replace(directory.offset, kZipSeeZip64);
  directory.limit = record_offset;
}

CentralDirectory find_directory(const InputFile& file) {
  const std::uint64_t end = find_end_record(file);
  const std::vector<std::byte> bytes = read_part(file, end, kEndRecordBytes);
  ByteParser record(bytes, file.path(), "end record");
  record.take(4);  // signature
  const auto disk = record.number<std::uint32_t>();
  record.take(2);  // entries on this disk
  CentralDirectory directory;
  directory.count = record.number<std::uint16_t>();
  directory.size = record.number<std::uint32_t>();
  directory.offset = record.number<std::uint32_t>();
  directory.limit = end;
  read_zip64_end(file, end, directory);
  if (disk != 0 && disk != kZipSeeZip64) fail(file, "a part of a split archive", "a whole one");
  if (directory.offset > directory.limit || directory.size > directory.limit - directory.offset) {
    fail(file,
         "a central directory of " + std::to_string(directory.size) + " bytes at byte " +
             std::to_string(directory.offset),
         "one that ends before byte " + std::to_string(directory.limit));
  }
  if (directory.size > kMaxDirectoryBytes || directory.count > directory.size / kCentralHeaderBytes) {
    fail(file,
         "a central directory of " + std::to_string(directory.count) + " entries in " + std::to_string(directory.size) +
             " bytes",
         "at least 46 bytes for each, and 16 MiB at most");
  }
  return directory;
}

// Puts the numbers of the zip64 extra field where `member` has none. Source: APPNOTE 4.5.3.
void read_zip64_extra(const InputFile& file, std::span<const std::byte> extra, ZipMember& member) {
  ByteParser fields(extra, file.path(), "extra field of \"" + member.name + "\"");
  while (fields.rest().size() >= 4) {
    const auto id = fields.number<std::uint16_t>();
    const auto content = fields.take(fields.number<std::uint16_t>());
    if (id != kZip64Field) continue;
    ByteParser numbers(content, file.path(), "zip64 field of \"" + member.name + "\"");
    for (std::uint64_t* number : {&member.size, &member.packed_size, &member.header_offset}) {
      if (*number == kZipSeeZip64) *number = numbers.number<std::uint64_t>();
    }
    return;
  }
}

ZipMember read_central_header(const InputFile& file, ByteParser& headers) {
  if (headers.number<std::uint32_t>() != kZipCentralHeader) {
    fail(file, "something else at byte " + std::to_string(headers.position() - 4) + " of the central directory",
         "an entry");
  }
  headers.take(4);  // versions
  const auto flags = headers.number<std::uint16_t>();
  const auto method = headers.number<std::uint16_t>();
  headers.take(4);  // time, date
  ZipMember member;
  member.crc = headers.number<std::uint32_t>();
  member.packed_size = headers.number<std::uint32_t>();
  member.size = headers.number<std::uint32_t>();
  const auto name_bytes = headers.number<std::uint16_t>();
  const auto extra_bytes = headers.number<std::uint16_t>();
  const auto comment_bytes = headers.number<std::uint16_t>();
  headers.take(8);  // disk, attributes
  member.header_offset = headers.number<std::uint32_t>();
  member.name = headers.text(name_bytes);
  read_zip64_extra(file, headers.take(extra_bytes), member);
  headers.take(comment_bytes);

  const std::string entry = "entry \"" + member.name + "\"";
  if ((flags & kAnyEncryption) != 0) fail(file, entry + " encrypted", "one that is not");
  if (method != kMethodStored && method != kMethodDeflated) {
    fail(file, entry + " packed by method " + std::to_string(method), "stored (0) or deflated (8)");
  }
  member.deflated = method == kMethodDeflated;
  if (!member.deflated && member.size != member.packed_size) {
    fail(file, entry + " of " + std::to_string(member.size) + " bytes stored in " + std::to_string(member.packed_size),
         "as many as it has");
  }
  return member;
}

// Finds the data of `member`, and checks that its local header says what the central directory does.
void read_local_header(const InputFile& file, std::uint64_t limit, ZipMember& member) {
  const std::string entry = "entry \"" + member.name + "\"";
  const std::uint64_t fixed = kLocalHeaderBytes + member.name.size();
  if (member.header_offset > limit || limit - member.header_offset < fixed) {
    fail(file, entry + " at byte " + std::to_string(member.header_offset),
         "one before the central directory at byte " + std::to_string(limit));
  }
  const std::vector<std::byte> bytes = read_part(file, member.header_offset, fixed);
  ByteParser header(bytes, file.path(), "local header of " + entry);
  const auto signature = header.number<std::uint32_t>();
  header.take(2);  // version
  const auto flags = header.number<std::uint16_t>();
  const auto method = header.number<std::uint16_t>();
  header.take(4);  // time, date
  const auto crc = header.number<std::uint32_t>();
  const auto packed_size = header.number<std::uint32_t>();
  const auto size = header.number<std::uint32_t>();
  const auto name_bytes = header.number<std::uint16_t>();
  const auto extra_bytes = header.number<std::uint16_t>();
  const auto agrees = [](std::uint32_t local, std::uint64_t central) {
    return local == central || local == kZipSeeZip64;
  };
  const bool sizes_follow = (flags & kFlagDataDescriptor) != 0;
  const bool same =
      signature == kZipLocalHeader && (flags & kAnyEncryption) == 0 &&
      method == (member.deflated ? kMethodDeflated : kMethodStored) && name_bytes == member.name.size() &&
      header.text(name_bytes) == member.name &&
      (sizes_follow || (crc == member.crc && agrees(size, member.size) && agrees(packed_size, member.packed_size)));
  if (!same) {
    fail(file,
         "a local header at byte " + std::to_string(member.header_offset) + " that differs from its entry in " +
             "the central directory, \"" + member.name + "\"",
         "the same in both");
  }
  member.data_offset = member.header_offset + fixed + extra_bytes;
  if (member.data_offset > limit || member.packed_size > limit - member.data_offset) {
    fail(file,
         entry + " of " + std::to_string(member.packed_size) + " bytes at byte " + std::to_string(member.data_offset),
         "one that ends before the central directory at byte " + std::to_string(limit));
  }
}

void check_apart(const InputFile& file, std::span<const ZipMember> members) {
  std::vector<const ZipMember*> sorted;
  sorted.reserve(members.size());
  for (const ZipMember& member : members) sorted.push_back(&member);
  std::ranges::sort(sorted, {}, &ZipMember::header_offset);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i - 1]->data_offset + sorted[i - 1]->packed_size > sorted[i]->header_offset) {
      fail(file, "entries \"" + sorted[i - 1]->name + "\" and \"" + sorted[i]->name + "\" that overlap",
           "each with bytes of its own");
    }
  }
  std::set<std::string_view> names;
  for (const ZipMember& member : members) {
    if (!names.insert(member.name).second) fail(file, "two entries \"" + member.name + "\"", "one of each name");
  }
}

std::vector<std::byte> inflate(std::span<const std::byte> packed, std::uint64_t size) {
  struct Free {
    void operator()(libdeflate_decompressor* inflater) const noexcept { libdeflate_free_decompressor(inflater); }
  };
  const std::unique_ptr<libdeflate_decompressor, Free> inflater(libdeflate_alloc_decompressor());
  std::vector<std::byte> content(static_cast<std::size_t>(size));
  // Without a place for the number of bytes, anything but `size` of them is an error.
  const bool done =
      inflater && libdeflate_deflate_decompress(inflater.get(), packed.data(), packed.size(), content.data(),
                                                content.size(), nullptr) == LIBDEFLATE_SUCCESS;
  if (!done) content.clear();
  return content;
}

void check_crc(const InputFile& file, const ZipMember& member, std::uint32_t found) {
  if (member.crc != 0 && found != member.crc) {
    fail(file, "damaged content of entry \"" + member.name + "\" (CRC-32 " + std::to_string(found) + ")",
         std::to_string(member.crc));
  }
}

}  // namespace

ZipReader::ZipReader(const InputFile& file) : file_(file) {
  const CentralDirectory directory = find_directory(file);
  const std::vector<std::byte> bytes = read_part(file, directory.offset, directory.size);
  ByteParser headers(bytes, file.path(), "the central directory");
  members_.reserve(static_cast<std::size_t>(directory.count));
  for (std::uint64_t i = 0; i < directory.count; ++i) members_.push_back(read_central_header(file, headers));
  for (ZipMember& member : members_) read_local_header(file, directory.offset, member);
  check_apart(file, members_);
}

const ZipMember* ZipReader::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(members_, name, &ZipMember::name);
  return found == members_.end() ? nullptr : &*found;
}

std::vector<std::byte> ZipReader::content(const ZipMember& member, std::uint64_t max_bytes) const {
  if (member.size > max_bytes) {
    throw UnsupportedFile(read_message(file_.path(),
                                       "entry \"" + member.name + "\" of " + std::to_string(member.size) + " bytes",
                                       std::to_string(max_bytes) + " at most"));
  }
  if (member.deflated && member.size / kMaxDeflateRatio > member.packed_size) {
    fail(file_,
         "entry \"" + member.name + "\" of " + std::to_string(member.size) + " bytes packed into " +
             std::to_string(member.packed_size),
         "no more than 1032 times the packed bytes");
  }
  if (member.deflated && member.packed_size > max_bytes) {
    fail(file_, "entry \"" + member.name + "\" packed into " + std::to_string(member.packed_size) + " bytes",
         "no more than its content may have");
  }
  std::vector<std::byte> bytes = read_part(file_, member.data_offset, member.packed_size);
  if (member.deflated) {
    bytes = inflate(bytes, member.size);
    if (bytes.size() != member.size)
      fail(file_, "damaged deflated data of entry \"" + member.name + "\"",
           "a stream of " + std::to_string(member.size) + " bytes");
  }
  Crc32 crc;
  crc.update(bytes);
  check_crc(file_, member, crc.value());
  return bytes;
}

void ZipReader::verify(const ZipMember& member) const {
  if (member.deflated) {
    static_cast<void>(content(member, kMaxInflatedBytes));
    return;
  }
  Crc32 crc;
  std::vector<std::byte> block(static_cast<std::size_t>(std::min<std::uint64_t>(member.size, kBlockBytes)));
  for (std::uint64_t at = 0; at < member.size; at += block.size()) {
    block.resize(static_cast<std::size_t>(std::min<std::uint64_t>(member.size - at, kBlockBytes)));
    file_.read_at(member.data_offset + at, block);
    crc.update(block);
  }
  check_crc(file_, member, crc.value());
}

}  // namespace msprobe
