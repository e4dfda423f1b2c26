#pragma once
// The process's one GraphDump, shared by Python (bind_graph.cpp) and the operator in the graph (mindspore_op.cpp).

#include "msprobe/graph_dump.h"

namespace msprobe {

// Lives until the process is gone: graphs may still run while it exits. Thread: any.
[[nodiscard]] GraphDump& process_graph_dump();

// Has the main thread show the messages that have come up, soon. Thread: any, without the GIL.
void show_graph_messages_soon() noexcept;

}  // namespace msprobe
