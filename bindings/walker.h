#pragma once
// Turns a Python object of any nesting into a Value. No policy: what an object of a framework is, its adapter says.

#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

#include "msprobe/value.h"
#include "tensor_reader.h"

namespace msprobe {

// What an adapter tells once, at construction of the debugger. See python/msprobe/common/adapter.py.
struct AdapterTraits {
  explicit AdapterTraits(nanobind::handle adapter);

  nanobind::object describe;                   // describe(object) -> Leaf | None
  std::vector<nanobind::object> tensor_types;  // exact types that the fast path takes
  std::vector<nanobind::object> leaf_types;    // instances go to describe() before containers are looked at
  nanobind::object mapping_type;               // collections.abc.Mapping
  std::string tensor_type_name;                // "torch.Tensor"
  // What stands in a record for a dtype object, and how the core decodes it. Of other dtypes, describe() knows more.
  struct Dtype {
    nanobind::object object;
    std::string text;  // "torch.float32"
    DType dtype;
  };
  std::vector<Dtype> dtypes;
  // A tensor is plain, and the fast path may read it, if its attributes are these objects and its methods give False.
  std::vector<std::pair<nanobind::object, nanobind::object>> plain_attributes;
  std::vector<nanobind::object> plain_methods;
};

// One walk. Thread: needs the GIL. Errors of the user's objects (a raising __repr__, __len__, property) make a
// placeholder; only what is no `Exception` (KeyboardInterrupt) is passed on, as nanobind::python_error.
class Walker {
 public:
  Walker(const AdapterTraits& adapter, bool with_gradient) : adapter_(adapter), with_gradient_(with_gradient) {}

  [[nodiscard]] Value walk(nanobind::handle object);
  // A tensor as a record's only leaf (a gradient).
  [[nodiscard]] TensorLeaf tensor(nanobind::handle object);

  // The tensors that expect a gradient, depth first.
  [[nodiscard]] nanobind::list& gradient_tensors() noexcept { return gradient_tensors_; }

  // What could not be read, as text for the user.
  [[nodiscard]] const std::vector<std::string>& problems() const noexcept { return problems_; }

 private:
  Value walk_nested(nanobind::handle object);
  // In the place of `object`, of which the first `tensors` of gradient_tensors_ are not a part.
  Value placeholder(nanobind::handle object, std::size_t tensors);
  [[nodiscard]] bool is_leaf(nanobind::handle object) const;
  [[nodiscard]] bool is_mapping(nanobind::handle object) const;
  std::optional<Value> plain_tensor(nanobind::handle object);
  std::optional<Value> described(nanobind::handle object);
  std::optional<Value> container(nanobind::handle object);
  Value sequence(nanobind::handle items);
  Value fields(nanobind::handle object, nanobind::handle names);
  Value mapping(nanobind::handle object);
  Value set(nanobind::handle object);

  const AdapterTraits& adapter_;
  const bool with_gradient_;
  KeepAlive keep_alive_;
  nanobind::list gradient_tensors_;
  std::vector<std::string> problems_;
  std::vector<PyObject*> path_;  // the containers that are being walked, outermost first
};

}  // namespace msprobe
