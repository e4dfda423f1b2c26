#pragma once
// The progress of a draining queue on stderr, written without Python: it may be needed when no thread can get the GIL.

#include <cstdint>

namespace msprobe {

// Shows `done` of `total` jobs: a bar that is redrawn on a terminal, else a line every few seconds. The last call has
// done == total.
void show_drain_progress(std::uint64_t done, std::uint64_t total) noexcept;

}  // namespace msprobe
