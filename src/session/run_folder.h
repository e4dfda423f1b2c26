#pragma once
// The folders of a run: {dump_path}/step{N}/rank{R} or, with no rank or a rank that another process holds,
// {dump_path}/step{N}/proc{pid}.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "format/debug_json.h"
#include "format/file_io.h"
#include "session/error_book.h"

namespace msprobe {

// Thread: any. One for each session.
class RunFolder {
 public:
  // `exclusive_rank` false: a forked child, which always writes to proc{pid}.
  RunFolder(Directory root, bool exclusive_rank, std::shared_ptr<ErrorBook> errors);

  [[nodiscard]] const Directory& root() const noexcept { return root_; }
  [[nodiscard]] ErrorBook& errors() const noexcept { return *errors_; }

  // Opens step{step}/rank{rank} for writing, for the first time in this run. The first call for a rank takes its lock
  // and moves what an earlier run left to rank{R}.bak1, ... Throws: IoError.
  [[nodiscard]] Directory open_step(std::int64_t step, std::optional<std::int64_t> rank);

  // Gives the rank's lock up (in a forked child: this copy of it).
  void release_lock() noexcept;

 private:
  std::string folder_name(std::optional<std::int64_t> rank);
  bool claim(const std::string& rank_name);
  void move_earlier_runs(const std::string& name);
  void move_aside(const Directory& step_folder, const std::string& name);

  Directory open_step_in(const Directory& root, std::int64_t step, std::optional<std::int64_t> rank);

  const Directory root_;  // as it was at first
  const bool exclusive_rank_;
  const std::shared_ptr<ErrorBook> errors_;
  std::mutex mutex_;
  // Guarded by mutex_:
  Directory current_root_;  // another one after somebody has deleted the first
  std::optional<std::int64_t> claimed_rank_;
  std::string claimed_name_;
  std::optional<FileDescriptor> lock_;
};

// Where a step keeps its tensor files.
enum class TensorPlace : std::uint8_t {
  kNone,
  kSubfolder,  // rank{R}/dump_tensor_data
  kBeside,     // rank{R} itself
};

// One step's folder with its debug.json and its tensor files, each created by its first use.
// Thread: any.
class StepFolder {
 public:
  StepFolder(std::shared_ptr<RunFolder> run, std::int64_t step, std::optional<std::int64_t> rank,
             DebugJsonHeader header, TensorPlace tensor_place);

  // The open file, and the open folder of the tensor files (not with kNone). Throws: IoError; the next call tries
  // again.
  [[nodiscard]] DebugJson& json();
  [[nodiscard]] const Directory& tensors();

  // Gives up a slot of json() that was never filled.
  void forget(SlotId slot) noexcept;

  // Held while the folder is written to: what is written after the end of the step keeps no descriptors open.
  class WriteScope {
   public:
    explicit WriteScope(StepFolder& folder) noexcept : folder_(folder) {}
    ~WriteScope() { folder_.release_descriptors_if_over(); }
    WriteScope(const WriteScope&) = delete;
    WriteScope& operator=(const WriteScope&) = delete;

   private:
    StepFolder& folder_;
  };

  // The step is over: late gradients still arrive, but no descriptors are kept for them.
  void end_step() noexcept;

 private:
  void release_descriptors_if_over() noexcept;
  void open_folder();
  void open_tensors();

  const std::shared_ptr<RunFolder> run_;
  const std::int64_t step_;
  const std::optional<std::int64_t> rank_;
  DebugJsonHeader header_;
  const TensorPlace tensor_place_;
  std::mutex mutex_;
  // Guarded by mutex_ until they are set, then constant:
  std::optional<Directory> folder_;
  std::optional<Directory> tensors_;
  std::unique_ptr<DebugJson> json_;
  bool over_ = false;  // guarded by mutex_
};

}  // namespace msprobe
