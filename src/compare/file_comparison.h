#pragma once
// The errors between two tensor files, read block by block.

#include <atomic>
#include <cstdint>
#include <optional>

#include "compare/pair_errors.h"
#include "format/tensor_reader.h"
#include "pipeline/thread_team.h"

namespace msprobe {

struct FileComparison {
  Tolerance tolerance;
  std::optional<SavedDtypes> saved;                  // nothing: those of the files
  std::atomic<std::uint64_t>* bytes_done = nullptr;  // counts golden's bytes for whoever shows progress; may be null
};

// Compares the values of two files with the same number of them, in C order. Equal bits cost a memcmp, and another read
// of golden's side only where something else differs. Memory: two blocks a thread.
// `team`: who shares the work on large files; null: this thread alone.
// Throws: IoError, FormatError, UnsupportedFile; Error if the numbers of values differ.
[[nodiscard]] PairErrors compare_files(const TensorFileReader& golden, const TensorFileReader& target,
                                       const FileComparison& how, ThreadTeam* team);

// Returns the root mean square of the finite values of a file. Throws: as above.
[[nodiscard]] double file_scale(const TensorFileReader& file, ThreadTeam* team);

}  // namespace msprobe
