#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "checksum/crc32.h"
#include "format/little_endian.h"
#include "format/pickle.h"
#include "format/tensor_file.h"
#include "format/write_buffer.h"
#include "format/zip.h"
#include "msprobe/error.h"
#include "msprobe/tensor_view.h"

namespace msprobe {
namespace {

// Elements that the file holds: a broadcast dimension is stored once.
std::int64_t stored_numel(DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (strides[i] == 0 && sizes[i] > 1) sizes[i] = 1;
  }
  TensorView stored;
  stored.dtype = dtype;
  stored.shape = sizes;
  stored.strides = strides;
  return numel(stored);
}

std::string digits20(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(20 - digits.size(), '0') + digits;
}

// The archive is complete once the data went by: what comes first is written by the constructor, the rest by finish().
class PtWriter final : public TensorFileWriter {
 public:
  PtWriter(NewFile& file, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides)
      : out_(file) {
    const std::int64_t count = stored_numel(dtype, shape, strides);
    add("data.pkl", pickle_tensor(dtype, shape, strides, count));
    add(".format_version", "1");
    add(".storage_alignment", std::to_string(kZipAlignment));
    add("byteorder", "little");
    begin("data/0", static_cast<std::uint64_t>(count) * dtype_info(dtype).item_bytes, 0);
  }

  void write(std::span<const std::byte> block) override {
    out_.write(block);
    written_ += block.size();
  }

  void finish(std::uint32_t crc) override {
    ZipEntry& data = entries_.back();
    if (written_ != data.size) {
      throw StateError("write_pt: found " + std::to_string(written_) + " bytes of data, wanted " +
                       std::to_string(data.size));
    }
    data.crc = crc;
    std::string crc_bytes;
    append_little_endian(crc_bytes, data.crc);
    out_.overwrite(data.header_offset + kZipCrcOffset, crc_bytes);

    const std::uint64_t checksums = std::uint64_t{entries_.front().crc} << 32U | data.crc;
    const std::string id = digits20(data.size) + digits20(checksums);
    add("version", "3\n");
    add(".data/serialization_id", id);
    out_.write(zip_directory(entries_, out_.size()));
    out_.flush();
  }

 private:
  void begin(std::string_view name, std::uint64_t size, std::uint32_t crc) {
    entries_.push_back({"archive/" + std::string(name), size, crc, out_.size()});
    out_.write(zip_local_header(entries_.back()));
  }

  void add(std::string_view name, std::string_view content) {
    Crc32 crc;
    crc.update(std::as_bytes(std::span(content)));
    begin(name, content.size(), crc.value());
    out_.write(content);
  }

  WriteBuffer out_;
  std::vector<ZipEntry> entries_;
  std::uint64_t written_ = 0;  // bytes of data
};

}  // namespace

std::unique_ptr<TensorFileWriter> make_pt_writer(NewFile& file, DType dtype, std::span<const std::int64_t> shape,
                                                 std::span<const std::int64_t> strides) {
  return std::make_unique<PtWriter>(file, dtype, shape, strides);
}

}  // namespace msprobe
