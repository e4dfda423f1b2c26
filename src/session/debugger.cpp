#include "msprobe/debugger.h"

#include <utility>

#include "pipeline/per_process.h"
#include "session/session.h"

namespace msprobe {

class Debugger::Impl {
 public:
  Impl(Config config, FrameworkHooks hooks)
      : config_(std::make_shared<const Config>(std::move(config))),
        session_(std::make_unique<Session>(config_, std::make_shared<const FrameworkHooks>(std::move(hooks)))) {}

  Session& session() { return session_.get(); }
  // Nothing in a forked child that never used the debugger.
  Session* session_if_made() noexcept { return session_.get_if_made(); }
  const Config& config() const noexcept { return *config_; }

 private:
  const std::shared_ptr<const Config> config_;
  PerProcess<Session> session_;
};

Debugger::Debugger(Config config, FrameworkHooks hooks)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(hooks))) {}

Debugger::~Debugger() = default;

Debugger::Impl& Debugger::impl() const { return *impl_; }

bool Debugger::is_active() { return impl().session().is_active(); }

Ticket Debugger::save(std::string_view name, Value value, bool with_gradient) {
  return impl().session().save(name, std::move(value), with_gradient);
}

void Debugger::save_gradient(const Ticket& ticket, std::size_t leaf, TensorLeaf gradient) {
  impl().session().save_gradient(ticket, leaf, std::move(gradient));
}

void Debugger::report_failure(std::string_view name, std::string_view reason) {
  impl().session().errors().report(name, reason);
}

void Debugger::step() { impl().session().step(); }

void Debugger::set_init_step(std::int64_t number) { impl().session().set_init_step(number); }

std::int64_t Debugger::current_step() const { return impl().session().current_step(); }

void Debugger::drain() { impl().session().drain(); }

void Debugger::close() {
  Session* const current = impl().session_if_made();
  if (current == nullptr) return;
  current->close();
  current->errors().throw_first();
}

bool Debugger::has_messages() const noexcept {
  const Session* const current = impl().session_if_made();
  return current != nullptr && current->errors().has_messages();
}

std::vector<Message> Debugger::take_messages() { return impl().session().errors().take_messages(); }

Summary Debugger::summary() const {
  const Session* const current = impl().session_if_made();
  return current != nullptr ? current->errors().summary() : Summary{};
}

const Config& Debugger::config() const noexcept { return impl().config(); }

}  // namespace msprobe
