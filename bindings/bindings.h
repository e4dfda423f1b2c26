#pragma once
// The parts of the module `_core`, one bind_*.cpp each.

#include <nanobind/nanobind.h>

namespace msprobe {

void bind_errors(nanobind::module_& module);
void bind_leaf(nanobind::module_& module);
void bind_debugger(nanobind::module_& module);
void bind_graph(nanobind::module_& module);
void bind_dump(nanobind::module_& module);
void bind_command(nanobind::module_& module);

}  // namespace msprobe
