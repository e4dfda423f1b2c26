#pragma once
// Zip archives of other writers than ours, for the tests of the reader.

#include <gtest/gtest.h>
#include <libdeflate.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "checksum/crc32.h"
#include "format/little_endian.h"
#include "format/zip.h"
#include "scratch.h"

namespace msprobe::test {

struct Part {
  std::string name;
  std::string content;
  bool deflated = false;
  bool descriptor = false;  // sizes and CRC after the data, as in a stream
  bool zip64 = false;       // sizes and offset in the zip64 field, though they are small
};

inline std::string deflate(std::string_view content) {
  libdeflate_compressor* compressor = libdeflate_alloc_compressor(6);
  std::string packed(libdeflate_deflate_compress_bound(compressor, content.size()), '\0');
  packed.resize(libdeflate_deflate_compress(compressor, content.data(), content.size(), packed.data(), packed.size()));
  libdeflate_free_compressor(compressor);
  return packed;
}

// An archive of `parts` with the classic end record, written after PKWARE APPNOTE 6.3.10.
inline std::string archive(const std::vector<Part>& parts, const std::string& comment = {}) {
  std::string out;
  std::string directory;
  for (const Part& part : parts) {
    const std::size_t offset = out.size();
    const std::string data = part.deflated ? deflate(part.content) : part.content;
    Crc32 crc;
    crc.update(bytes_of(part.content));
    const auto numbers = [&](std::string& to, bool empty, bool saturated) {
      append_little_endian(to, empty ? 0U : crc.value());
      for (const std::size_t size : {data.size(), part.content.size()}) {
        append_little_endian(to, empty ? 0U : saturated ? kZipSeeZip64 : static_cast<std::uint32_t>(size));
      }
    };
    const auto zip64 = [&](bool with_offset) {
      std::string field;
      if (!part.zip64) return field;
      append_little_endian(field, kZip64Field);
      append_little_endian(field, static_cast<std::uint16_t>(with_offset ? 24 : 16));
      append_little_endian(field, std::uint64_t{part.content.size()});
      append_little_endian(field, std::uint64_t{data.size()});
      if (with_offset) append_little_endian(field, std::uint64_t{offset});
      return field;
    };
    const auto common = [&](std::string& to, bool local) {
      append_little_endian(to, std::uint16_t{45});
      append_little_endian(to, static_cast<std::uint16_t>(part.descriptor ? 8 : 0));
      append_little_endian(to, static_cast<std::uint16_t>(part.deflated ? 8 : 0));
      append_little_endian(to, std::uint32_t{0});
      numbers(to, local && part.descriptor, part.zip64);
      append_little_endian(to, static_cast<std::uint16_t>(part.name.size()));
      append_little_endian(to, static_cast<std::uint16_t>(zip64(!local).size()));
    };
    append_little_endian(out, kZipLocalHeader);
    common(out, true);
    out += part.name + zip64(false) + data;
    if (part.descriptor) {
      out += "PK\x07\x08";
      numbers(out, false, false);
    }
    append_little_endian(directory, kZipCentralHeader);
    append_little_endian(directory, std::uint16_t{45});
    common(directory, false);
    directory += std::string(10, '\0');  // comment, disk, attributes
    append_little_endian(directory, part.zip64 ? kZipSeeZip64 : static_cast<std::uint32_t>(offset));
    directory += part.name + zip64(true);
  }
  const std::size_t begin = out.size();
  out += directory;
  append_little_endian(out, kZipEndRecord);
  append_little_endian(out, std::uint32_t{0});
  append_little_endian(out, static_cast<std::uint16_t>(parts.size()));
  append_little_endian(out, static_cast<std::uint16_t>(parts.size()));
  append_little_endian(out, static_cast<std::uint32_t>(directory.size()));
  append_little_endian(out, static_cast<std::uint32_t>(begin));
  append_little_endian(out, static_cast<std::uint16_t>(comment.size()));
  return out + comment;
}

// `text` with the `count`th place where `from` stands (from 0) replaced by `to`, which is as long.
inline std::string patched(std::string text, std::string_view from, std::string_view to, int count = 0) {
  std::size_t at = text.find(from);
  for (; count > 0; --count) at = text.find(from, at + 1);
  EXPECT_NE(at, std::string::npos);
  EXPECT_EQ(from.size(), to.size());
  return text.replace(at, to.size(), to);
}

// A file with these bytes, in a folder of its own.
class ScratchFile {
 public:
  explicit ScratchFile(std::string_view bytes) : path_((folder_ / "tensor").string()) { write(bytes); }
  void write(std::string_view bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  ScratchFolder folder_;
  std::string path_;
};

}  // namespace msprobe::test
