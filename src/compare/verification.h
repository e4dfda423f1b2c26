#pragma once
// Whether a dump is whole: what debug.json says and what the tensor files hold.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "format/tensor_reader.h"
#include "msprobe/config.h"
#include "statistics/statistics.h"

namespace msprobe {

struct VerificationResult {
  std::int64_t folders = 0;
  std::int64_t records = 0;
  std::int64_t files = 0;                // read and found good
  std::int64_t damages = 0;              // what on_damage was told
  std::vector<std::string> not_checked;  // files in formats that only PyTorch reads, and why
  std::vector<std::string> unrecorded;   // tensor files that no record names; no damage
};

struct VerificationOptions {
  Filter step, rank;  // only these; a folder without a rank counts as rank 0
  // Told of each damage, in no order of files. Thread: one at a time.
  std::function<void(const std::string&)> on_damage;
  std::atomic<std::uint64_t>* bytes_done = nullptr;  // of tensor files; may be null
};

// What the values of a tensor file are. `bytes_done` (may be null) counts what was read.
// Throws: IoError, FormatError, UnsupportedFile.
struct FileContent {
  Statistics statistics;
  std::uint32_t crc = 0;  // CRC-32 of the logical bytes
};
[[nodiscard]] FileContent read_content(const TensorFileReader& file, std::atomic<std::uint64_t>* bytes_done = nullptr);

// Reads all of a dump, a step, a rank folder or one tensor file. Damage is:
//   a debug.json that is no JSON; a file that a record names and that is missing, ends early, has a wrong CRC (.pt), or
//   another shape or dtype than recorded; statistics or md5 that are not those of the file's values.
// Statistics of this tool are compared to 1e-12; those of another writer, whose sums are less exact, to the precision
// of the dtype. Throws: IoError, FormatError if `path` is none of these.
[[nodiscard]] VerificationResult verify_dump(const std::string& path, const VerificationOptions& options);

}  // namespace msprobe
