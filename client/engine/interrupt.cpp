#include "client/engine/interrupt.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace quasi::client::interrupt {
namespace {

std::atomic<int> received{0};

/// The list of open scopes. It is never destroyed, because the waiting thread outlives main's
/// locals.
struct Scopes {
  std::mutex mutex;
  std::vector<const std::function<void()>*> open;
};
Scopes& scopes() {
  static Scopes* const all = new Scopes;
  return *all;
}

sigset_t handled() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

void wait_for_signals() {
  const sigset_t set = handled();
  while (true) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0) continue;
    if (received.exchange(signal) != 0) _exit(128 + signal);
    const std::lock_guard lock(scopes().mutex);
    for (const auto* wake : scopes().open) (*wake)();
  }
}

}  // namespace

void install() {
  const sigset_t set = handled();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread(wait_for_signals).detach();
}

bool requested() { return received != 0; }

int exit_status() { return received == 0 ? 0 : 128 + received; }

Scope::Scope(std::function<void()> wake) : wake_(std::move(wake)) {
  const std::lock_guard lock(scopes().mutex);
  if (requested()) {
    wake_();
    return;
  }
  scopes().open.push_back(&wake_);
}

Scope::~Scope() {
  const std::lock_guard lock(scopes().mutex);
  std::erase(scopes().open, &wake_);
}

}  // namespace quasi::client::interrupt
