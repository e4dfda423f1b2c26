#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "msprobe/command_line.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace msprobe {

void bind_command(nb::module_& module) {
  module.def("run_command_line", &run_command_line, "arguments"_a, nb::call_guard<nb::gil_scoped_release>(),
             "Runs `msprobe ARGUMENTS...`; returns the exit status.");
}

}  // namespace msprobe
