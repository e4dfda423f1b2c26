#pragma once
// What an adapter's `describe` returns for an object that the walker does not know: a ready scalar or a tensor with its
// readable parts.

#include <nanobind/nanobind.h>

#include "msprobe/value.h"
#include "tensor_reader.h"

namespace msprobe {

struct DescribedLeaf {
  Value value;  // Scalar or TensorLeaf
  KeepAlive keep_alive;
  std::string problem;  // what could not be read; empty: nothing
};

// The value of a plain Python object for a field that has no {"type", "value"} around it: None, numbers, text, and
// lists and dicts of them. Anything else: its str().
[[nodiscard]] Value plain_value(nanobind::handle object);

// A Python int, float, str, ... as a scalar value. Nothing: not of these types.
[[nodiscard]] std::optional<ScalarValue> scalar_value(nanobind::handle object);

// What str(object) gives. Throws: nanobind::python_error.
[[nodiscard]] std::string str_of(nanobind::handle object);

// The text of a str, as UTF-8 in which lone surrogates stand as three bytes.
[[nodiscard]] std::string text_of(nanobind::handle string);

}  // namespace msprobe
