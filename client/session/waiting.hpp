#pragma once

#include <string>

#include "client/session/session.hpp"
#include "quasi/v1/job.pb.h"

namespace quasi::client {

/// Says in one sentence why a queued job does not run yet. The sentence comes from the server's own
/// rules, from its workers and from its queue. "" for a job that is not queued, or if the server
/// does not answer within two seconds.
std::string waiting_reason(Session& session, const v1::Job& job);

}  // namespace quasi::client
