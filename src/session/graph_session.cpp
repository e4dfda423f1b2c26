#include "session/graph_session.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <utility>
#include <vector>

#include "format/record.h"
#include "format/widen.h"
#include "msprobe/error.h"
#include "pipeline/resources.h"
#include "session/naming.h"

namespace msprobe {
namespace {

GraphTask task_from_environment(ErrorBook& errors) {
  const char* const text = std::getenv("MSPROBE_GRAPH_TASK");
  const std::string_view task = text != nullptr ? text : "tensor";
  if (task == "statistics") return GraphTask::kStatistics;
  if (task == "both") return GraphTask::kBoth;
  if (task != "tensor") {
    errors.warn_once("graph task", "MSPROBE_GRAPH_TASK: found \"" + std::string(task) +
                                       "\", allowed are tensor, statistics and both; taken as tensor");
  }
  return GraphTask::kTensor;
}

unsigned threads_from_environment(ErrorBook& errors) {
  try {
    return compute_thread_count();
  } catch (const ConfigError& error) {
    errors.warn_once("threads", std::string(error.what()) + "; taken as 1");
    return 1;
  }
}

}  // namespace

GraphSession::GraphSession(std::string framework)
    : framework_(std::move(framework)),
      errors_(ErrorBook::from_environment()),
      task_(task_from_environment(*errors_)),
      is_child_(false),
      team_(threads_from_environment(*errors_)) {}

GraphSession::GraphSession(std::string framework, GraphTask task, std::int64_t step)
    : framework_(std::move(framework)),
      errors_(ErrorBook::from_environment()),
      task_(task),
      is_child_(true),
      team_(1),
      step_number_(step) {}

std::unique_ptr<GraphSession> GraphSession::for_forked_child(const GraphSession& parent) {
  return std::unique_ptr<GraphSession>(new GraphSession(parent.framework_, parent.task_, parent.step_number_));
}

void GraphSession::set_rank(std::optional<std::int64_t> rank) {
  const std::lock_guard lock(mutex_);
  if (rank) rank_ = rank;
}

void GraphSession::save(std::string_view save_dir, std::string_view name, const TensorLeaf& tensor) {
  try {
    write(next_place(save_dir, name), name, tensor);
  } catch (...) {
    errors_->add_failure(name, std::current_exception());
  }
  errors_->throw_first();
}

GraphSession::Root& GraphSession::root_of(const std::string& save_dir) {
  if (const auto known = roots_by_text_.find(save_dir); known != roots_by_text_.end()) return *known->second;
  Directory folder = Directory::create_root(save_dir);
  for (const auto& [text, root] : roots_by_text_) {
    if (root->run->root().path() == folder.path()) return *roots_by_text_.emplace(save_dir, root).first->second;
  }
  if (is_child_) {
    errors_->warn_once("forked",
                       "this forked process writes to " + folder.path() + "/step*/proc" + std::to_string(getpid()));
  }
  auto root = std::make_shared<Root>();
  root->run = std::make_shared<RunFolder>(std::move(folder), !is_child_, errors_);
  return *roots_by_text_.emplace(save_dir, std::move(root)).first->second;
}

GraphSession::Place GraphSession::next_place(std::string_view save_dir, std::string_view name) {
  const std::lock_guard lock(mutex_);
  Root& root = root_of(std::string(save_dir));
  if (!root.folder) {
    if (!root.rank) root.rank = rank_;
    root.folder = std::make_shared<StepFolder>(
        root.run, step_number_, root.rank.value_or(0), DebugJsonHeader{"statistics", "debug", framework_, ""},
        task_ == GraphTask::kStatistics ? TensorPlace::kNone : TensorPlace::kBeside);
  }
  return {root.folder, root.counts[std::string(name)]++};
}

void GraphSession::write(const Place& place, std::string_view name, const TensorLeaf& tensor) {
  if (tensor.parts.size() != 1) throw UnsupportedDtype("dtype " + tensor.dtype + " cannot be read");
  const bool with_files = task_ != GraphTask::kStatistics;
  const bool with_record = task_ != GraphTask::kTensor;
  const std::string_view dtype = dtype_info(widened_dtype(tensor.parts.front().dtype)).name;
  std::string file(name);
  file += '_';
  file += dtype;
  file += '_';
  file += std::to_string(place.count);

  const StepFolder::WriteScope scope(*place.folder);
  std::vector<LeafFailure> failures;
  const LeafResult result =
      process_leaf(tensor, file, "",
                   {.with_statistics = with_record, .with_file = with_files, .with_empty_file = true, .team = &team_},
                   *place.folder, *errors_, failures);
  if (with_record) {
    RecordText record;
    std::string key;
    append_json_string(key, record_key(name, place.count));
    append_text(record, key + ": " + render_tensor(tensor, result));
    place.folder->json().append(record);
  }
  for (const LeafFailure& failure : failures) errors_->add_failure(failure.what, failure.error);
  if (with_record || failures.empty()) errors_->count_saves();
}

void GraphSession::step() {
  std::vector<std::shared_ptr<StepFolder>> ended;
  {
    const std::lock_guard lock(mutex_);
    ++step_number_;
    for (const auto& [text, root] : roots_by_text_) {
      if (root->folder) ended.push_back(std::exchange(root->folder, nullptr));
      root->counts.clear();
    }
  }
  for (const auto& folder : ended) folder->end_step();
  errors_->throw_first();
}

}  // namespace msprobe
