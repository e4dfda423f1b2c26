#include "bindings.h"

NB_MODULE(_core, module) {
  module.doc() = "The C++ core of msprobe. Private: use msprobe.pytorch or msprobe.mindspore.";
  // A script that ends with a graph alive holds its tickets until the very end; that is no leak.
  nanobind::set_leak_warnings(false);
  msprobe::bind_errors(module);
  msprobe::bind_leaf(module);
  msprobe::bind_debugger(module);
  msprobe::bind_graph(module);
  msprobe::bind_dump(module);
  msprobe::bind_command(module);
}
