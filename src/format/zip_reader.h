#pragma once
// Reads zip archives, whoever wrote them: the tool itself, torch.save, or a person who packed the files again.
//
//   [ local header | name | extra | data ]...   central directory   (zip64 end record and locator)   end record,
//   comment
//     ^ header_offset               ^ data_offset
//
// The central directory is what counts; the local headers must agree with it. Nothing in the file is trusted: no part
// is read outside its bounds, and parts do not overlap. Source: PKWARE APPNOTE 6.3.10, sections 4.3 to 4.5.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/file_io.h"

namespace msprobe {

struct ZipMember {
  std::string name;
  std::uint64_t size = 0;         // bytes of its content
  std::uint64_t packed_size = 0;  // bytes in the file: the same unless it is deflated
  std::uint32_t crc = 0;          // CRC-32 of its content; 0: not recorded (torch.save can be told to leave it out)
  bool deflated = false;
  std::uint64_t header_offset = 0;  // in the file
  std::uint64_t data_offset = 0;    // in the file
};

// Thread: any.
class ZipReader {
 public:
  // Reads the central directory and all local headers. Borrows `file`.
  // Throws: IoError; FormatError if the archive is damaged, encrypted, or packed by another method than deflate.
  explicit ZipReader(const InputFile& file);

  // In the order of the central directory; folders have entries of their own, with a slash at the end.
  [[nodiscard]] std::span<const ZipMember> members() const noexcept { return members_; }
  // Returns nothing if there is no entry called `name`.
  [[nodiscard]] const ZipMember* find(std::string_view name) const noexcept;

  // Returns the content of `member`, unpacked; its CRC is checked.
  // Throws: IoError; FormatError if it is damaged; UnsupportedFile if it is longer than `max_bytes`.
  [[nodiscard]] std::vector<std::byte> content(const ZipMember& member, std::uint64_t max_bytes) const;
  // Recomputes the CRC-32 of `member`. Memory: one block; for a deflated one its content, kMaxInflatedBytes at most.
  // Throws: IoError; FormatError if it differs; UnsupportedFile if the content is too long.
  void verify(const ZipMember& member) const;

 private:
  const InputFile& file_;
  std::vector<ZipMember> members_;
};

// Longest content of a deflated entry that is unpacked: it has to be in memory as a whole.
inline constexpr std::uint64_t kMaxInflatedBytes = std::uint64_t{256} << 20U;

}  // namespace msprobe
