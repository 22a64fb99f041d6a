#include "server/service/hub.hpp"

namespace quasi::server {

void Hub::add(const std::shared_ptr<HubListener>& listener) {
  bool closed = false;
  {
    const std::lock_guard lock(mutex_);
    listeners_.push_back(listener);
    closed = closed_;
  }
  if (closed) listener->on_close();
}

std::vector<std::shared_ptr<HubListener>> Hub::living() {
  // Listeners are called without the lock: they finish calls, and the end of a call may add the
  // next listener on the same thread.
  std::vector<std::shared_ptr<HubListener>> alive;
  const std::lock_guard lock(mutex_);
  alive.reserve(listeners_.size());
  std::erase_if(listeners_, [&](const std::weak_ptr<HubListener>& weak) {
    auto listener = weak.lock();
    if (!listener) return true;
    alive.push_back(std::move(listener));
    return false;
  });
  return alive;
}

void Hub::commit(const GroupOutcome& outcome) {
  if (!outcome.wrote && !outcome.jobs_ready) return;
  for (const auto& listener : living()) listener->on_commit(outcome);
}

void Hub::tick(std::int64_t monotonic_ms) {
  for (const auto& listener : living()) listener->on_tick(monotonic_ms);
}

void Hub::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  for (const auto& listener : living()) listener->on_close();
}

}  // namespace quasi::server
