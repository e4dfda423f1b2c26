#pragma once
// Writes tensor files (.pt, .npy) from a stream of blocks, so that the bytes are read only once.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/file_io.h"
#include "msprobe/dtype.h"
#include "msprobe/value.h"

namespace msprobe {

class TensorFileWriter {
 public:
  virtual ~TensorFileWriter() = default;
  // The next elements in the order that the format wants: `order` below. Throws: IoError.
  virtual void write(std::span<const std::byte> block) = 0;
  // Completes the file; then it may be committed. `crc`: CRC-32 of all blocks, which the caller has computed beside the
  // writing, maybe on other threads (`.npy`: any). Throws: IoError; StateError if blocks are missing.
  virtual void finish(std::uint32_t crc) = 0;
};

// `.pt`: blocks come in ReadOrder::kStored; `strides` are those of stored_strides() (0: broadcast).
// `.npy`: blocks come in ReadOrder::kLogical; bfloat16, float8, float4 are widened to float32, complex32 to complex64;
// `strides` are ignored.
// Borrows `file`, which must outlive the writer. Throws: IoError, UnsupportedDtype.
[[nodiscard]] std::unique_ptr<TensorFileWriter> make_pt_writer(NewFile& file, DType dtype,
                                                               std::span<const std::int64_t> shape,
                                                               std::span<const std::int64_t> strides);
[[nodiscard]] std::unique_ptr<TensorFileWriter> make_npy_writer(NewFile& file, DType dtype,
                                                                std::span<const std::int64_t> shape);

}  // namespace msprobe
