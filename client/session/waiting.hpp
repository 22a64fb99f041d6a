#pragma once

#include <string>

#include "client/session/session.hpp"
#include "quasi/v1/job.pb.h"

namespace quasi::client {

/// Says in one sentence why a queued job does not run yet. The sentence comes from the server's own
/// rules, from its workers and from its queue. "" for a job that is not queued, or if the server
/// does not answer within two seconds.
std::string waiting_reason(Session& session, const v1::Job& job);

/// Says that no worker of a queued job's pool answers, and when the last one was seen. "" if a
/// worker of the pool answers and knows the job's kind, or if the server does not answer within two
/// seconds.
std::string absent_workers(Session& session, const v1::Job& job);

}  // namespace quasi::client
