#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/queue/refused.hpp"
#include "server/queue/store.hpp"

/// The parts that commands on named jobs share.
namespace quasi::server {

/// Joins the values of a stored answer, one a line, and parts them again.
std::string joined(const std::vector<std::string>& lines);
std::vector<std::string> lines_of(const std::string& text);

/// Name of a request among the stored answers. Each principal has request ids of its own (I7).
std::string request_key(const Scope& scope, const std::string& request_id);

/// The stored answer to a repeated request.
/// @param key  from request_key()
std::optional<std::string> replay(Store& store, const std::string& key, const std::string& method,
                                  const std::string& body_sha256);

/// @throws Refused PERMISSION_DENIED if the job is another principal's, which the caller sees as a
/// member of its tenant.
void require_owner(const Scope& scope, const JobRow& job);

/// Makes the refusal of a change that the state of the job forbids.
Refused wrong_state(const JobRow& job, const std::string& rule);

}  // namespace quasi::server
