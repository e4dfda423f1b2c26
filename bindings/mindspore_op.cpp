// The operator MsprobeSave of MindSpore graphs, found by name in this library: ops.Custom("{_core}:MsprobeSave",
// func_type="aot"). MindSpore's interface of such functions: https://www.mindspore.cn/tutorials, "AOT-type custom
// operator". Needs none of its headers.
//
// Inputs: the point, a constant uint8 tensor with "{save_dir}\0{name}", and the tensor to save, in C order in host
// memory. Output: an int32 that nobody reads.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph.h"

namespace {

using msprobe::DType;

// MindSpore's spelling of the dtypes that a CPU graph can hold.
struct Spelling {
  DType dtype;
  std::string_view name;
};
constexpr std::array kSpellings{
    Spelling{DType::kBool, "Bool"},
    Spelling{DType::kUint8, "UInt8"},
    Spelling{DType::kInt8, "Int8"},
    Spelling{DType::kUint16, "UInt16"},
    Spelling{DType::kInt16, "Int16"},
    Spelling{DType::kUint32, "UInt32"},
    Spelling{DType::kInt32, "Int32"},
    Spelling{DType::kUint64, "UInt64"},
    Spelling{DType::kInt64, "Int64"},
    Spelling{DType::kFloat16, "Float16"},
    Spelling{DType::kBfloat16, "BFloat16"},
    Spelling{DType::kFloat32, "Float32"},
    Spelling{DType::kFloat8E4m3fn, "Float8E4M3FN"},
    Spelling{DType::kFloat8E5m2, "Float8E5M2"},
    Spelling{DType::kFloat64, "Float64"},
    Spelling{DType::kComplex64, "Complex64"},
    Spelling{DType::kComplex128, "Complex128"},
};

// By the name that MindSpore gives the operator: NumPy's, and of its own for float8.
std::optional<DType> dtype_of(std::string_view name) {
  if (name == "float8e4m3fn") return DType::kFloat8E4m3fn;
  if (name == "float8e5m2") return DType::kFloat8E5m2;
  return msprobe::dtype_from_name(name);
}

msprobe::TensorLeaf leaf_of(const void* data, std::span<const std::int64_t> shape, std::string_view dtype) {
  msprobe::TensorLeaf leaf;
  leaf.type = "mindspore.Tensor";
  leaf.dtype = dtype;
  leaf.shape.assign(shape.begin(), shape.end());
  leaf.file_format = msprobe::FileFormat::kNpy;
  leaf.checksum_of_npy = true;
  const auto known = dtype_of(dtype);
  if (!known) return leaf;
  const auto* spelling = std::ranges::find(kSpellings, *known, &Spelling::dtype);
  if (spelling != kSpellings.end()) leaf.dtype = spelling->name;

  msprobe::Tensor part;
  part.data = static_cast<const std::byte*>(data);
  part.dtype = *known;
  part.shape.assign(shape.begin(), shape.end());
  part.strides.resize(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    part.strides[i] = stride;
    stride *= std::max<std::int64_t>(shape[i], 1);
  }
  leaf.parts.push_back(std::move(part));
  return leaf;
}

constexpr int kPoint = 0;
constexpr int kTensor = 1;
constexpr int kOutput = 2;
constexpr int kParameterCount = 3;
constexpr int kWrongCall = 1;
constexpr int kFailed = 2;

}  // namespace

extern "C" {

// Returns the shape of the output. MindSpore calls it while it compiles, and for a dynamic shape before each run.
// The return type is what MindSpore expects; both sides are C++.
[[gnu::visibility("default")]] std::vector<std::int64_t> MsprobeSaveInferShape(int* /*ndims*/,
                                                                               std::int64_t** /*shapes*/,
                                                                               void* /*extra*/) {
  return {1};
}

// Returns 0. Any other value ends the graph with an error: with MSPROBE_ON_ERROR=raise a failed save does.
// Thread: any of MindSpore's, without the GIL.
[[gnu::visibility("default")]] int MsprobeSave(int count, void** parameters, int* ndims, std::int64_t** shapes,
                                               const char** dtypes, void* /*stream*/, void* /*extra*/) {
  if (count != kParameterCount || ndims[kPoint] != 1) return kWrongCall;
  const std::string_view point(static_cast<const char*>(parameters[kPoint]),
                               static_cast<std::size_t>(shapes[kPoint][0]));
  const std::size_t separator = point.find('\0');
  if (separator == std::string_view::npos) return kWrongCall;
  *static_cast<std::int32_t*>(parameters[kOutput]) = 0;
  int status = 0;
  try {
    const std::span shape(shapes[kTensor], static_cast<std::size_t>(ndims[kTensor]));
    msprobe::process_graph_dump().save(point.substr(0, separator), point.substr(separator + 1),
                                       leaf_of(parameters[kTensor], shape, dtypes[kTensor]));
  } catch (const std::exception&) {
    status = kFailed;  // kept and told by the error book
  }
  msprobe::show_graph_messages_soon();
  return status;
}

}  // extern "C"
