// A fixed workload for callgrind, which counts the instructions of `workload`: they do not depend on the machine's
// load. Nor on its CPU: the kernels are those of SSE4 (NEON on ARM), which every machine has, and no CRC is asked for,
// which libdeflate computes in a way that it chooses itself. tests/cpp/instructions.sh compares the count with
// instructions.txt. Usage: instructions FOLDER

#include <hwy/targets.h>

#include <cstdio>
#include <exception>
#include <vector>

#include "msprobe/debugger.h"

namespace {

msprobe::Value tensor_of(const std::vector<float>& values) {
  msprobe::TensorLeaf leaf;
  leaf.type = "torch.Tensor";
  leaf.dtype = "torch.float32";
  leaf.shape = {static_cast<std::int64_t>(values.size())};
  leaf.requires_grad = true;
  leaf.expects_gradient = true;
  msprobe::Tensor part;
  part.data = reinterpret_cast<const std::byte*>(values.data());
  part.shape = {static_cast<std::int64_t>(values.size())};
  part.strides = {1};
  leaf.parts.push_back(std::move(part));
  return {std::move(leaf)};
}

}  // namespace

// Not inlined, so that callgrind can be told to count it alone.
[[gnu::noinline]] void workload(msprobe::Debugger& debugger, const std::vector<float>& values) {
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < 100; ++i) {
      const msprobe::Ticket ticket = debugger.save("activation", tensor_of(values), true);
      debugger.save_gradient(ticket, 0, std::get<msprobe::TensorLeaf>(tensor_of(values).node));
      debugger.save("loss", {msprobe::Scalar{"float", 0.25}});
    }
    debugger.step();
  }
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: instructions FOLDER\n", stderr);
    return 2;
  }
  try {
    hwy::DisableTargets(~std::int64_t{HWY_SSE4 | HWY_NEON | HWY_STATIC_TARGET});
    msprobe::Config config;
    config.dump_path = argv[1];
    msprobe::Debugger debugger(config, {"pytorch", [] { return 0; }, nullptr});
    const std::vector<float> values(1000, 0.5F);
    debugger.save("first", tensor_of(values));  // folders, debug.json
    workload(debugger, values);
    return debugger.summary().failures == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
