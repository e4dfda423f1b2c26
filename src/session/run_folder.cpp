#include "session/run_folder.h"

#include <unistd.h>

#include <cerrno>
#include <exception>
#include <utility>

namespace msprobe {
namespace {

bool is_step_folder(const std::string& name) {
  return name.size() > 4 && name.starts_with("step") && name.find_first_not_of("0123456789", 4) == std::string::npos;
}

}  // namespace

RunFolder::RunFolder(Directory root, bool exclusive_rank, std::shared_ptr<ErrorBook> errors)
    : root_(std::move(root)), exclusive_rank_(exclusive_rank), errors_(std::move(errors)), current_root_(root_) {}

Directory RunFolder::open_step(std::int64_t step, std::optional<std::int64_t> rank) {
  const std::lock_guard lock(mutex_);
  try {
    return open_step_in(current_root_, step, rank);
  } catch (const IoError& error) {
    if (error.error_number() != ENOENT) throw;
  }
  // Somebody has deleted the whole dump, as people do in a notebook: it begins anew.
  current_root_ = Directory::create_root(root_.path());
  lock_.reset();
  claimed_rank_.reset();
  errors_->warn_once("dump deleted", root_.path() + " was deleted while it was written to; it begins anew");
  return open_step_in(current_root_, step, rank);
}

Directory RunFolder::open_step_in(const Directory& root, std::int64_t step, std::optional<std::int64_t> rank) {
  const std::string name = folder_name(rank);
  const Directory step_folder = root.create_subdirectory("step" + std::to_string(step));
  // Left by a run whose process had the same id, or by this run under the same step number.
  if (step_folder.contains(name)) move_aside(step_folder, name);
  Directory folder = step_folder.create_subdirectory(name);
  step_folder.release();
  return folder;
}

std::string RunFolder::folder_name(std::optional<std::int64_t> rank) {
  if (!rank || !exclusive_rank_) return "proc" + std::to_string(getpid());
  if (claimed_rank_ == rank) return claimed_name_;
  const std::string wanted = "rank" + std::to_string(*rank);
  const bool is_ours = claim(wanted);
  claimed_rank_ = rank;
  claimed_name_ = is_ours ? wanted : "proc" + std::to_string(getpid());
  if (is_ours) {
    move_earlier_runs(wanted);
  } else {
    errors_->warn_once("rank locked",
                       root_.path() + ": " + wanted +
                           " belongs to another running process, or to the other API in this one; this data goes to " +
                           claimed_name_);
  }
  return claimed_name_;
}

// Some network file systems have no locks. Then two jobs on one path are not told apart, but each is saved.
bool RunFolder::claim(const std::string& rank_name) {
  try {
    lock_ = try_lock_file(current_root_, "." + rank_name + ".lock");
    return lock_.has_value();
  } catch (const IoError& error) {
    const int number = error.error_number();
    if (number != ENOLCK && number != ENOSYS && number != EOPNOTSUPP) throw;
    errors_->warn_once("no locks", std::string("no other job may use this dump_path now: ") + error.what());
    return true;
  }
}

// A step that cannot be cleared now is tried again, and reported, when this run wants to write there.
void RunFolder::move_earlier_runs(const std::string& name) {
  for (const std::string& entry : current_root_.entries()) {
    if (!is_step_folder(entry)) continue;
    try {
      const auto step_folder = current_root_.open_subdirectory(entry);
      if (step_folder && step_folder->contains(name)) move_aside(*step_folder, name);
    } catch (const IoError& error) {
      if (error.error_number() == ENOTDIR) continue;  // a file or a link: no run of ours
      errors_->warn_once("earlier run stays", std::string("an earlier run could not be moved aside: ") + error.what());
    }
  }
}

void RunFolder::move_aside(const Directory& step_folder, const std::string& name) {
  for (int number = 1;; ++number) {
    const std::string backup = name + ".bak" + std::to_string(number);
    if (!step_folder.rename_entry(name, backup)) continue;
    errors_->warn_once("earlier run", step_folder.path() + "/" + name +
                                          " was written by an earlier run; it is kept as " + backup +
                                          ", as are its other steps");
    return;
  }
}

void RunFolder::release_lock() noexcept { lock_.reset(); }

StepFolder::StepFolder(std::shared_ptr<RunFolder> run, std::int64_t step, std::optional<std::int64_t> rank,
                       DebugJsonHeader header, TensorPlace tensor_place)
    : run_(std::move(run)), step_(step), rank_(rank), header_(std::move(header)), tensor_place_(tensor_place) {}

// Each part stays when a later one fails, so that the next call does not take it for another run's.
void StepFolder::open_folder() {
  if (!folder_) folder_ = run_->open_step(step_, rank_);
}

void StepFolder::open_tensors() {
  open_folder();
  if (tensor_place_ == TensorPlace::kNone || tensors_) return;
  tensors_ = tensor_place_ == TensorPlace::kBeside ? *folder_ : folder_->create_subdirectory("dump_tensor_data");
  header_.dump_data_dir = tensors_->path();
}

DebugJson& StepFolder::json() {
  const std::lock_guard lock(mutex_);
  if (!json_) {
    open_tensors();  // the header names their folder
    json_ = std::make_unique<DebugJson>(*folder_, header_);
  }
  return *json_;
}

const Directory& StepFolder::tensors() {
  const std::lock_guard lock(mutex_);
  open_tensors();
  return *tensors_;
}

void StepFolder::forget(SlotId slot) noexcept {
  const std::lock_guard lock(mutex_);
  if (json_) json_->forget(slot);
}

void StepFolder::end_step() noexcept {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  release_descriptors_if_over();
}

void StepFolder::release_descriptors_if_over() noexcept {
  const std::lock_guard lock(mutex_);
  if (!over_) return;
  try {
    if (json_) json_->suspend();
  } catch (const IoError&) {
    run_->errors().add_failure("debug.json of step " + std::to_string(step_), std::current_exception());
  }
  if (folder_) folder_->release();
  if (tensors_) tensors_->release();
}

}  // namespace msprobe
