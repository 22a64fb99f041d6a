#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace quasi {

/// Options with which a worker daemon starts quasi-engine.
struct ExecOptions {
  int ipc_descriptor = 3;
  pid_t parent = 0;  ///< process id of the daemon; 0: the parent, without a check
};

/// Runs one attempt under a daemon. It speaks engine.proto on the descriptor and never uses the
/// network. The process dies with its parent. If an attempt has several ranks, rank_launch.hpp
/// starts them.
/// @return the exit status of the contract (ExitStatus). In a build without the service: kUsage,
/// with the reason on standard error.
int exec_attempt(const ExecOptions& options);

/// Runs one rank of an attempt of several ranks, started by the launcher of exec_attempt. Rank 0
/// takes the daemon's socket from `socket_path` and is the only rank that uses it.
int exec_rank(const std::string& socket_path);

/// Returns the kinds that only exec_attempt knows: test work if the service is built, and no other.
std::vector<std::string> exec_kinds();

}  // namespace quasi
