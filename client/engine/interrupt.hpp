#pragma once

#include <functional>

namespace quasi::client {

/// Turns Ctrl-C and SIGTERM into a flag and a wake-up.
///
/// `install` blocks both signals in every thread and waits for them in a thread of its own. The
/// callbacks may therefore take locks, e.g. to cancel a call or wake a view. The first signal sets
/// the flag and runs the callbacks of the open scopes. The second signal ends the process at once.
namespace interrupt {

/// Starts the handling of signals. It must be called once, before any other thread exists.
void install();

/// True after SIGINT or SIGTERM.
bool requested();

/// 130 after SIGINT, 143 after SIGTERM, 0 before either.
int exit_status();

/// Runs `wake` when a signal arrives during the life of this object, or at once if one has arrived.
class Scope {
 public:
  explicit Scope(std::function<void()> wake);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  std::function<void()> wake_;
};

}  // namespace interrupt
}  // namespace quasi::client
