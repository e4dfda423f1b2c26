#pragma once
// Tells a process that it is a forked child, at the cost of one load.

#include <cstdint>

namespace msprobe {

// A number that is one higher in a forked child than in its parent. What was made under another generation belongs to
// the parent: its threads do not exist here and its mutexes may be locked for ever, so it must not be touched.
[[nodiscard]] std::uint64_t fork_generation() noexcept;

}  // namespace msprobe
