#pragma once

#include <functional>

namespace quasi::client {

/// Ctrl-C and SIGTERM, as a flag and a wake-up.
///
/// `install` blocks both signals in every thread and waits for them in one of its own, so that what
/// they start (cancelling a call, waking a view) may take locks. The first signal sets the flag and
/// runs the callbacks of the scopes that are open; the second ends the process at once.
namespace interrupt {

/// Call once, before any other thread exists.
void install();

/// True after SIGINT or SIGTERM.
bool requested();

/// 130 after SIGINT, 143 after SIGTERM, 0 before either.
int exit_status();

/// Runs `wake` when a signal comes while this object lives; at once if one has come already.
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
