#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>

#include "bindings.h"
#include "leaf.h"
#include "msprobe/debugger.h"
#include "msprobe/error.h"
#include "progress.h"
#include "walker.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace msprobe {
namespace {

std::string found(nb::handle object) { return text_of(object.type().attr("__name__")); }

std::optional<std::string> text_argument(nb::handle value, const char* name) {
  if (value.is_none()) return std::nullopt;
  if (!PyUnicode_Check(value.ptr())) {
    throw ConfigError(std::string("argument ") + name + ": found " + found(value) + ", allowed is str");
  }
  return text_of(value);
}

FilterItem filter_item(nb::handle item) {
  if (PyLong_Check(item.ptr()) && !PyBool_Check(item.ptr())) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(item.ptr(), &overflow);
    if (overflow == 0) return static_cast<std::int64_t>(number);
  }
  if (PyUnicode_Check(item.ptr())) return text_of(item);
  return Unusable{found(item) + " " + text_of(nb::repr(item))};
}

std::optional<std::vector<FilterItem>> filter_argument(nb::handle value, const char* name) {
  if (value.is_none()) return std::nullopt;
  if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr())) {
    throw ConfigError(std::string("argument ") + name + ": found " + found(value) +
                      ", allowed is a list of int or str such as [0, \"3-5\"]");
  }
  std::vector<FilterItem> items;
  for (const nb::handle item : value) items.push_back(filter_item(item));
  return items;
}

// The debugger as Python sees it: converts, releases the GIL, makes one core call, converts back.
class PyDebugger {
 public:
  PyDebugger(nb::handle adapter, nb::handle config_path, nb::handle task, nb::handle dump_path, nb::handle level,
             nb::handle step)
      : traits_(adapter), on_message_(adapter.attr("on_message")) {
    ConfigOverrides overrides;
    overrides.task = text_argument(task, "task");
    overrides.dump_path = text_argument(dump_path, "dump_path");
    overrides.level = text_argument(level, "level");
    overrides.step = filter_argument(step, "step");
    Config config = load_config(text_argument(config_path, "config_path").value_or(""), overrides);
    FrameworkHooks hooks;
    hooks.name = text_of(adapter.attr("framework"));
    hooks.rank = [rank = nb::object(adapter.attr("rank"))] { return ask_rank(rank); };
    hooks.drain_progress = show_drain_progress;
    const std::vector<std::string> warnings = config.warnings;
    debugger_ = std::make_unique<Debugger>(std::move(config), std::move(hooks));
    for (const std::string& warning : warnings) on_message_(true, warning);
  }

  nb::object save(nb::handle variable, nb::handle name, nb::handle save_backward) {
    if (!PyUnicode_Check(name.ptr())) throw nb::type_error(("save: name must be str, found " + found(name)).c_str());
    if (!PyBool_Check(save_backward.ptr())) {
      throw nb::type_error(("save: save_backward must be bool, found " + found(save_backward)).c_str());
    }
    if (!debugger_->is_active()) return nb::none();
    const bool with_gradient = save_backward.ptr() == Py_True;
    Walker walker(traits_, with_gradient);
    Value value = walker.walk(variable);
    const std::string text = text_of(name);
    Ticket ticket;
    {
      const nb::gil_scoped_release no_gil;
      ticket = debugger_->save(text, std::move(value), with_gradient);
    }
    show_messages();
    if (!ticket.expects_gradients()) return nb::none();
    return nb::make_tuple(std::move(ticket), walker.gradient_tensors());
  }

  void save_gradient(const Ticket& ticket, std::size_t leaf, nb::handle gradient) {
    Walker walker(traits_, false);
    TensorLeaf tensor = walker.tensor(gradient);
    {
      const nb::gil_scoped_release no_gil;
      debugger_->save_gradient(ticket, leaf, std::move(tensor));
    }
    show_messages();
  }

  void step() {
    {
      const nb::gil_scoped_release no_gil;
      debugger_->step();
    }
    show_messages();
  }

  void set_init_step(std::int64_t number) {
    if (number < 0) throw nb::value_error("set_init_step: step must not be negative");
    {
      const nb::gil_scoped_release no_gil;
      debugger_->set_init_step(number);
    }
    show_messages();
  }

  void close() {
    {
      const nb::gil_scoped_release no_gil;
      debugger_->close();
    }
    show_messages();
  }

  [[nodiscard]] bool wants_files() const { return debugger_->config().task == Task::kTensor; }
  [[nodiscard]] bool wants_checksums() const { return debugger_->config().summary_mode == SummaryMode::kMd5; }
  [[nodiscard]] std::int64_t current_step() const { return debugger_->current_step(); }
  [[nodiscard]] std::string dump_path() const { return debugger_->config().dump_path; }

  [[nodiscard]] nb::dict summary() const {
    const Summary summary = debugger_->summary();
    nb::dict out;
    out["saves"] = summary.saves;
    out["gradients"] = summary.gradients;
    out["repeated_gradients"] = summary.repeated_gradients;
    out["failures"] = summary.failures;
    out["text"] = summary.text();
    return out;
  }

 private:
  static std::optional<std::int64_t> ask_rank(const nb::object& rank) {
    try {
      return nb::cast<std::optional<std::int64_t>>(rank());
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) throw;
    } catch (const nb::cast_error&) {
    }
    return std::nullopt;  // a framework that cannot tell its rank yet
  }

  void show_messages() {
    if (!debugger_->has_messages()) return;
    for (const Message& message : debugger_->take_messages()) {
      on_message_(message.level == Message::Level::kWarning, message.text);
    }
  }

  AdapterTraits traits_;
  nb::object on_message_;
  std::unique_ptr<Debugger> debugger_;
};

}  // namespace

void bind_debugger(nb::module_& module) {
  nb::class_<Ticket>(module, "Ticket", "A save whose gradients may still come.");
  nb::class_<PyDebugger>(module, "Debugger", "The core's debugger, with an adapter that knows the framework.")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle>(), "adapter"_a,
           "config_path"_a.none(), "task"_a.none(), "dump_path"_a.none(), "level"_a.none(), "step"_a.none(),
           "Reads the configuration and creates dump_path.\n\nRaises: ConfigError, IoError.")
      .def("save", &PyDebugger::save, "variable"_a.none(), "name"_a, "save_backward"_a,
           "Saves `variable`. Returns None, or (ticket, tensors) where tensors are the leaves that expect a gradient,\n"
           "depth first. Blocks until the record is on disk (sync) or the data is copied (async); the GIL is released\n"
           "meanwhile. Raises: TypeError on a wrong argument.")
      .def("save_gradient", &PyDebugger::save_gradient, "ticket"_a, "leaf"_a, "gradient"_a.none(),
           "Saves the gradient of the leaf-th tensor of a ticket. Only the first one counts.")
      .def("step", &PyDebugger::step, "Ends the step. Does not wait.")
      .def("set_init_step", &PyDebugger::set_init_step, "step"_a, "Numbers the step that begins now.")
      .def("close", &PyDebugger::close, "Waits until all is written and gives up the rank. Idempotent.")
      .def_prop_ro("wants_files", &PyDebugger::wants_files, "Whether tensor files are written (task tensor).")
      .def_prop_ro("wants_checksums", &PyDebugger::wants_checksums, "Whether checksums are written (summary_mode md5).")
      .def_prop_ro("current_step", &PyDebugger::current_step, "Number of the current step.")
      .def_prop_ro("dump_path", &PyDebugger::dump_path, "Where the dump goes, as configured.")
      .def("summary", &PyDebugger::summary, "Counts of what was saved and lost, and a text that says so.");
}

}  // namespace msprobe
