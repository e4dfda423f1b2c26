#include "bindings.h"
#include "msprobe/error.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

// The Python classes, for as long as the process lives.
struct ErrorTypes {
  nb::handle error, config, dtype, format, io, state;
};
ErrorTypes g_types;

nb::handle make_type(nb::module_& module, const char* name, const char* doc, const nb::object& bases) {
  const std::string full = std::string("msprobe.") + name;
  const nb::object type = nb::steal(PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr));
  if (!type.is_valid()) throw nb::python_error();
  module.attr(name) = type;
  return nb::object(type).release();
}

void translate(const std::exception_ptr& error, void* /*payload*/) {
  const auto set = [](nb::handle type, const std::exception& what) { PyErr_SetString(type.ptr(), what.what()); };
  try {
    std::rethrow_exception(error);
  } catch (const ConfigError& e) {
    set(g_types.config, e);
  } catch (const UnsupportedDtype& e) {
    set(g_types.dtype, e);
  } catch (const FormatError& e) {
    set(g_types.format, e);
  } catch (const IoError& e) {
    set(g_types.io, e);
  } catch (const StateError& e) {
    set(g_types.state, e);
  } catch (const Error& e) {
    set(g_types.error, e);
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  const auto base = [](nb::handle type) { return nb::make_tuple(type); };
  g_types.error = make_type(module, "Error", "Base of all errors of msprobe.", base(PyExc_RuntimeError));
  g_types.config = make_type(module, "ConfigError", "config.json or an argument of PrecisionDebugger is wrong.",
                             nb::make_tuple(g_types.error, nb::handle(PyExc_ValueError)));
  g_types.dtype = make_type(module, "UnsupportedDtype", "The dtype cannot be handled.", base(g_types.error));
  g_types.format = make_type(module, "FormatError", "A file is not what its format demands.", base(g_types.error));
  g_types.io = make_type(module, "IoError", "The operating system refused a read or a write.", base(g_types.error));
  g_types.state = make_type(module, "StateError", "The debugger is not in a state for this call.", base(g_types.error));
  nb::register_exception_translator(translate);
}

}  // namespace msprobe
