#pragma once
// What a user can hand to `save`: a tensor, a plain value, or any nesting of them.

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "msprobe/tensor_view.h"

namespace msprobe {

// One piece of memory of a tensor, with its own shape. `owner` keeps the memory alive; empty: the caller does,
// until `save` returns.
struct Tensor {
  const std::byte* data = nullptr;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements
  bool negate_real = false;
  bool negate_imag = false;
  std::shared_ptr<const void> owner;

  [[nodiscard]] TensorView view() const noexcept { return {data, dtype, shape, strides, negate_real, negate_imag}; }
};

enum class FileFormat : std::uint8_t { kPt, kNpy };

struct Value;

// Where the stored values of a sparse tensor stand in the dense one. `starts` are element offsets in C order,
// ascending, one for each run of `run_length` stored elements.
struct SparseLayout {
  std::vector<std::int64_t> starts;
  std::int64_t run_length = 1;
  std::int64_t dense_numel = 0;
};

// A tensor or an array as it is recorded.
struct TensorLeaf {
  std::string type;                                // "torch.Tensor", "numpy.ndarray"
  std::string dtype;                               // as the framework spells it: "torch.float32", "Float32"
  std::vector<std::optional<std::int64_t>> shape;  // nothing: a ragged dimension
  std::optional<bool> requires_grad;               // nothing: the framework has no such field
  // The values: one part as a rule, several for a nested tensor, none where there is nothing to read (meta, fake).
  std::vector<Tensor> parts;
  // The bytes that the checksum covers, where they are not those of `parts` (quantized tensors).
  std::vector<Tensor> checksum_parts;
  bool checksum_of_npy = false;        // the checksum covers the bytes as a .npy file holds them (bfloat16 as float32)
  std::optional<SparseLayout> sparse;  // then `parts` holds the stored values only
  FileFormat file_format = FileFormat::kPt;
  // The whole tensor file, where only the framework can write it; the core stores it as it is.
  std::optional<std::string> file_content;
  std::vector<std::pair<std::string, Value>> extra;  // further fields, such as device_mesh and placements
  bool expects_gradient = false;                     // a gradient may come for this leaf
};

// An integer of any size as decimal digits, for Python integers over 64 bits.
struct BigInteger {
  std::string digits;
};

using ScalarValue = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, BigInteger, double,
                                 std::complex<double>, std::string, std::vector<std::optional<std::int64_t>>>;

// `{"type": type, "value": value}`; monostate is null.
struct Scalar {
  std::string type;
  ScalarValue value;
};

struct Null {};
using List = std::vector<Value>;
using Map = std::vector<std::pair<std::string, Value>>;

// A record or a part of one. `Raw` values have no {"type", "value"} around them.
struct Raw {
  ScalarValue value;
};

struct Value {
  std::variant<Null, Scalar, TensorLeaf, List, Map, Raw> node;
};

// Returns a null. It stands here for Clang too: with libstdc++ it cannot compile the pair of a Map before it has seen a
// Value being destroyed.
[[nodiscard]] inline Value null_value() { return {}; }

}  // namespace msprobe
