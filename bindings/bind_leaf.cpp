#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "leaf.h"
#include "msprobe/error.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace msprobe {
namespace {

ScalarValue integer_value(nb::handle object) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  if (overflow == 0) return static_cast<std::int64_t>(number);
  const nb::object text = nb::steal(PyNumber_ToBase(object.ptr(), 10));
  if (!text.is_valid()) {  // over the interpreter's limit of digits, which its json could not read back either
    PyErr_Clear();
    return std::monostate{};
  }
  return BigInteger{text_of(text)};
}

DescribedLeaf make_scalar(std::string type, nb::handle value) {
  ScalarValue scalar = std::monostate{};
  if (PyList_Check(value.ptr())) {
    scalar = nb::cast<std::vector<std::optional<std::int64_t>>>(value);
  } else if (auto found = scalar_value(value)) {
    scalar = std::move(*found);
  }
  return {Value{Scalar{std::move(type), std::move(scalar)}}, {}, {}};
}

std::vector<Tensor> read_parts(nb::handle arrays, const std::optional<DType>& dtype, bool conj, bool neg,
                               KeepAlive& keep_alive) {
  std::vector<Tensor> parts;
  for (const nb::handle array : arrays) {
    auto part = read_tensor(array, keep_alive);
    if (!part) throw nb::type_error("Leaf.tensor: a part has no memory that can be read");
    if (dtype) {
      if (dtype_info(*dtype).item_bytes != dtype_info(part->dtype).item_bytes) {
        throw nb::value_error("Leaf.tensor: dtype has another size than the part");
      }
      part->dtype = *dtype;
    }
    // neg(conj(a + bi)) = -a + bi
    part->negate_real = neg;
    part->negate_imag = conj != neg;
    parts.push_back(std::move(*part));
  }
  return parts;
}

}  // namespace

std::optional<ScalarValue> scalar_value(nb::handle object) {
  PyObject* const p = object.ptr();
  if (p == Py_None) return std::monostate{};
  if (PyBool_Check(p)) return p == Py_True;
  if (PyLong_Check(p)) return integer_value(object);
  if (PyFloat_Check(p)) return PyFloat_AS_DOUBLE(p);
  if (PyComplex_Check(p)) return std::complex<double>(PyComplex_RealAsDouble(p), PyComplex_ImagAsDouble(p));
  if (PyUnicode_Check(p)) return text_of(object);
  return std::nullopt;
}

std::string str_of(nb::handle object) {
  const nb::object text = nb::steal(PyObject_Str(object.ptr()));
  if (!text.is_valid()) throw nb::python_error();
  return text_of(text);
}

std::string text_of(nb::handle string) {
  Py_ssize_t size = 0;
  if (const char* text = PyUnicode_AsUTF8AndSize(string.ptr(), &size)) return {text, static_cast<std::size_t>(size)};
  PyErr_Clear();
  const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(string.ptr(), "utf-8", "surrogatepass"));
  if (!bytes.is_valid()) throw nb::python_error();
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

Value plain_value(nb::handle object) {
  if (auto scalar = scalar_value(object)) return {Raw{std::move(*scalar)}};
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
    List list;
    for (const nb::handle item : object) list.push_back(plain_value(item));
    return {std::move(list)};
  }
  if (PyDict_Check(object.ptr())) {
    Map map;
    for (const auto [key, item] : nb::borrow<nb::dict>(object)) map.emplace_back(str_of(key), plain_value(item));
    return {std::move(map)};
  }
  return {Raw{str_of(object)}};
}

void bind_leaf(nb::module_& module) {
  nb::class_<DescribedLeaf>(module, "Leaf", "A value that an adapter has described: what `describe` returns.")
      .def_static(
          "scalar", &make_scalar, "type"_a, "value"_a.none(),
          "A leaf recorded as {\"type\": type, \"value\": value}.\n\n"
          "value: None, bool, int, float, complex, str or a list of int and None; anything else is recorded as null.\n"
          "Raises TypeError on another list.")
      .def_static(
          "tensor",
          [](std::string type, std::string dtype, std::vector<std::optional<std::int64_t>> shape,
             std::optional<bool> requires_grad, nb::iterable data, nb::iterable checksum_data,
             const std::optional<std::string>& element_dtype, bool conj, bool neg, std::optional<nb::bytes> file,
             bool npy, bool checksum_of_npy, std::optional<nb::dict> extra, bool expects_gradient,
             std::optional<std::vector<std::int64_t>> sparse_starts, std::int64_t sparse_run, std::int64_t dense_numel,
             std::string problem) {
            DescribedLeaf described;
            TensorLeaf leaf;
            leaf.type = std::move(type);
            leaf.dtype = std::move(dtype);
            leaf.shape = std::move(shape);
            leaf.requires_grad = requires_grad;
            std::optional<DType> element;
            if (element_dtype) {
              element = dtype_from_name(*element_dtype);
              if (!element) throw nb::value_error("Leaf.tensor: unknown element_dtype");
            }
            leaf.parts = read_parts(data, element, conj, neg, described.keep_alive);
            leaf.checksum_parts = read_parts(checksum_data, std::nullopt, false, false, described.keep_alive);
            if (sparse_starts) leaf.sparse = SparseLayout{std::move(*sparse_starts), sparse_run, dense_numel};
            leaf.file_format = npy ? FileFormat::kNpy : FileFormat::kPt;
            leaf.checksum_of_npy = checksum_of_npy;
            if (file) leaf.file_content = std::string(file->c_str(), file->size());
            if (extra) {
              for (const auto [key, value] : *extra) leaf.extra.emplace_back(str_of(key), plain_value(value));
            }
            leaf.expects_gradient = expects_gradient;
            described.value.node = std::move(leaf);
            described.problem = std::move(problem);
            return described;
          },
          "type"_a, "dtype"_a, "shape"_a, nb::kw_only(), "requires_grad"_a.none() = nb::none(),
          "data"_a = nb::make_tuple(), "checksum_data"_a = nb::make_tuple(), "element_dtype"_a.none() = nb::none(),
          "conj"_a = false, "neg"_a = false, "file"_a.none() = nb::none(), "npy"_a = false, "checksum_of_npy"_a = false,
          "extra"_a.none() = nb::none(), "expects_gradient"_a = false, "sparse_starts"_a.none() = nb::none(),
          "sparse_run"_a = 1, "dense_numel"_a = 0, "problem"_a = "",
          "A tensor leaf.\n\n"
          "type, dtype, shape: as recorded; a None in shape is a ragged dimension.\n"
          "data: arrays in CPU memory (DLPack or buffer protocol) that hold the values; none: all statistics are "
          "null.\n"
          "checksum_data: arrays whose bytes the checksum covers, where they are not those of data.\n"
          "element_dtype: what the elements of data really are, where the array type cannot say it.\n"
          "conj, neg: lazy sign flips that data does not have yet.\n"
          "file: the whole tensor file, where only the framework can write it. npy: the file is .npy, not .pt.\n"
          "checksum_of_npy: the checksum covers the bytes that a .npy file holds (bfloat16 as float32).\n"
          "sparse_starts, sparse_run, dense_numel: element offsets of the runs that data holds, in the dense tensor.\n"
          "problem: what could not be read or written; it counts as a failure of the save.\n"
          "Borrows the arrays until the save is over. Raises TypeError if a part's memory cannot be read.");
}

}  // namespace msprobe
