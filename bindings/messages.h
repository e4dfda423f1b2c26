#pragma once
// What the core has to say, as Python takes it.

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "msprobe/debugger.h"

namespace msprobe {

// Calls on_message(is_warning, text). An Exception in it, of a logging handler say, is printed and goes no further.
void show_message(nanobind::handle on_message, bool is_warning, const std::string& text);
void show_messages(nanobind::handle on_message, const std::vector<Message>& messages);

// The counts of a summary, and its text.
[[nodiscard]] nanobind::dict summary_dict(const Summary& summary);

}  // namespace msprobe
