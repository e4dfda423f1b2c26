#include "walker.h"

#include <algorithm>

#include "leaf.h"
#include "msprobe/error.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

// Python's json cannot read 1,000 levels, and its limit counts other frames too.
constexpr std::size_t kMaxDepth = 400;

bool is_swallowed(const nb::python_error& error) { return error.matches(PyExc_Exception); }

std::string class_name(nb::handle object) {
  const nb::handle type = object.type();
  try {
    std::string name = text_of(type.attr("__qualname__"));
    std::string module = text_of(type.attr("__module__"));
    return module == "builtins" ? name : module + "." + name;
  } catch (nb::python_error& error) {
    if (!is_swallowed(error)) throw;
    return "object";
  }
}

nb::list sorted_by_repr(nb::handle set) {
  nb::list items = nb::steal<nb::list>(PySequence_List(set.ptr()));
  if (!items.is_valid()) throw nb::python_error();
  try {
    nb::dict key;
    key["key"] = nb::module_::import_("builtins").attr("repr");
    items.attr("sort")(**key);
  } catch (nb::python_error& error) {
    if (!is_swallowed(error)) throw;  // an element has no repr: the set's own order
  }
  return items;
}

}  // namespace

AdapterTraits::AdapterTraits(nb::handle adapter)
    : describe(adapter.attr("describe")),
      mapping_type(nb::module_::import_("collections.abc").attr("Mapping")),
      tensor_type_name(text_of(adapter.attr("tensor_type_name"))) {
  for (const auto [object, name] : nb::borrow<nb::dict>(adapter.attr("dtypes"))) {
    const auto dtype = dtype_from_name(text_of(name));
    if (!dtype) throw nb::value_error("the adapter names a dtype that the core does not know");
    dtypes.push_back({nb::borrow(object), str_of(object), *dtype});
  }
  for (const nb::handle type : adapter.attr("tensor_types")) tensor_types.push_back(nb::borrow(type));
  for (const nb::handle type : adapter.attr("leaf_types")) leaf_types.push_back(nb::borrow(type));
  for (const auto [name, wanted] : nb::borrow<nb::dict>(adapter.attr("plain_attributes"))) {
    plain_attributes.emplace_back(nb::borrow(name), nb::borrow(wanted));
  }
  for (const nb::handle name : adapter.attr("plain_methods")) plain_methods.push_back(nb::borrow(name));
}

Value Walker::walk(nb::handle object) {
  PyObject* const p = object.ptr();
  if (p == Py_None) return {Null{}};
  if (PyBool_Check(p)) return {Scalar{"bool", p == Py_True}};
  if (PyLong_CheckExact(p) || PyFloat_CheckExact(p) || PyUnicode_CheckExact(p) || PyComplex_CheckExact(p)) {
    return {Scalar{Py_TYPE(p)->tp_name, std::move(*scalar_value(object))}};
  }
  const std::size_t tensors = nb::len(gradient_tensors_);
  try {
    if (auto value = plain_tensor(object)) return std::move(*value);
    return walk_nested(object);
  } catch (nb::python_error& error) {
    if (!is_swallowed(error)) throw;
  } catch (const Error& error) {
    problems_.emplace_back(error.what());
  }
  return placeholder(object, tensors);
}

Value Walker::placeholder(nb::handle object, std::size_t tensors) {
  PyList_SetSlice(gradient_tensors_.ptr(), static_cast<Py_ssize_t>(tensors), PY_SSIZE_T_MAX, nullptr);
  return {Scalar{class_name(object), std::monostate{}}};
}

// By the real type: isinstance believes what an object's __class__ claims (a mock, a weak proxy), and a framework's C
// code then reads it as what it is not.
bool Walker::is_leaf(nb::handle object) const {
  return std::any_of(adapter_.leaf_types.begin(), adapter_.leaf_types.end(), [&](const nb::object& type) {
    return PyType_IsSubtype(Py_TYPE(object.ptr()), reinterpret_cast<PyTypeObject*>(type.ptr())) != 0;
  });
}

bool Walker::is_mapping(nb::handle object) const {
  return PyDict_Check(object.ptr()) || nb::isinstance(object, adapter_.mapping_type);
}

TensorLeaf Walker::tensor(nb::handle object) {
  Value value = walk(object);
  if (auto* leaf = std::get_if<TensorLeaf>(&value.node)) return std::move(*leaf);
  TensorLeaf unreadable;
  unreadable.type = class_name(object);
  return unreadable;
}

std::optional<Value> Walker::plain_tensor(nb::handle object) {
  const auto same_type = [&](const nb::object& type) { return type.ptr() == object.type().ptr(); };
  if (std::none_of(adapter_.tensor_types.begin(), adapter_.tensor_types.end(), same_type)) return std::nullopt;
  for (const auto& [name, wanted] : adapter_.plain_attributes) {
    if (!object.attr(name).is(wanted)) return std::nullopt;
  }
  for (const nb::object& name : adapter_.plain_methods) {
    if (!object.attr(name)().is(nb::handle(Py_False))) return std::nullopt;
  }
  // Asked of the tensor, since DLPack exports a sub-byte integer as the byte that it is stored in.
  const nb::object dtype = object.attr("dtype");
  const auto known = std::find_if(adapter_.dtypes.begin(), adapter_.dtypes.end(),
                                  [&](const AdapterTraits::Dtype& row) { return row.object.is(dtype); });
  if (known == adapter_.dtypes.end()) return std::nullopt;
  auto part = read_tensor(object, keep_alive_);
  if (!part || part->dtype != known->dtype) return std::nullopt;
  TensorLeaf leaf;
  leaf.type = adapter_.tensor_type_name;
  leaf.dtype = known->text;
  leaf.shape.assign(part->shape.begin(), part->shape.end());
  leaf.requires_grad = object.attr("requires_grad").is(nb::handle(Py_True));
  leaf.expects_gradient = with_gradient_ && *leaf.requires_grad;
  if (leaf.expects_gradient) gradient_tensors_.append(object);
  leaf.parts.push_back(std::move(*part));
  return Value{std::move(leaf)};
}

std::optional<Value> Walker::described(nb::handle object) {
  const nb::object answer = adapter_.describe(object);
  DescribedLeaf* leaf = nullptr;
  if (!nb::try_cast<DescribedLeaf*>(answer, leaf) || leaf == nullptr) return std::nullopt;
  std::move(leaf->keep_alive.begin(), leaf->keep_alive.end(), std::back_inserter(keep_alive_));
  if (!leaf->problem.empty()) problems_.push_back(std::move(leaf->problem));
  if (auto* tensor = std::get_if<TensorLeaf>(&leaf->value.node)) {
    tensor->expects_gradient = tensor->expects_gradient && with_gradient_;
    if (tensor->expects_gradient) gradient_tensors_.append(object);
  }
  return std::move(leaf->value);
}

Value Walker::walk_nested(nb::handle object) {
  const std::size_t tensors = nb::len(gradient_tensors_);
  const bool builtin_container =
      PyList_CheckExact(object.ptr()) || PyTuple_CheckExact(object.ptr()) || PyDict_CheckExact(object.ptr());
  if (!builtin_container && is_leaf(object)) {
    if (auto value = described(object)) return std::move(*value);
    return placeholder(object, tensors);
  }
  const bool in_itself = std::find(path_.begin(), path_.end(), object.ptr()) != path_.end();
  if (in_itself || path_.size() >= kMaxDepth) return placeholder(object, tensors);
  path_.push_back(object.ptr());
  std::optional<Value> value;
  try {
    value = container(object);
  } catch (nb::python_error& error) {
    path_.pop_back();
    if (!is_swallowed(error)) throw;
    return placeholder(object, tensors);
  }
  path_.pop_back();
  if (value) return std::move(*value);
  if (auto scalar = scalar_value(object)) return {Scalar{class_name(object), std::move(*scalar)}};
  if ((value = described(object))) return std::move(*value);
  return placeholder(object, tensors);
}

std::optional<Value> Walker::container(nb::handle object) {
  PyObject* const p = object.ptr();
  if (PyTuple_Check(p) && !PyTuple_CheckExact(p) && nb::hasattr(object, "_fields"))
    return fields(object, object.attr("_fields"));
  if (!PyType_Check(p) && nb::hasattr(object.type(), "__dataclass_fields__")) {
    const nb::object dataclass_fields = nb::module_::import_("dataclasses").attr("fields")(object);
    nb::list names;
    for (const nb::handle field : dataclass_fields) names.append(field.attr("name"));
    return fields(object, names);
  }
  if (PyList_Check(p) || PyTuple_Check(p)) return sequence(nb::steal(PySequence_List(p)));
  if (is_mapping(object)) return mapping(object);
  if (PyAnySet_Check(p)) return set(object);
  return std::nullopt;
}

Value Walker::sequence(nb::handle items) {
  if (!items.is_valid()) throw nb::python_error();
  List list;
  list.reserve(nb::len(items));
  for (const nb::handle item : items) list.push_back(walk(item));
  return {std::move(list)};
}

Value Walker::fields(nb::handle object, nb::handle names) {
  Map map;
  for (const nb::handle name : names) {
    Value child{Null{}};
    try {
      const nb::object item = object.attr(name);
      child = walk(item);
      keep_alive_.push_back(item);
    } catch (nb::python_error& error) {
      if (!is_swallowed(error)) throw;
      child = {Scalar{class_name(error.value()), std::monostate{}}};  // never set, or a property that raises
    }
    map.emplace_back(str_of(name), std::move(child));
  }
  return {std::move(map)};
}

Value Walker::mapping(nb::handle object) {
  const nb::object items = nb::steal(PyMapping_Items(object.ptr()));
  if (!items.is_valid()) throw nb::python_error();
  Map map;
  map.reserve(nb::len(items));
  for (const nb::handle item : items) {
    const nb::object original = item[0];
    std::string key;
    try {
      key = str_of(original);
    } catch (nb::python_error& error) {
      if (!is_swallowed(error)) throw;
      key = class_name(original);  // its __str__ raises
    }
    map.emplace_back(std::move(key), walk(nb::object(item[1])));
  }
  keep_alive_.push_back(items);
  return {std::move(map)};
}

Value Walker::set(nb::handle object) { return sequence(sorted_by_repr(object)); }

}  // namespace msprobe
