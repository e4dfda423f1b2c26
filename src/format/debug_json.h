#pragma once
// debug.json, valid after every write and after SIGKILL at any moment. Layout: docs/formats/debug_json.md.
//
//   header ... "data": {
//   "x.0.debug": {...},           <- records, each within one 4,096-byte page
//   "x_grad.0.debug": {...  }        (padding of spaces where one would cross a page)
//   <spaces>                      <- the next record is written here with one pwrite
//    }\n}\n                       <- closing braces, at the very end, written once
//
// Appending is O(1) in the number of records. A full region is doubled: the new file is written beside it and renamed.
// A record larger than a page takes that way too. A slot is a place inside a record that is filled later, in place:
// it holds `null` and spaces, as many as the longest text that it can take.
//
// Why pages: the kernel looks for SIGKILL only between the pages of a write, so a write within a page is all or
// nothing.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "format/file_io.h"

namespace msprobe {

struct Slot {
  std::size_t capacity;  // bytes of the longest text that is expected; under 4 it counts as 4
};

// The JSON text of one record, or of several that must appear together: literal text and slots in order.
// No newline inside; `"key": value` pairs are separated by ",\n" by whoever composes them.
using RecordText = std::vector<std::variant<std::string, Slot>>;

// Names a slot of one DebugJson.
using SlotId = std::uint64_t;

struct DebugJsonHeader {
  std::string task;
  std::string level;
  std::string framework;
  std::string dump_data_dir;  // empty: null
};

// Thread: any; each call is serialised inside. Memory: constant, and one small entry for each slot that is neither
// filled nor forgotten.
class DebugJson {
 public:
  // Creates `debug.json` in `directory`, which it keeps a copy of. Throws: IoError; EEXIST if there is one already.
  DebugJson(const Directory& directory, const DebugJsonHeader& header);
  ~DebugJson() = default;
  DebugJson(const DebugJson&) = delete;
  DebugJson& operator=(const DebugJson&) = delete;

  // Appends a record and, if it is not empty, its companion directly behind it; returns the ids of their slots in
  // order. When it returns both survive SIGKILL. They appear together, unless they fit in a page only one by one: then
  // SIGKILL during the call can leave the record alone. Throws: IoError; then the file is as before, or in that case
  // may hold the record alone.
  std::vector<SlotId> append(const RecordText& record, const RecordText& companion = {});

  // Puts `text` in the slot, once. A text longer than the slot costs one rewrite of the file.
  // Throws: IoError; then the slot still holds null. StateError if the slot was filled or forgotten before.
  void fill(SlotId slot, std::string_view text);

  // The slot will never be filled: it stays null. One that is filled or forgotten already changes nothing.
  void forget(SlotId slot) noexcept;

  // Closes the descriptor; a later append or fill opens the file again. For steps that are over, so that late
  // gradients do not keep a descriptor for each step. Throws: IoError if the file was removed and cannot come back.
  void suspend();

 private:
  struct Place {
    std::uint64_t offset;
    std::size_t capacity;
  };
  // Bytes that a failed write left in the file, and what stood there before.
  struct Damage {
    std::uint64_t offset;
    std::string before;
  };
  struct Layout {
    std::uint64_t offset;
    std::string bytes;
    std::vector<Place> slots;
  };

  void append_one(const RecordText& record, std::vector<SlotId>& ids);
  Layout lay_out(const RecordText& record) const;
  OpenFile& open_file();
  void restore_if_deleted();
  void write_in_page(std::uint64_t offset, std::string_view bytes, std::string_view before);
  void rewrite(std::uint64_t head_end, std::string_view middle, std::uint64_t tail_begin, std::uint64_t room = 0);
  void replace_file(std::uint64_t head_end, std::string_view middle, std::uint64_t tail_begin, std::uint64_t room);
  void replace_slot(const Place& place, std::string_view text);

  const Directory directory_;
  std::mutex mutex_;
  // Guarded by mutex_:
  OpenFile file_;
  std::optional<Damage> damage_;
  std::uint64_t size_ = 0;    // of the file, closing braces included
  std::uint64_t cursor_ = 0;  // end of the last record; from here to the closing braces all is spaces
  bool has_records_ = false;
  std::uint64_t appends_ = 0;
  SlotId next_slot_ = 0;
  std::unordered_map<SlotId, Place> slots_;
};

}  // namespace msprobe
