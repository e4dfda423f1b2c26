#pragma once
// Reads the pickle of a .pt file, as far as it describes one tensor. Nothing that the pickle names is executed: a call
// of one of the functions that rebuild a tensor becomes a description, every other one a name.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "msprobe/dtype.h"

namespace msprobe {

struct PickledStorage {
  std::string key;             // the entry data/{key} of the archive
  std::string device;          // "cpu", "cuda:0", "npu:0": where it was
  std::optional<DType> dtype;  // nothing: untyped, `numel` counts bytes
  std::int64_t numel = 0;      // not negative
};

struct PickledTensor {
  PickledStorage storage;
  DType dtype = DType::kFloat32;
  std::int64_t offset = 0;            // of the first element in the storage, in elements
  std::vector<std::int64_t> shape;    // not negative
  std::vector<std::int64_t> strides;  // in elements, as many as sizes; not checked against the storage
  bool requires_grad = false;
  bool is_parameter = false;
  bool is_conjugated = false;  // the flags of a lazy view: its values are not those in the storage
  bool is_negated = false;
};

// Longest pickle that should be read: that of a tensor has some hundred bytes.
inline constexpr std::size_t kMaxPickleBytes = std::size_t{256} << 10U;

// Reads `pickle` (protocols 2 to 5). `path` is for messages. Memory: 300 times the pickle at most. Thread: any.
// Throws: FormatError if it is damaged; UnsupportedFile if it holds something else than one dense tensor.
// Source: pickletools of Python 3.13; torch/_weights_only_unpickler.py and torch/_utils.py of PyTorch 2.13.
[[nodiscard]] PickledTensor unpickle_tensor(std::span<const std::byte> pickle, const std::string& path);

}  // namespace msprobe
