#pragma once
// The work of one save and of one gradient. The same code runs in sync and in async mode; the modes differ only in
// who runs it and on whose memory.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "msprobe/value.h"
#include "pipeline/pipeline.h"
#include "session/error_book.h"
#include "session/leaf.h"
#include "session/naming.h"
#include "session/run_folder.h"

namespace msprobe {

// Where the gradients of one save go. The job of the save fills in the slots; a gradient comes later by construction.
struct TicketState {
  struct Leaf {
    std::string indexes;
    SlotId slot = 0;
    std::atomic<bool> spent = false;
  };

  TicketState(std::string gradient_key, std::shared_ptr<StepFolder> step_folder);
  // Gives up the slots that no gradient has filled; they stay null.
  ~TicketState();
  TicketState(const TicketState&) = delete;
  TicketState& operator=(const TicketState&) = delete;

  const std::string key;  // "x_grad.0.debug"
  const std::shared_ptr<StepFolder> folder;
  const std::uint64_t generation;  // of the process, see pipeline/fork.h
  std::vector<std::unique_ptr<Leaf>> leaves;
  std::atomic<bool> written = false;  // the record is in the file and the slots are known
};

// A job that can be given memory of its own.
class DataJob : public Job {
 public:
  // Bytes that take_snapshot() needs.
  [[nodiscard]] virtual std::size_t snapshot_size() const = 0;
  // Copies the user's data, so that the job may run after the call that made it: in the background, where one thread is
  // its share of the machine. Throws: std::bad_alloc; then the job may still run within that call.
  virtual void take_snapshot(BufferPool& pool) = 0;
};

class SaveJob final : public DataJob {
 public:
  // `ticket`: null without a gradient record. Borrows the memory of `value` until take_snapshot().
  SaveJob(std::string key, Value value, std::shared_ptr<TicketState> ticket, std::shared_ptr<StepFolder> folder,
          LeafWork work, std::shared_ptr<ErrorBook> errors);

  [[nodiscard]] std::size_t snapshot_size() const override;
  void take_snapshot(BufferPool& pool) override;
  void run() override;
  void commit() override;
  void fail(std::exception_ptr error) noexcept override { errors_->add_failure(key_, error); }

 private:
  [[nodiscard]] std::size_t longest_gradient_file_name() const;

  const std::string key_;
  Value value_;
  const std::vector<LeafPlace> leaves_;
  const std::shared_ptr<TicketState> ticket_;
  const std::shared_ptr<StepFolder> folder_;
  LeafWork work_;
  const std::shared_ptr<ErrorBook> errors_;
  std::vector<LeafResult> results_;
  std::vector<LeafFailure> failures_;
};

class GradientJob final : public DataJob {
 public:
  GradientJob(std::shared_ptr<TicketState> ticket, TicketState::Leaf& leaf, TensorLeaf gradient, LeafWork work,
              std::shared_ptr<ErrorBook> errors);

  [[nodiscard]] std::size_t snapshot_size() const override { return snapshot_bytes(gradient_); }
  void take_snapshot(BufferPool& pool) override;
  void run() override;
  void commit() override;
  void fail(std::exception_ptr error) noexcept override { errors_->add_failure(ticket_->key, error); }

 private:
  const std::shared_ptr<TicketState> ticket_;
  TicketState::Leaf& leaf_;
  TensorLeaf gradient_;
  LeafWork work_;
  const std::shared_ptr<ErrorBook> errors_;
  LeafResult result_;
  std::vector<LeafFailure> failures_;
};

// Ends a step in the order of the queue: after its records, whose file stays open until then.
class EndStepJob final : public Job {
 public:
  explicit EndStepJob(std::shared_ptr<StepFolder> folder) noexcept : folder_(std::move(folder)) {}
  void run() override {}
  void commit() override { folder_->end_step(); }
  void fail(std::exception_ptr) noexcept override {}  // nothing above throws

 private:
  const std::shared_ptr<StepFolder> folder_;
};

}  // namespace msprobe
