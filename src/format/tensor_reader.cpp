#include "format/tensor_reader.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>
#include <utility>

#include "format/file_gather.h"
#include "format/file_io.h"
#include "format/stored_tensor.h"
#include "msprobe/error.h"
#include "msprobe/tensor_view.h"
#include "tensor/block_reader.h"
#include "tensor/layout.h"
#include "tensor/sign_flip.h"
#include "tensor/strided_cursor.h"

namespace msprobe {
namespace {

// What a view covers of its storage is in memory up to this size: several files can be open, two sides on each thread.
constexpr std::uint64_t kMaxStorageInMemoryBytes = std::uint64_t{64} << 20U;
// Beyond, a broadcast tensor of a few bytes would keep a tool busy for ever.
constexpr std::uint64_t kMaxLogicalBytes = std::uint64_t{1} << 40U;
constexpr std::size_t kMaxBlockBytes = std::size_t{4} << 20U;

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::string_view kZipMagic = "PK\x03\x04";
constexpr std::string_view kPickleMagic = "\x80";  // opcode PROTO
// The number that torch.save before 1.6 wrote first: LONG1, 10 bytes. Source: MAGIC_NUMBER in torch/serialization.py.
constexpr std::string_view kOldTorchMagic = "\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19";

StoredTensor read_description(const InputFile& file) {
  std::array<char, 16> buffer{};
  const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), buffer.size()));
  file.read_at(0, std::as_writable_bytes(std::span(buffer).first(length)));
  const std::string_view begin(buffer.data(), length);
  if (begin.starts_with(kNpyMagic)) return read_npy_description(file);
  if (begin.starts_with(kZipMagic)) return read_pt_description(file);
  if (begin.starts_with(kPickleMagic)) {
    const bool old = begin.substr(std::min<std::size_t>(length, 2)).starts_with(kOldTorchMagic);
    throw UnsupportedFile(read_message(
        file.path(), old ? "the format of torch.save before PyTorch 1.6" : "a pickle of Python",
        old ? "the zip archive of later ones (load the file and save it again)" : "a tensor in .pt or .npy format"));
  }
  throw FormatError(read_message(file.path(), file.size() == 0 ? "an empty file" : "neither of both at its beginning",
                                 "a .pt (zip archive) or .npy file"));
}

// The part of a storage that the elements of a view cover, in elements.
struct Extent {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Throws: FormatError unless it lies within the storage.
Extent covered(const TensorFileInfo& info, const std::string& path) {
  Extent extent{info.first_element, info.first_element};
  bool overflow = false;
  for (std::size_t i = 0; i < info.shape.size(); ++i) {
    std::int64_t reach = 0;
    overflow |= __builtin_mul_overflow(info.shape[i] - 1, info.strides[i], &reach);
    std::int64_t& side = reach < 0 ? extent.begin : extent.end;
    overflow |= __builtin_add_overflow(side, reach, &side);
  }
  overflow |= __builtin_add_overflow(extent.end, 1, &extent.end);
  const std::uint64_t stored = info.stored_bytes / dtype_info(info.dtype).item_bytes;
  if (overflow || extent.begin < 0 || static_cast<std::uint64_t>(extent.end) > stored) {
    const std::string found = overflow ? "elements out of all bounds"
                                       : "elements from " + std::to_string(extent.begin) + " to " +
                                             std::to_string(extent.end - 1) + " of the storage";
    throw FormatError(read_message(path, found, "some of the " + std::to_string(stored) + " that are there"));
  }
  return extent;
}

}  // namespace

struct TensorFileReader::State {
  explicit State(const std::string& path);

  [[nodiscard]] TensorView view() const {
    return {nullptr,
            stored.info.dtype,
            stored.info.shape,
            stored.info.strides,
            stored.info.negate_real,
            stored.info.negate_imag};
  }
  void load() const;

  InputFile file;
  StoredTensor stored;
  std::size_t item_bytes = 1;
  std::int64_t numel = 0;
  std::uint64_t total_bytes = 0;
  Layout layout;                  // in logical order, without its memory
  std::uint64_t data_offset = 0;  // of the first element in the file, unless it is deflated
  std::uint64_t part_offset = 0;  // of the covered part of the storage in the file
  std::uint64_t part_bytes = 0;   // and its length
  std::size_t first_in_part = 0;  // offset of the first element in `memory`
  bool in_memory = false;
  mutable std::once_flag loaded;
  mutable std::vector<std::byte> memory;  // the covered part, or all of a deflated storage
};

TensorFileReader::State::State(const std::string& path) : file(path), stored(read_description(file)) {
  TensorFileInfo& info = stored.info;
  item_bytes = dtype_info(info.dtype).item_bytes;
  try {
    numel = msprobe::numel(view());
    total_bytes = static_cast<std::uint64_t>(byte_size(numel, info.dtype));
  } catch (const Error& error) {
    throw FormatError("read: \"" + path + "\": " + error.what());
  }
  if (info.format == FileFormat::kNpy && total_bytes != info.stored_bytes) {
    throw FormatError(read_message(path, std::to_string(info.stored_bytes) + " bytes of data",
                                   std::to_string(total_bytes) + " for " + std::to_string(numel) + " elements of " +
                                       std::to_string(item_bytes) + " bytes"));
  }
  if (numel == 0) return;

  const Extent extent = covered(info, path);
  if (total_bytes > std::max(kMaxLogicalBytes, info.stored_bytes)) {
    throw UnsupportedFile(
        read_message(path, "a broadcast tensor of " + std::to_string(total_bytes) + " bytes", "1 TiB at most"));
  }
  info.is_contiguous = is_contiguous(view());
  layout = make_layout(view(), ReadOrder::kLogical);
  const auto begin_bytes = static_cast<std::uint64_t>(extent.begin) * item_bytes;
  const auto first_bytes = static_cast<std::uint64_t>(info.first_element) * item_bytes;
  data_offset = stored.storage_offset + first_bytes;
  part_offset = stored.storage_offset + begin_bytes;
  part_bytes = static_cast<std::uint64_t>(extent.end - extent.begin) * item_bytes;
  const bool deflated = stored.deflated != nullptr;
  first_in_part = static_cast<std::size_t>(deflated ? first_bytes : first_bytes - begin_bytes);
  in_memory = deflated || (!info.is_contiguous && part_bytes <= kMaxStorageInMemoryBytes);
}

void TensorFileReader::State::load() const {
  std::call_once(loaded, [&] {
    if (stored.deflated != nullptr) {
      memory = stored.zip->content(*stored.deflated, kMaxInflatedBytes);
    } else {
      std::vector<std::byte> part(static_cast<std::size_t>(part_bytes));
      file.read_at(part_offset, part);
      memory = std::move(part);
    }
  });
}

TensorFileReader::TensorFileReader(const std::string& path) : state_(std::make_unique<const State>(path)) {}
TensorFileReader::TensorFileReader(TensorFileReader&&) noexcept = default;
TensorFileReader& TensorFileReader::operator=(TensorFileReader&&) noexcept = default;
TensorFileReader::~TensorFileReader() = default;

const TensorFileInfo& TensorFileReader::info() const noexcept { return state_->stored.info; }
std::int64_t TensorFileReader::numel() const noexcept { return state_->numel; }
std::uint64_t TensorFileReader::total_bytes() const noexcept { return state_->total_bytes; }

std::size_t TensorFileReader::block_bytes() const noexcept {
  if (state_->numel == 0 || state_->stored.info.is_contiguous) return kBlockBytes;
  const std::size_t preferred = StridedCursor(state_->layout).preferred_bytes();
  return std::clamp(preferred, kBlockBytes, kMaxBlockBytes) / state_->item_bytes * state_->item_bytes;
}

void TensorFileReader::read(std::uint64_t offset, std::span<std::byte> out) const {
  const State& state = *state_;
  if (offset > state.total_bytes || out.size() > state.total_bytes - offset || offset % state.item_bytes != 0 ||
      out.size() % state.item_bytes != 0) {
    throw StateError(read_message(state.file.path(),
                                  "a request for " + std::to_string(out.size()) + " bytes at " + std::to_string(offset),
                                  "whole elements within " + std::to_string(state.total_bytes) + " bytes"));
  }
  if (out.empty()) return;
  if (state.stored.info.is_contiguous && !state.in_memory) {
    state.file.read_at(state.data_offset + offset, out);
  } else {
    if (state.in_memory) state.load();
    Layout layout = state.layout;
    if (state.in_memory) layout.data = state.memory.data() + state.first_in_part;
    StridedCursor cursor(std::move(layout));
    cursor.seek(static_cast<std::int64_t>(offset / state.item_bytes),
                static_cast<std::int64_t>(out.size() / state.item_bytes));
    if (state.in_memory) {
      cursor.fill(out);
    } else {
      gather_from_file(state.file, state.data_offset, state.item_bytes, cursor, out);
    }
  }
  flip_signs(state.view(), out);
}

void TensorFileReader::verify_checksums() const {
  if (!state_->stored.zip) return;
  for (const ZipMember& member : state_->stored.zip->members()) state_->stored.zip->verify(member);
}

}  // namespace msprobe
