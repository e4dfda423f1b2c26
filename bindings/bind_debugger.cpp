#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "bindings.h"
#include "gil.h"
#include "leaf.h"
#include "messages.h"
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

// A path as the file system has it: bytes that are not UTF-8 come back as they were.
std::optional<std::string> path_argument(nb::handle value, const char* name) {
  auto text = text_argument(value, name);
  if (!text) return text;
  const nb::object bytes = nb::steal(PyUnicode_EncodeFSDefault(value.ptr()));
  if (!bytes.is_valid()) {
    PyErr_Clear();
    return text;
  }
  return std::string(PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr())));
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
    overrides.dump_path = path_argument(dump_path, "dump_path");
    overrides.level = text_argument(level, "level");
    overrides.step = filter_argument(step, "step");
    Config config = load_config(path_argument(config_path, "config_path").value_or(""), overrides);
    FrameworkHooks hooks;
    hooks.name = text_of(adapter.attr("framework"));
    hooks.rank = [rank = nb::object(adapter.attr("rank"))] { return ask_rank(rank); };
    hooks.drain_progress = show_drain_progress;
    const std::vector<std::string> warnings = config.warnings;
    debugger_ = std::make_unique<Debugger>(std::move(config), std::move(hooks));
    for (const std::string& warning : warnings) show_message(on_message_, true, warning);
  }

  nb::object save(nb::handle variable, nb::handle name, nb::handle save_backward) {
    if (!PyUnicode_Check(name.ptr())) throw nb::type_error(("save: name must be str, found " + found(name)).c_str());
    if (!PyBool_Check(save_backward.ptr())) {
      throw nb::type_error(("save: save_backward must be bool, found " + found(save_backward)).c_str());
    }
    const InFlight call(*this);
    // The thread that ends the debugger is told of late saves; in another one no Python may run any more.
    if (closing_ && closer_ != std::this_thread::get_id()) return nb::none();
    if (!debugger_->is_active()) {
      show_messages();
      return nb::none();
    }
    const bool with_gradient = save_backward.ptr() == Py_True;
    Walker walker(traits_, with_gradient);
    Value value = walker.walk(variable);
    const std::string text = text_of(name);
    Ticket ticket;
    {
      const GilReleased no_gil;
      ticket = debugger_->save(text, std::move(value), with_gradient);
      for (const std::string& problem : walker.problems()) debugger_->report_failure(text, problem);
    }
    show_messages();
    if (!ticket.expects_gradients()) return nb::none();
    return nb::make_tuple(std::move(ticket), walker.gradient_tensors());
  }

  void save_gradient(const Ticket& ticket, std::size_t leaf, nb::handle gradient) {
    if (gradient.is_none()) return;  // a backward that has none for this tensor
    const InFlight call(*this);
    if (closing_) return;
    Walker walker(traits_, false);
    TensorLeaf tensor = walker.tensor(gradient);
    {
      const GilReleased no_gil;
      debugger_->save_gradient(ticket, leaf, std::move(tensor));
      for (const std::string& problem : walker.problems()) debugger_->report_failure("a gradient", problem);
    }
    show_messages();
  }

  void report_failure(const std::string& name, const std::string& reason) {
    debugger_->report_failure(name, reason);
    show_messages();
  }

  void step() {
    {
      const GilReleased no_gil;
      debugger_->step();
    }
    show_messages();
  }

  void set_init_step(std::int64_t number) {
    {
      const GilReleased no_gil;
      debugger_->set_init_step(number);
    }
    show_messages();
  }

  // First waits for the saves of other threads: a daemon thread that is in one when the interpreter ends would be ended
  // by Python in the middle of C++ frames, which ends the process with an error.
  void close() {
    {
      const GilReleased no_gil;
      closer_ = std::this_thread::get_id();
      closing_ = true;
      const auto deadline = std::chrono::steady_clock::now() + kLongestCall;
      while (in_flight_ > calls_of_this_thread && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      debugger_->close();
    }
    show_messages();
  }

  [[nodiscard]] bool wants_files() const { return debugger_->config().task == Task::kTensor; }
  [[nodiscard]] bool wants_checksums() const { return debugger_->config().summary_mode == SummaryMode::kMd5; }
  [[nodiscard]] std::int64_t current_step() const { return debugger_->current_step(); }
  [[nodiscard]] nb::object dump_path() const {
    const std::string& path = debugger_->config().dump_path;
    return nb::steal(PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
  }

  [[nodiscard]] nb::dict summary() const { return summary_dict(debugger_->summary()); }

 private:
  static constexpr std::chrono::seconds kLongestCall{10};
  static inline thread_local int calls_of_this_thread = 0;  // more than one where a logging handler saves, say

  class InFlight {
   public:
    explicit InFlight(PyDebugger& debugger) noexcept : debugger_(debugger) {
      ++debugger_.in_flight_;
      ++calls_of_this_thread;
    }
    ~InFlight() {
      --calls_of_this_thread;
      --debugger_.in_flight_;
    }
    InFlight(const InFlight&) = delete;
    InFlight& operator=(const InFlight&) = delete;

   private:
    PyDebugger& debugger_;
  };

  static std::optional<std::int64_t> ask_rank(const nb::object& rank) {
    const GilHeld gil;  // asked in the middle of a save, where it is released
    try {
      return nb::cast<std::optional<std::int64_t>>(rank());
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) throw;
    } catch (const nb::cast_error&) {
    }
    return std::nullopt;  // a framework that cannot tell its rank yet
  }

  void show_messages() {
    if (debugger_->has_messages()) msprobe::show_messages(on_message_, debugger_->take_messages());
  }

  AdapterTraits traits_;
  nb::object on_message_;
  std::unique_ptr<Debugger> debugger_;
  std::atomic<int> in_flight_ = 0;
  std::atomic<bool> closing_ = false;
  std::atomic<std::thread::id> closer_;  // set before closing_
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
      .def("report_failure", &PyDebugger::report_failure, "name"_a, "reason"_a,
           "Counts and tells, at a limited rate, that a part of the save `name` is missing.")
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
