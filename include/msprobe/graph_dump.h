#pragma once
// Saves from inside a compiled graph. No Python runs there, so each call brings along where its data belongs.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msprobe/debugger.h"
#include "msprobe/value.h"

namespace msprobe {

// Writes {save_dir}/step{N}/rank{R}/{name}_{dtype}_{k}.npy, where k counts the saves of `name` in this folder and step;
// with MSPROBE_GRAPH_TASK=statistics the record "{name}.{k}.debug" of debug.json there instead, with `both` both.
// What an earlier run left is moved aside, as Debugger does it.
//
// Thread: any, for every function. Nothing throws: failures become messages. With MSPROBE_ON_ERROR=raise in the
// environment at construction, `save` and `step` throw Error instead.
// A forked child gets folders `proc{pid}` at its first call.
class GraphDump {
 public:
  // `framework`: as debug.json names it.
  explicit GraphDump(std::string framework);
  ~GraphDump();
  GraphDump(const GraphDump&) = delete;
  GraphDump& operator=(const GraphDump&) = delete;

  // The rank, nothing while unknown: then it is 0. Holds from the next step of each folder on.
  void set_rank(std::optional<std::int64_t> rank);

  // Saves `tensor`, whose memory is borrowed during the call. On disk when it returns.
  void save(std::string_view save_dir, std::string_view name, const TensorLeaf& tensor);

  // Data for `name` could not be read by whoever had it: counted, and told at a limited rate.
  void report_failure(std::string_view name, std::string_view reason);

  // Data of calls that begin from now on belongs to the next step.
  void step();

  // Messages for the user that came up since the last call, oldest first. `has_messages` costs one load.
  [[nodiscard]] bool has_messages() const noexcept;
  [[nodiscard]] std::vector<Message> take_messages();
  [[nodiscard]] Summary summary() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace msprobe
