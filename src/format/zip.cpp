#include "format/zip.h"

#include <algorithm>

#include "format/little_endian.h"

namespace msprobe {
namespace {

constexpr std::uint64_t kZip64EndRecordRest = 44;  // bytes after its own size field

constexpr std::uint16_t kVersionStored = 10;
constexpr std::uint16_t kVersionZip64 = 45;
constexpr std::uint16_t kDate = (1U << 5U) | 1U;  // 1980-01-01: equal tensors give equal files
constexpr std::uint16_t kPaddingField = 0x4246;   // "FB", as PyTorch pads
constexpr char kPaddingByte = 'Z';
constexpr std::size_t kFieldHeaderBytes = 4;

std::uint32_t saturated(std::uint64_t number) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(number, kZipSeeZip64));
}

void append_field(std::string& extra, std::uint16_t id, const std::string& content) {
  append_little_endian(extra, id);
  append_little_endian(extra, static_cast<std::uint16_t>(content.size()));
  extra += content;
}

// What the local and the central header have in common, from "version needed" to the length of the extra field.
void append_common(std::string& out, const ZipEntry& entry, std::uint16_t version, std::size_t extra_bytes) {
  append_little_endian(out, version);
  append_little_endian(out, std::uint16_t{0});  // flags
  append_little_endian(out, std::uint16_t{0});  // method: stored
  append_little_endian(out, std::uint16_t{0});  // time
  append_little_endian(out, kDate);
  append_little_endian(out, entry.crc);
  append_little_endian(out, saturated(entry.size));  // compressed
  append_little_endian(out, saturated(entry.size));  // original
  append_little_endian(out, static_cast<std::uint16_t>(entry.name.size()));
  append_little_endian(out, static_cast<std::uint16_t>(extra_bytes));
}

// `with_offset`: the offset can need the field too. Empty if nothing needs it.
std::string zip64_extra(const ZipEntry& entry, bool with_offset) {
  std::string content;
  if (entry.size >= kZipSeeZip64) {
    append_little_endian(content, entry.size);  // original
    append_little_endian(content, entry.size);  // compressed
  }
  if (with_offset && entry.header_offset >= kZipSeeZip64) append_little_endian(content, entry.header_offset);
  std::string extra;
  if (!content.empty()) append_field(extra, kZip64Field, content);
  return extra;
}

std::uint16_t version_needed(const std::string& zip64) { return zip64.empty() ? kVersionStored : kVersionZip64; }

void append_central_header(std::string& out, const ZipEntry& entry) {
  const std::string extra = zip64_extra(entry, true);
  append_little_endian(out, kZipCentralHeader);
  append_little_endian(out, kVersionZip64);  // made by
  append_common(out, entry, version_needed(extra), extra.size());
  append_little_endian(out, std::uint16_t{0});  // length of the comment
  append_little_endian(out, std::uint16_t{0});  // disk
  append_little_endian(out, std::uint16_t{0});  // internal attributes
  append_little_endian(out, std::uint32_t{0});  // external attributes
  append_little_endian(out, saturated(entry.header_offset));
  out += entry.name + extra;
}

}  // namespace

std::string zip_local_header(const ZipEntry& entry) {
  constexpr std::size_t kFixedBytes = 30;
  std::string extra = zip64_extra(entry, false);
  const std::string zip64 = extra;
  const std::uint64_t unpadded =
      entry.header_offset + kFixedBytes + entry.name.size() + extra.size() + kFieldHeaderBytes;
  const auto padding = static_cast<std::size_t>((kZipAlignment - unpadded % kZipAlignment) % kZipAlignment);
  append_field(extra, kPaddingField, std::string(padding, kPaddingByte));

  std::string out;
  append_little_endian(out, kZipLocalHeader);
  append_common(out, entry, version_needed(zip64), extra.size());
  out += entry.name + extra;
  return out;
}

std::string zip_directory(std::span<const ZipEntry> entries, std::uint64_t offset) {
  std::string out;
  for (const ZipEntry& entry : entries) append_central_header(out, entry);
  const std::uint64_t size = out.size();
  const std::uint64_t count = entries.size();

  append_little_endian(out, kZip64EndRecord);
  append_little_endian(out, kZip64EndRecordRest);
  append_little_endian(out, kVersionZip64);     // made by
  append_little_endian(out, kVersionZip64);     // needed
  append_little_endian(out, std::uint32_t{0});  // this disk
  append_little_endian(out, std::uint32_t{0});  // disk of the directory
  append_little_endian(out, count);             // on this disk
  append_little_endian(out, count);
  append_little_endian(out, size);
  append_little_endian(out, offset);

  append_little_endian(out, kZip64EndLocator);
  append_little_endian(out, std::uint32_t{0});  // disk of the zip64 end record
  append_little_endian(out, offset + size);     // its offset
  append_little_endian(out, std::uint32_t{1});  // disks in all

  append_little_endian(out, kZipEndRecord);
  append_little_endian(out, std::uint16_t{0});                   // this disk
  append_little_endian(out, std::uint16_t{0});                   // disk of the directory
  append_little_endian(out, static_cast<std::uint16_t>(count));  // on this disk
  append_little_endian(out, static_cast<std::uint16_t>(count));
  append_little_endian(out, saturated(size));
  append_little_endian(out, saturated(offset));
  append_little_endian(out, std::uint16_t{0});  // length of the comment
  return out;
}

}  // namespace msprobe
