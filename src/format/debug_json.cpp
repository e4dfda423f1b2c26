#include "format/debug_json.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "format/json_text.h"

namespace msprobe {
namespace {

constexpr std::string_view kFileName = "debug.json";
constexpr std::string_view kClosing = "\n }\n}\n";
constexpr std::string_view kSeparator = ",\n";
constexpr std::string_view kNull = "null";
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kDeletionCheckInterval = 64;  // so that a record costs one system call
constexpr std::size_t kCopyBytes = std::size_t{1} << 20;

constexpr std::uint64_t round_up_to_page(std::uint64_t n) { return (n + kPageBytes - 1) / kPageBytes * kPageBytes; }

constexpr bool fits_in_page(std::uint64_t offset, std::uint64_t bytes) {
  return offset % kPageBytes + bytes <= kPageBytes;
}

std::size_t room_of(const Slot& slot) { return std::max(slot.capacity, kNull.size()); }

std::size_t size_of(const RecordText& record) {
  std::size_t size = 0;
  for (const auto& piece : record) {
    const auto* text = std::get_if<std::string>(&piece);
    size += text != nullptr ? text->size() : room_of(std::get<Slot>(piece));
  }
  return size;
}

std::string render_header(const DebugJsonHeader& header) {
  std::string out = "{\n \"task\": ";
  append_json_string(out, header.task);
  out += ",\n \"level\": ";
  append_json_string(out, header.level);
  out += ",\n \"framework\": ";
  append_json_string(out, header.framework);
  out += ",\n \"dump_data_dir\": ";
  if (header.dump_data_dir.empty()) {
    out += kNull;
  } else {
    append_json_string(out, header.dump_data_dir);
  }
  out += ",\n \"data\": {\n";
  return out;
}

void write_text(NewFile& file, std::string_view text) { file.write(std::as_bytes(std::span(text))); }

void write_spaces_and_closing(NewFile& file, std::uint64_t size) {
  std::uint64_t spaces = size - kClosing.size() - file.size();
  const std::string chunk(std::min<std::uint64_t>(spaces, kCopyBytes), ' ');
  while (spaces > 0) {
    const std::size_t count = std::min<std::uint64_t>(spaces, chunk.size());
    write_text(file, std::string_view(chunk).substr(0, count));
    spaces -= count;
  }
  write_text(file, kClosing);
}

void copy_range(const OpenFile& from, std::uint64_t begin, std::uint64_t end, NewFile& to) {
  std::vector<std::byte> buffer(std::min<std::uint64_t>(end - begin, kCopyBytes));
  while (begin < end) {
    const auto block = std::span(buffer).first(std::min<std::uint64_t>(end - begin, buffer.size()));
    from.read_at(begin, block);
    to.write(block);
    begin += block.size();
  }
}

}  // namespace

DebugJson::DebugJson(const Directory& directory, const DebugJsonHeader& header) : directory_(directory) {
  const std::string text = render_header(header);
  const std::string name(kFileName);
  NewFile file(directory_, name);
  size_ = round_up_to_page(text.size() + kClosing.size());
  cursor_ = text.size();
  write_text(file, text);
  write_spaces_and_closing(file, size_);
  if (!file.commit(name)) throw IoError("create file", directory_.path() + "/" + name, EEXIST);
}

std::vector<SlotId> DebugJson::append(const RecordText& record, const RecordText& companion) {
  const std::lock_guard lock(mutex_);
  if (appends_++ % kDeletionCheckInterval == 0) restore_if_deleted();
  std::vector<SlotId> ids;
  const std::size_t record_size = kSeparator.size() + size_of(record);
  const std::size_t companion_size = kSeparator.size() + size_of(companion);
  const bool one_by_one = record_size <= kPageBytes && companion_size <= kPageBytes;
  if (companion.empty()) {
    append_one(record, ids);
  } else if (record_size + companion_size > kPageBytes && one_by_one) {
    append_one(record, ids);
    append_one(companion, ids);
  } else {
    RecordText both = record;
    both.emplace_back(std::string(kSeparator));
    both.insert(both.end(), companion.begin(), companion.end());
    append_one(both, ids);
  }
  return ids;
}

void DebugJson::append_one(const RecordText& record, std::vector<SlotId>& ids) {
  const Layout layout = lay_out(record);
  const std::uint64_t end = layout.offset + layout.bytes.size();
  if (fits_in_page(layout.offset, layout.bytes.size())) {
    if (end + kClosing.size() > size_) rewrite(cursor_, {}, cursor_, end - cursor_);
    write_in_page(layout.offset, layout.bytes, {});
    cursor_ = end;
  } else {
    rewrite(cursor_, layout.bytes, cursor_);
  }
  has_records_ = true;
  for (const Place& place : layout.slots) {
    slots_.emplace(next_slot_, place);
    ids.push_back(next_slot_++);
  }
}

void DebugJson::fill(SlotId slot, std::string_view text) {
  const std::lock_guard lock(mutex_);
  const auto found = slots_.find(slot);
  if (found == slots_.end()) throw StateError("fill: slot " + std::to_string(slot) + " was filled or given up before");
  const Place place = found->second;
  const std::size_t bytes = std::max(text.size(), kNull.size());  // the rest of the slot is spaces already
  if (bytes <= place.capacity && fits_in_page(place.offset, bytes)) {
    std::string padded(text);
    padded.resize(bytes, ' ');
    write_in_page(place.offset, padded, kNull);
  } else {
    replace_slot(place, text);
  }
  slots_.erase(slot);
}

void DebugJson::forget(SlotId slot) noexcept {
  const std::lock_guard lock(mutex_);
  slots_.erase(slot);
}

void DebugJson::suspend() {
  const std::lock_guard lock(mutex_);
  try {
    restore_if_deleted();
  } catch (const IoError&) {
    file_ = {};
    throw;
  }
  file_ = {};
}

// Where the record goes, and its bytes with the separator before it.
DebugJson::Layout DebugJson::lay_out(const RecordText& record) const {
  const std::string_view separator = has_records_ ? kSeparator : std::string_view();
  const std::size_t size = separator.size() + size_of(record);
  Layout layout{cursor_, std::string(separator), {}};
  if (size <= kPageBytes && !fits_in_page(cursor_, size)) layout.offset = round_up_to_page(cursor_);
  layout.bytes.reserve(size);
  for (const auto& piece : record) {
    if (const auto* text = std::get_if<std::string>(&piece)) {
      layout.bytes += *text;
      continue;
    }
    const std::size_t capacity = room_of(std::get<Slot>(piece));
    std::uint64_t at = layout.offset + layout.bytes.size();
    if (capacity <= kPageBytes && !fits_in_page(at, capacity)) {  // only in a record of more than a page
      layout.bytes.append(round_up_to_page(at) - at, ' ');
      at = round_up_to_page(at);
    }
    layout.slots.push_back({at, capacity});
    layout.bytes += kNull;
    layout.bytes.append(capacity - kNull.size(), ' ');
  }
  return layout;
}

OpenFile& DebugJson::open_file() {
  if (!file_.is_open()) {
    const std::string name(kFileName);
    OpenFile file(directory_, name);
    // Another size: somebody else's file, in which our offsets mean nothing.
    if (file.size() != size_) throw IoError("open file", directory_.path() + "/" + name, ESTALE);
    file_ = std::move(file);
  }
  if (damage_) {
    file_.write_at(damage_->offset, std::as_bytes(std::span(std::as_const(damage_->before))));
    damage_.reset();
  }
  return file_;
}

// Somebody may have removed the file. Then it comes back with all its records, which its descriptor still has.
void DebugJson::restore_if_deleted() {
  if (file_.is_open() && file_.is_deleted()) replace_file(cursor_, {}, cursor_, 0);
}

// Writes `bytes`, within one page, over `before` and spaces. After a failure these stand there again.
void DebugJson::write_in_page(std::uint64_t offset, std::string_view bytes, std::string_view before) {
  OpenFile& file = open_file();
  try {
    file.write_at(offset, std::as_bytes(std::span(bytes)));
  } catch (const IoError&) {
    std::string old(before);
    old.resize(bytes.size(), ' ');
    try {
      file.write_at(offset, std::as_bytes(std::span(std::as_const(old))));
    } catch (const IoError&) {
      damage_ = Damage{offset, std::move(old)};  // repaired before the next access
    }
    throw;
  }
}

void DebugJson::rewrite(std::uint64_t head_end, std::string_view middle, std::uint64_t tail_begin, std::uint64_t room) {
  open_file();
  replace_file(head_end, middle, tail_begin, room);
}

// Replaces the open file by: its bytes up to `head_end`, `middle`, its records from `tail_begin` on, then at least
// `room` spaces, and the closing braces. The size doubles until all that fits.
void DebugJson::replace_file(std::uint64_t head_end, std::string_view middle, std::uint64_t tail_begin,
                             std::uint64_t room) {
  const OpenFile& old = file_;
  const std::uint64_t new_cursor = head_end + middle.size() + (cursor_ - tail_begin);
  std::uint64_t new_size = size_;
  while (new_size < new_cursor + room + kClosing.size()) new_size *= 2;

  const std::string name(kFileName);
  NewFile file(directory_, name);
  copy_range(old, 0, head_end, file);
  write_text(file, middle);
  copy_range(old, tail_begin, cursor_, file);
  write_spaces_and_closing(file, new_size);
  file.commit(name, /*replace=*/true);
  size_ = new_size;
  cursor_ = new_cursor;
  file_ = {};  // it is the old file
}

// Fills a slot that is too short for `text` or crosses a page. It grows by whole pages, so that every record behind it
// keeps its place within a page.
void DebugJson::replace_slot(const Place& place, std::string_view text) {
  const std::uint64_t growth = text.size() > place.capacity ? round_up_to_page(text.size() - place.capacity) : 0;
  std::string middle(text);
  middle.resize(place.capacity + growth, ' ');
  rewrite(place.offset, middle, place.offset + place.capacity);
  for (auto& [id, other] : slots_) {
    if (other.offset > place.offset) other.offset += growth;
  }
}

}  // namespace msprobe
