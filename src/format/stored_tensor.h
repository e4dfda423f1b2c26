#pragma once
// Where the elements of a tensor stand in a file: what the parsers of .pt and .npy find out and TensorFileReader reads.

#include <cstdint>
#include <memory>

#include "format/file_io.h"
#include "format/tensor_reader.h"
#include "format/zip_reader.h"

namespace msprobe {

struct StoredTensor {
  TensorFileInfo info;                   // but is_contiguous
  std::uint64_t storage_offset = 0;      // in the file
  std::unique_ptr<const ZipReader> zip;  // .pt: borrows the file
  const ZipMember* deflated = nullptr;   // the storage, if it has to be unpacked
};

// Both read only what describes the tensor. `file` must outlive the result. Whether the elements lie within the storage
// is checked by the caller. Throw: IoError, FormatError, UnsupportedFile.
[[nodiscard]] StoredTensor read_pt_description(const InputFile& file);
// Source: numpy.lib.format, versions 1.0 to 3.0.
[[nodiscard]] StoredTensor read_npy_description(const InputFile& file);

}  // namespace msprobe
