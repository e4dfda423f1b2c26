#include "msprobe/debugger.h"

#include <utility>

#include "pipeline/per_process.h"
#include "session/session.h"

namespace msprobe {

class Debugger::Impl {
 public:
  Impl(Config config, FrameworkHooks hooks)
      : session_(std::make_unique<Session>(std::make_shared<const Config>(std::move(config)),
                                           std::make_shared<const FrameworkHooks>(std::move(hooks)))) {}

  Session& session() { return session_.get(); }

  // Nothing to close in a forked child that never used the debugger.
  void close() {
    Session* const current = session_.get_if_made();
    if (current == nullptr) return;
    current->close();
    current->errors().throw_first();
  }

 private:
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

void Debugger::step() { impl().session().step(); }

void Debugger::set_init_step(std::int64_t number) { impl().session().set_init_step(number); }

std::int64_t Debugger::current_step() const { return impl().session().current_step(); }

void Debugger::drain() { impl().session().drain(); }

void Debugger::close() { impl().close(); }

bool Debugger::has_messages() const noexcept { return impl().session().errors().has_messages(); }

std::vector<Message> Debugger::take_messages() { return impl().session().errors().take_messages(); }

Summary Debugger::summary() const { return impl().session().errors().summary(); }

const Config& Debugger::config() const noexcept { return impl().session().config(); }

}  // namespace msprobe
