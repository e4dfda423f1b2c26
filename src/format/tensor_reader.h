#pragma once
// Reads a tensor from a .pt or .npy file, whoever wrote it: the tool itself, torch.save of PyTorch 1.6 and later,
// np.save. The file can be hostile or damaged: that ends in an exception, never in a crash, a hang or a large
// allocation.
//
// Contiguous elements go straight from the file to the caller. A view in another order is gathered from memory if the
// part of the storage that it covers is small, else from the file piece by piece.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/read_error.h"  // IWYU pragma: export
#include "msprobe/dtype.h"
#include "msprobe/value.h"

namespace msprobe {

struct TensorFileInfo {
  FileFormat format = FileFormat::kPt;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // of the elements in the file, in elements
  std::int64_t first_element = 0;     // where the tensor begins in its storage, in elements
  std::uint64_t stored_bytes = 0;     // of the whole storage, which other tensors may have shared; unpacked
  bool is_contiguous = true;          // the elements stand in C order; flips are not looked at
  bool negate_real = false;           // sign flips of a lazy view (conj, neg), which read() applies; as in TensorView
  bool negate_imag = false;
  bool requires_grad = false;
  std::string device;  // where PyTorch had it: "cpu", "cuda:0", "npu:0"; empty for .npy. Text of the file, not checked
};

// Thread: any for the const members.
class TensorFileReader {
 public:
  // Opens the file and reads what describes the tensor; .pt and .npy are told apart by content, not by name.
  // Throws: IoError; FormatError if the file is damaged, or neither of both; UnsupportedFile if it holds something that
  // cannot be read here (see read_error.h), among it a tensor of more than 1 TiB that is not all in the file, and one
  // that is deflated and over 256 MiB.
  explicit TensorFileReader(const std::string& path);
  TensorFileReader(const TensorFileReader&) = delete;
  TensorFileReader& operator=(const TensorFileReader&) = delete;
  TensorFileReader(TensorFileReader&&) noexcept;
  TensorFileReader& operator=(TensorFileReader&&) noexcept;
  ~TensorFileReader();

  [[nodiscard]] const TensorFileInfo& info() const noexcept;
  [[nodiscard]] std::int64_t numel() const noexcept;
  // Logical bytes: C order, broadcast dimensions repeated.
  [[nodiscard]] std::uint64_t total_bytes() const noexcept;
  // Bytes that read() is best given at a time: 256 KiB, and up to 4 MiB where that spares reading lines of the storage
  // many times. Whole elements.
  [[nodiscard]] std::size_t block_bytes() const noexcept;

  // Reads the logical bytes [offset, offset + out.size()), sign flips applied; both are multiples of the element size.
  // Memory that it keeps: none for contiguous elements; else the covered part of the storage up to 64 MiB; the whole
  // storage up to 256 MiB (512 MiB for a moment) if it is deflated.
  // Throws: IoError; FormatError if the file ends early or deflated data is damaged; StateError if the range is not
  // within the tensor.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  // Recomputes the CRC-32 of all entries of a .pt; a .npy has none. Memory: as read().
  // Throws: IoError; FormatError with the name of the entry; UnsupportedFile as read().
  void verify_checksums() const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace msprobe
