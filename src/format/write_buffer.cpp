#include "format/write_buffer.h"

#include <algorithm>

namespace msprobe {

void WriteBuffer::write(std::span<const std::byte> bytes) {
  if (pending_.size() + bytes.size() > kCapacityBytes) flush();
  if (bytes.size() > kCapacityBytes) {
    file_.write(bytes);
  } else {
    pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  }
}

void WriteBuffer::write(std::string_view bytes) { write(std::as_bytes(std::span(bytes))); }

void WriteBuffer::overwrite(std::uint64_t offset, std::string_view bytes) {
  const auto source = std::as_bytes(std::span(bytes));
  if (offset < file_.size()) {
    file_.overwrite(offset, source);
  } else {
    const auto place = static_cast<std::ptrdiff_t>(offset - file_.size());
    std::ranges::copy(source, pending_.begin() + place);
  }
}

void WriteBuffer::flush() {
  if (pending_.empty()) return;
  file_.write(pending_);
  pending_.clear();
}

}  // namespace msprobe
