#pragma once
// The signatures of a zip archive, and the parts of one whose entries are stored without compression.
// Source: PKWARE APPNOTE 6.3.10, sections 4.3 and 4.5.3 (zip64). Byte layout: docs/formats/pt.md.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace msprobe {

inline constexpr std::uint32_t kZipLocalHeader = 0x04034B50;
inline constexpr std::uint32_t kZipCentralHeader = 0x02014B50;
inline constexpr std::uint32_t kZip64EndRecord = 0x06064B50;
inline constexpr std::uint32_t kZip64EndLocator = 0x07064B50;
inline constexpr std::uint32_t kZipEndRecord = 0x06054B50;
inline constexpr std::uint16_t kZip64Field = 1;  // identifier in an extra field
// In a field of 32 bits: the number stands in the zip64 field.
inline constexpr std::uint32_t kZipSeeZip64 = 0xFFFFFFFF;

struct ZipEntry {
  std::string name;                 // ASCII
  std::uint64_t size = 0;           // bytes of its data
  std::uint32_t crc = 0;            // CRC-32 of its data
  std::uint64_t header_offset = 0;  // of its local header in the file
};

// The data of every entry begins at a multiple of this, so that a file can be mapped into memory and used in place.
inline constexpr std::size_t kZipAlignment = 64;
// Where the CRC-32 stands in a local header: it can be filled in after the data went by.
inline constexpr std::size_t kZipCrcOffset = 14;

// Returns the local header of `entry`, with padding: what follows it at `entry.header_offset` is aligned. Sizes of
// 4 GiB - 1 and more are written in zip64 form.
[[nodiscard]] std::string zip_local_header(const ZipEntry& entry);

// Returns the end of an archive, which stands at `offset`: the central directory and its end records, the zip64 ones
// always among them. Sizes and offsets of 4 GiB - 1 and more are written in zip64 form. Fewer than 65,535 entries.
[[nodiscard]] std::string zip_directory(std::span<const ZipEntry> entries, std::uint64_t offset);

}  // namespace msprobe
