#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>

#include "bindings.h"
#include "gil.h"
#include "graph.h"
#include "leaf.h"
#include "messages.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace msprobe {
namespace {

// Shows a message of the core: callable(is_warning, text). For as long as the process lives.
nb::handle g_on_message;

void show_messages() {
  GraphDump& dump = process_graph_dump();
  if (dump.has_messages() && g_on_message.is_valid()) msprobe::show_messages(g_on_message, dump.take_messages());
}

// Called by the interpreter in the main thread, in the middle of any code: nothing may be raised there.
int show_pending(void* /*unused*/) {
  try {
    show_messages();
  } catch (const std::exception&) {
    return 0;  // out of memory, or the user's Ctrl-C in the middle of a handler: a message is lost
  }
  return 0;
}

void save(nb::str save_dir_object, nb::str name_object, const DescribedLeaf& leaf) {
  const std::string save_dir = text_of(save_dir_object);
  const std::string name = text_of(name_object);
  const auto* tensor = std::get_if<TensorLeaf>(&leaf.value.node);
  if (tensor == nullptr) throw nb::type_error("graph_save: leaf must be a tensor");
  {
    const GilReleased no_gil;
    GraphDump& dump = process_graph_dump();
    if (leaf.problem.empty()) {
      dump.save(save_dir, name, *tensor);
    } else {
      dump.report_failure(name, leaf.problem);
    }
  }
  show_messages();
}

void step() {
  {
    const GilReleased no_gil;
    process_graph_dump().step();
  }
  show_messages();
}

nb::dict summary() {
  show_messages();
  return summary_dict(process_graph_dump().summary());
}

}  // namespace

GraphDump& process_graph_dump() {
  static auto* const dump = new GraphDump("mindspore");  // never destroyed, see the header
  return *dump;
}

void show_graph_messages_soon() noexcept {
  // A full list of pending calls drops this one; the message is shown with the next.
  if (process_graph_dump().has_messages()) Py_AddPendingCall(show_pending, nullptr);
}

void bind_graph(nb::module_& module) {
  module.def(
      "graph_on_message", [](nb::handle callable) { g_on_message = nb::borrow(callable).release(); }, "callable"_a,
      "Shows messages of graph saves with callable(is_warning, text), in the main thread.");
  module.def(
      "graph_set_rank", [](std::optional<std::int64_t> rank) { process_graph_dump().set_rank(rank); }, "rank"_a.none(),
      "Tells the rank of this process; None while it is unknown.");
  module.def("graph_save", &save, "save_dir"_a, "name"_a, "leaf"_a,
             "Saves a tensor leaf outside a graph, where the operator saves it inside one.");
  module.def("graph_step", &step, "Ends the step of all graph saves.");
  module.def("graph_summary", &summary, "Counts of what graph saves have written and lost, and a text that says so.");
}

}  // namespace msprobe
