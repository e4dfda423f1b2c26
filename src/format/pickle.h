#pragma once
// The pickle in a .pt file that describes one tensor, as torch.save writes it.

#include <cstdint>
#include <span>
#include <string>

#include "msprobe/dtype.h"

namespace msprobe {

// Returns the pickle (protocol 2) of a CPU tensor whose elements lie in storage "0" from its beginning.
// `strides`: in elements, none negative, as many as sizes in `shape`. `storage_numel`: elements of the storage.
// dtypes that PyTorch had from its beginning get a typed storage; newer ones an untyped one and the dtype by name, as
// torch.save does it.
// Source: torch/_tensor.py (_reduce_ex_internal) and torch/serialization.py (persistent_id) of PyTorch 2.13; opcodes:
// Lib/pickletools.py of Python.
[[nodiscard]] std::string pickle_tensor(DType dtype, std::span<const std::int64_t> shape,
                                        std::span<const std::int64_t> strides, std::int64_t storage_numel);

}  // namespace msprobe
