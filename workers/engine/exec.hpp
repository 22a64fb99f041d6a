#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace quasi {

/// How quasi-engine was started by a worker daemon.
struct ExecOptions {
  int ipc_descriptor = 3;
  pid_t parent = 0;              ///< the daemon; 0: whoever the parent is
  bool isolate_network = false;  ///< try to run in an empty network namespace
};

/// One attempt under a daemon: speaks engine.proto on the descriptor, never on the network. Dies
/// with its parent.
/// @return the exit status of the contract (ExitStatus). In a build without the service: kUsage,
///         with the reason on standard error.
int exec_attempt(const ExecOptions& options);

/// Kinds that only exec_attempt knows: test work, where the service is built; none elsewhere.
std::vector<std::string> exec_kinds();

}  // namespace quasi
