#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "msprobe/dump_reader.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace msprobe {

void bind_dump(nb::module_& module) {
  nb::class_<RankFolder>(module, "RankFolder")
      .def_ro("step", &RankFolder::step)
      .def_ro("rank", &RankFolder::rank)
      .def_ro("name", &RankFolder::name)
      .def_ro("path", &RankFolder::path);
  nb::class_<DumpEntry>(module, "DumpEntry")
      .def_ro("key", &DumpEntry::key)
      .def_ro("name", &DumpEntry::name)
      .def_ro("count", &DumpEntry::count)
      .def_ro("is_gradient", &DumpEntry::is_gradient)
      .def_ro("index", &DumpEntry::index)
      .def_ro("json", &DumpEntry::json)
      .def_ro("file", &DumpEntry::file);
  module.def("find_rank_folders", &find_rank_folders, "path"_a, nb::call_guard<nb::gil_scoped_release>());
  module.def("read_rank_folder", &read_rank_folder, "folder"_a, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace msprobe
