#include "session/save_job.h"

#include <algorithm>
#include <utility>

#include "format/record.h"
#include "msprobe/error.h"
#include "pipeline/fork.h"

namespace msprobe {
namespace {

// Of a record that is written: where the record itself fails, that is the one failure.
void report(const std::vector<LeafFailure>& failures, ErrorBook& errors) {
  for (const LeafFailure& failure : failures) errors.add_failure(failure.what, failure.error);
}

std::string quoted_key(std::string_view key) {
  std::string text;
  append_json_string(text, key);
  text += ": ";
  return text;
}

// What a value takes in memory, without the tensors' data.
std::size_t memory_of(const Value& value) {
  std::size_t bytes = sizeof(Value);
  if (const auto* leaf = std::get_if<TensorLeaf>(&value.node)) {
    bytes += (leaf->shape.size() + leaf->extra.size()) * sizeof(Value) + leaf->parts.size() * sizeof(Tensor);
    if (leaf->sparse) bytes += leaf->sparse->starts.size() * sizeof(std::int64_t);
  } else if (const auto* list = std::get_if<List>(&value.node)) {
    for (const Value& child : *list) bytes += memory_of(child);
  } else if (const auto* map = std::get_if<Map>(&value.node)) {
    for (const auto& [key, child] : *map) bytes += key.capacity() + memory_of(child) + sizeof(std::string);
  } else if (const auto* scalar = std::get_if<Scalar>(&value.node)) {
    if (const auto* text = std::get_if<std::string>(&scalar->value)) bytes += text->capacity();
  }
  return bytes;
}

}  // namespace

TicketState::TicketState(std::string gradient_key, std::shared_ptr<StepFolder> step_folder)
    : key(std::move(gradient_key)), folder(std::move(step_folder)), generation(fork_generation()) {}

TicketState::~TicketState() {
  if (!written || generation != fork_generation()) return;  // a forked child leaves its parent's file alone
  for (const auto& leaf : leaves) {
    if (!leaf->spent) folder->forget(leaf->slot);
  }
}

SaveJob::SaveJob(std::string key, Value value, std::shared_ptr<TicketState> ticket, std::shared_ptr<StepFolder> folder,
                 LeafWork work, std::shared_ptr<ErrorBook> errors)
    : key_(std::move(key)),
      value_(std::move(value)),
      leaves_(tensor_leaves(value_)),
      ticket_(std::move(ticket)),
      folder_(std::move(folder)),
      work_(work),
      errors_(std::move(errors)) {
  if (!ticket_) return;
  for (const LeafPlace& place : leaves_) {
    if (!place.leaf->expects_gradient) continue;
    ticket_->leaves.push_back(std::make_unique<TicketState::Leaf>());
    ticket_->leaves.back()->indexes = place.indexes;
  }
}

std::size_t SaveJob::snapshot_size() const {
  std::size_t bytes = memory_of(value_);
  for (const LeafPlace& place : leaves_) bytes += snapshot_bytes(*place.leaf);
  return bytes;
}

void SaveJob::take_snapshot(BufferPool& pool) {
  for (const LeafPlace& place : leaves_) msprobe::take_snapshot(*place.leaf, pool, work_.team);
  work_.team = nullptr;
}

void SaveJob::run() {
  results_.reserve(leaves_.size());
  for (const LeafPlace& place : leaves_) {
    results_.push_back(process_leaf(*place.leaf, key_, place.indexes, work_, *folder_, *errors_, failures_));
  }
}

std::size_t SaveJob::longest_gradient_file_name() const {
  std::size_t longest = 0;
  if (!work_.with_file) return longest;
  for (const auto& leaf : ticket_->leaves) {
    std::string quoted;
    append_json_string(quoted, file_name(ticket_->key, leaf->indexes, ".npy", 2));
    longest = std::max(longest, quoted.size());
  }
  return longest;
}

void SaveJob::commit() {
  const StepFolder::WriteScope scope(*folder_);
  results_.resize(leaves_.size());  // run() may have stopped early
  RecordText record;
  append_text(record, quoted_key(key_) + render_value(value_, results_));
  RecordText gradients;
  if (ticket_) {
    append_text(gradients, quoted_key(ticket_->key));
    append_record(gradients, render_gradient_skeleton(value_, work_.with_checksum, longest_gradient_file_name()));
  }
  const std::vector<SlotId> slots = folder_->json().append(record, gradients);
  if (ticket_) {
    for (std::size_t i = 0; i < slots.size(); ++i) ticket_->leaves[i]->slot = slots[i];
    ticket_->written = true;
  }
  errors_->count_saves();
  report(failures_, *errors_);
}

GradientJob::GradientJob(std::shared_ptr<TicketState> ticket, TicketState::Leaf& leaf, TensorLeaf gradient,
                         LeafWork work, std::shared_ptr<ErrorBook> errors)
    : ticket_(std::move(ticket)),
      leaf_(leaf),
      gradient_(std::move(gradient)),
      work_(work),
      errors_(std::move(errors)) {}

void GradientJob::take_snapshot(BufferPool& pool) {
  msprobe::take_snapshot(gradient_, pool, work_.team);
  work_.team = nullptr;
}

void GradientJob::run() {
  result_ = process_leaf(gradient_, ticket_->key, leaf_.indexes, work_, *ticket_->folder, *errors_, failures_);
}

void GradientJob::commit() {
  const StepFolder::WriteScope scope(*ticket_->folder);
  if (!ticket_->written) throw StateError("the record that it belongs to could not be written");
  ticket_->folder->json().fill(leaf_.slot, render_tensor(gradient_, result_));
  errors_->count_gradients();
  report(failures_, *errors_);
}

}  // namespace msprobe
