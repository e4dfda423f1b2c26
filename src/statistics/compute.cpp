#include "statistics/statistics.h"
#include "tensor/block_reader.h"

namespace msprobe {

Statistics compute_statistics(const TensorView& view) {
  StatisticsAccumulator accumulator(view.dtype);
  BlockReader reader(view, ReadOrder::kAny);
  for (auto block = reader.next(); !block.empty(); block = reader.next()) accumulator.add(block, reader.repeat());
  return accumulator.result();
}

}  // namespace msprobe
