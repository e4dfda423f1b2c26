#include "tensor_reader.h"

#include <array>
#include <bit>
#include <string_view>

#include "dlpack_abi.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

std::optional<DType> dtype_of(const dlpack::DataType& type) noexcept {
  struct Row {
    std::uint8_t code, bits, lanes;
    DType dtype;
  };
  // Codes: DLDataTypeCode of DLPack 1.2.
  static constexpr Row kRows[] = {
      {0, 8, 1, DType::kInt8},           {0, 16, 1, DType::kInt16},
      {0, 32, 1, DType::kInt32},         {0, 64, 1, DType::kInt64},
      {1, 8, 1, DType::kUint8},          {1, 16, 1, DType::kUint16},
      {1, 32, 1, DType::kUint32},        {1, 64, 1, DType::kUint64},
      {2, 16, 1, DType::kFloat16},       {2, 32, 1, DType::kFloat32},
      {2, 64, 1, DType::kFloat64},       {4, 16, 1, DType::kBfloat16},
      {5, 32, 1, DType::kComplex32},     {5, 64, 1, DType::kComplex64},
      {5, 128, 1, DType::kComplex128},   {6, 8, 1, DType::kBool},
      {10, 8, 1, DType::kFloat8E4m3fn},  {11, 8, 1, DType::kFloat8E4m3fnuz},
      {12, 8, 1, DType::kFloat8E5m2},    {13, 8, 1, DType::kFloat8E5m2fnuz},
      {14, 8, 1, DType::kFloat8E8m0fnu}, {17, 4, 2, DType::kFloat4E2m1fnX2},
  };
  for (const Row& row : kRows) {
    if (row.code == type.code && row.bits == type.bits && row.lanes == type.lanes) return row.dtype;
  }
  return std::nullopt;
}

std::optional<Tensor> from_dlpack(const dlpack::Array& array) {
  const auto dtype = dtype_of(array.dtype);
  if (!dtype || array.device.type != dlpack::kCpu) return std::nullopt;
  Tensor tensor;
  tensor.dtype = *dtype;
  tensor.shape.assign(array.shape, array.shape + array.ndim);
  if (array.strides != nullptr) {
    tensor.strides.assign(array.strides, array.strides + array.ndim);
  } else {
    tensor.strides.resize(tensor.shape.size());
    std::int64_t stride = 1;
    for (std::size_t i = tensor.shape.size(); i-- > 0; stride *= tensor.shape[i]) tensor.strides[i] = stride;
  }
  if (array.data == nullptr && numel(tensor.view()) > 0) return std::nullopt;
  tensor.data = static_cast<const std::byte*>(array.data) + array.byte_offset;
  return tensor;
}

// The function of a type, remembered for the few types that a run has.
using BorrowFunction = int (*)(void*, dlpack::Array*);
BorrowFunction borrow_function(PyTypeObject* type) {
  struct Known {
    PyTypeObject* type = nullptr;  // a reference of ours, so that no later type gets its address
    BorrowFunction borrow = nullptr;
  };
  static std::array<Known, 8> known;
  static std::size_t count = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (known[i].type == type) return known[i].borrow;
  }
  const nb::object capsule =
      nb::getattr(nb::handle(reinterpret_cast<PyObject*>(type)), "__dlpack_c_exchange_api__", nb::none());
  BorrowFunction found = nullptr;
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::kExchangeCapsule) != 0) {
    const auto* api =
        static_cast<const dlpack::ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), dlpack::kExchangeCapsule));
    if (api->version.major == 1) found = api->borrow;
  }
  if (count < known.size()) {
    Py_INCREF(type);
    known[count++] = {type, found};
  }
  return found;
}

std::optional<Tensor> read_buffer(nb::handle array, KeepAlive& keep_alive) {
  auto* const buffer = new Py_buffer();
  if (PyObject_GetBuffer(array.ptr(), buffer, PyBUF_RECORDS_RO) != 0) {
    delete buffer;
    PyErr_Clear();
    return std::nullopt;
  }
  keep_alive.push_back(nb::capsule(buffer, [](void* held) noexcept {
    auto* const view = static_cast<Py_buffer*>(held);
    PyBuffer_Release(view);
    delete view;
  }));
  struct Row {
    std::string_view format;
    Py_ssize_t bytes;
    DType dtype;
  };
  // Format characters of the struct module; `l` and `q` are told apart by their size.
  static constexpr Row kRows[] = {
      {"?", 1, DType::kBool},         {"b", 1, DType::kInt8},    {"B", 1, DType::kUint8},
      {"h", 2, DType::kInt16},        {"H", 2, DType::kUint16},  {"i", 4, DType::kInt32},
      {"I", 4, DType::kUint32},       {"l", 8, DType::kInt64},   {"L", 8, DType::kUint64},
      {"q", 8, DType::kInt64},        {"Q", 8, DType::kUint64},  {"e", 2, DType::kFloat16},
      {"f", 4, DType::kFloat32},      {"d", 8, DType::kFloat64}, {"Zf", 8, DType::kComplex64},
      {"Zd", 16, DType::kComplex128},
  };
  std::string_view format = buffer->format != nullptr ? buffer->format : "B";
  if (format.size() > 1 && std::string_view("@=^").find(format.front()) != std::string_view::npos) {
    format.remove_prefix(1);  // native byte order, in NumPy's case also of an array that is not aligned
  }
  for (const Row& row : kRows) {
    if (row.format != format || row.bytes != buffer->itemsize) continue;
    Tensor tensor;
    tensor.dtype = row.dtype;
    tensor.data = static_cast<const std::byte*>(buffer->buf);
    for (int i = 0; i < buffer->ndim; ++i) {
      if (buffer->strides[i] % buffer->itemsize != 0) return std::nullopt;
      tensor.shape.push_back(buffer->shape[i]);
      tensor.strides.push_back(buffer->strides[i] / buffer->itemsize);
    }
    return tensor;
  }
  return std::nullopt;
}

std::optional<Tensor> read_capsule(nb::handle array, KeepAlive& keep_alive) {
  try {
    nb::object capsule = array.attr("__dlpack__")();
    auto* managed = static_cast<dlpack::ManagedArray*>(PyCapsule_GetPointer(capsule.ptr(), dlpack::kArrayCapsule));
    if (managed == nullptr) {
      PyErr_Clear();
      return std::nullopt;
    }
    auto tensor = from_dlpack(managed->array);
    keep_alive.push_back(std::move(capsule));  // frees the array, since its name stays "dltensor"
    return tensor;
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    return std::nullopt;
  }
}

}  // namespace

std::optional<Tensor> read_tensor(nb::handle array, KeepAlive& keep_alive) {
  if (const auto borrow = borrow_function(Py_TYPE(array.ptr()))) {
    dlpack::Array borrowed;
    if (borrow(array.ptr(), &borrowed) == 0) {
      keep_alive.push_back(nb::borrow(array));
      return from_dlpack(borrowed);
    }
    PyErr_Clear();
  }
  if (PyObject_CheckBuffer(array.ptr()) != 0) return read_buffer(array, keep_alive);
  if (nb::hasattr(array, "__dlpack__")) return read_capsule(array, keep_alive);
  return std::nullopt;
}

}  // namespace msprobe
