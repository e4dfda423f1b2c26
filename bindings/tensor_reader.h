#pragma once
// Reads the memory of Python arrays without a copy: DLPack's C interface, a DLPack capsule, or the buffer protocol.

#include <nanobind/nanobind.h>

#include <optional>
#include <vector>

#include "msprobe/value.h"

namespace msprobe {

// Python objects that must live until the save is over, because their memory is borrowed.
using KeepAlive = std::vector<nanobind::object>;

// Thread: needs the GIL. Borrows the memory of `array`; `keep_alive` gets what has to live on.
// Returns nothing where the memory cannot be had (no CPU memory, freed storage, a dtype that the core does not know);
// no Python error is left set.
[[nodiscard]] std::optional<Tensor> read_tensor(nanobind::handle array, KeepAlive& keep_alive);

}  // namespace msprobe
