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
/// with its parent. An attempt of several ranks is handed to them (rank_launch.hpp).
/// @return the exit status of the contract (ExitStatus). In a build without the service: kUsage,
///         with the reason on standard error.
int exec_attempt(const ExecOptions& options);

/// One rank of such an attempt, started by the launcher that exec_attempt started. Rank 0 takes the
/// daemon's socket from `socket_path` and alone speaks on it.
int exec_rank(const std::string& socket_path);

/// Kinds that only exec_attempt knows: test work, where the service is built; none elsewhere.
std::vector<std::string> exec_kinds();

}  // namespace quasi
