#include "msprobe/graph_dump.h"

#include <utility>

#include "pipeline/per_process.h"
#include "session/graph_session.h"

namespace msprobe {

class GraphDump::Impl {
 public:
  explicit Impl(std::string framework) : session_(std::make_unique<GraphSession>(std::move(framework))) {}
  GraphSession& session() { return session_.get(); }

 private:
  PerProcess<GraphSession> session_;
};

GraphDump::GraphDump(std::string framework) : impl_(std::make_unique<Impl>(std::move(framework))) {}

GraphDump::~GraphDump() = default;

void GraphDump::set_rank(std::optional<std::int64_t> rank) { impl_->session().set_rank(rank); }

void GraphDump::save(std::string_view save_dir, std::string_view name, const TensorLeaf& tensor) {
  impl_->session().save(save_dir, name, tensor);
}

void GraphDump::report_failure(std::string_view name, std::string_view reason) {
  impl_->session().errors().report(name, reason);
}

void GraphDump::step() { impl_->session().step(); }

bool GraphDump::has_messages() const noexcept { return impl_->session().errors().has_messages(); }

std::vector<Message> GraphDump::take_messages() { return impl_->session().errors().take_messages(); }

Summary GraphDump::summary() const { return impl_->session().errors().summary(); }

}  // namespace msprobe
