#pragma once
// Takes numbers and bytes off the front of a part of a file, and never reads past its end.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "format/little_endian.h"
#include "format/read_error.h"

namespace msprobe {

class ByteParser {
 public:
  // Borrows `bytes`. `path` and `part` ("the central directory") are for messages.
  ByteParser(std::span<const std::byte> bytes, std::string path, std::string part)
      : bytes_(bytes), path_(std::move(path)), part_(std::move(part)) {}

  [[nodiscard]] std::size_t position() const noexcept { return position_; }
  [[nodiscard]] std::span<const std::byte> rest() const noexcept { return bytes_.subspan(position_); }

  // All three throw: FormatError if fewer bytes are left.
  std::span<const std::byte> take(std::uint64_t count) {
    if (count > bytes_.size() - position_) {
      throw FormatError(read_message(path_, part_ + " ending after " + std::to_string(bytes_.size()) + " bytes",
                                     std::to_string(count) + " more at byte " + std::to_string(position_)));
    }
    const auto taken = bytes_.subspan(position_, static_cast<std::size_t>(count));
    position_ += taken.size();
    return taken;
  }
  std::string_view text(std::uint64_t count) {
    const auto taken = take(count);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  template <std::unsigned_integral Number>
  Number number() {
    return load_little_endian<Number>(take(sizeof(Number)));
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
  std::string path_;
  std::string part_;
};

}  // namespace msprobe
