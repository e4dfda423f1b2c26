#pragma once
// The command `msprobe`: show, compare, verify.

#include <string>
#include <vector>

namespace msprobe {

// Runs `msprobe ARGUMENTS...` on the standard streams. Returns the exit status: 0 fine, 1 differences or damage found,
// 2 wrong usage or unreadable input. Throws nothing but std::bad_alloc.
[[nodiscard]] int run_command_line(const std::vector<std::string>& arguments);

}  // namespace msprobe
