#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <grpcpp/support/server_callback.h>

#include "server/api/calls.hpp"
#include "server/service/writer.hpp"

namespace quasi::server {

/// Records one act of a caller: a row of the audit is written with the act, and a line of the log
/// after the commit. A repeated request that changes nothing records nothing.
class Act {
 public:
  /// @param event   name of the line of the log, e.g. "submit"
  /// @param method  name of the method without its service
  Act(const grpc::CallbackServerContext& context, std::string_view event, std::string_view method);

  /// Names the thing that was acted on, and the values that an admin set.
  struct Target {
    std::vector<std::string> names;  ///< ids of jobs, or one name of a principal or token
    std::string detail = {};
  };
  /// Writes the row of the audit in the transaction of the act.
  void record(WriteContext& write, const std::string& principal, const Target& target);

  /// Writes the line of the log: `by`, `peer`, `target`, and `count` of several jobs, of which it
  /// names the first eight. It writes none if nothing was recorded.
  void log_committed() const;

 private:
  std::string event_;
  std::string method_;
  std::string peer_;
  std::string principal_;
  Target target_;
  bool is_recorded_ = false;
};

/// Names the jobs that a call has changed. A repeated request changes none.
struct JobsChanged {
  std::vector<std::string> uids;
  bool replayed = false;
};

/// Names an act in the log and in the audit.
struct ActName {
  const char* event;          ///< e.g. "submit"
  const char* method;         ///< e.g. "SubmitJobs"
  bool checks_first = false;  ///< the body refuses before its first write (WriteTask)
};

/// Runs a call that changes jobs, as `write_call` does, and records it. `body` returns JobsChanged.
template <class Body>
grpc::ServerUnaryReactor* jobs_call(Services& services, grpc::CallbackServerContext* context,
                                    const wire::Violations& violations, ActName name, Body body) {
  auto act = std::make_shared<Act>(*context, name.event, name.method);
  return write_call(
      services, context, violations, name.method,
      [context, act, body = std::move(body)](WriteContext& write, const Caller& caller) {
        const JobsChanged changed = body(write, caller);
        if (changed.replayed)
          context->AddTrailingMetadata("quasi-replayed", "1");
        else
          act->record(write, caller.name, {.names = changed.uids});
      },
      {.committed = [act] { act->log_committed(); }, .checks_first = name.checks_first});
}

/// Writes a login that was refused into the audit. The call returns at once; if the writer's queue
/// is full, only the log names the login.
void record_failed_login(Writer& writer, const std::string& peer, std::string_view method,
                         const std::string& reason);

}  // namespace quasi::server
