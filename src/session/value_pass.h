#pragma once
// The one pass over the values of a tensor: statistics, checksum and file get each block while it is in cache.
//
// A large tensor is read in segments of a fixed size, by several threads where there are some, and what comes of the
// segments is put together in order. So no result depends on the number of threads. The file is written by the calling
// thread, in order, beside the others' work.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "msprobe/value.h"
#include "pipeline/thread_team.h"
#include "statistics/statistics.h"
#include "tensor/block_reader.h"

namespace msprobe {

// A multiple of every block and element, and as large as the buffer of a transposed read wants to be.
inline constexpr std::size_t kSegmentBytes = std::size_t{4} << 20;

struct PassPlan {
  ReadOrder order = ReadOrder::kAny;
  bool with_statistics = true;
  std::int64_t zeros = 0;  // elements of value zero that are not stored; they count in the statistics
  bool with_crc = false;
  bool crc_of_npy = false;  // of the bytes as a .npy file holds them (bfloat16 as float32)
};

struct PassResult {
  Statistics statistics;  // all nothing without `with_statistics`
  std::uint32_t crc = 0;  // CRC-32 of the bytes in reading order
};

using BlockSink = std::function<void(std::span<const std::byte>)>;

// Reads `parts`, all of one dtype. `sink` (may be empty) gets every block, in order, in this thread.
// `team`: who shares the work; null: this thread alone. Throws: what `sink` throws, std::bad_alloc.
[[nodiscard]] PassResult read_values(const std::vector<Tensor>& parts, const PassPlan& plan, const BlockSink& sink,
                                     ThreadTeam* team);

// copy_stored() of the whole view, shared with `team` (may be null).
void copy_stored_shared(const TensorView& view, std::span<std::byte> out, ThreadTeam* team);

}  // namespace msprobe
