#pragma once
// What happens to one tensor: statistics, checksum and file, in one pass over its memory.

#include <exception>
#include <string>
#include <vector>

#include "format/record.h"
#include "msprobe/value.h"
#include "pipeline/buffer_pool.h"
#include "pipeline/thread_team.h"
#include "session/error_book.h"
#include "session/run_folder.h"

namespace msprobe {

// What the task asks for.
struct LeafWork {
  bool with_statistics = true;
  bool with_checksum = false;
  bool with_file = false;
  bool with_empty_file = false;  // with_file: also for a tensor of no elements
  ThreadTeam* team = nullptr;    // who shares the work on a large tensor; null: the calling thread alone
};

// A part of a record that could not be computed or written.
struct LeafFailure {
  std::string what;
  std::exception_ptr error;
};

// Computes, and writes the file of, the tensor `leaf` at `indexes` of the record `key`. A part that fails is null or
// missing in the result and stands in `failures`; the rest is there. Thread: any; borrows the memory of `leaf`.
[[nodiscard]] LeafResult process_leaf(const TensorLeaf& leaf, const std::string& key, const std::string& indexes,
                                      const LeafWork& work, StepFolder& folder, ErrorBook& errors,
                                      std::vector<LeafFailure>& failures);

// Bytes that take_snapshot() will draw from the pool, and those of file_content.
[[nodiscard]] std::size_t snapshot_bytes(const TensorLeaf& leaf);

// Copies the memory of `leaf` into buffers of `pool` and makes `leaf` point there: C order, broadcast dimensions keep
// stride 0. `team`: as above. Throws: std::bad_alloc; then `leaf` still points to memory that is valid for the caller.
void take_snapshot(TensorLeaf& leaf, BufferPool& pool, ThreadTeam* team);

}  // namespace msprobe
