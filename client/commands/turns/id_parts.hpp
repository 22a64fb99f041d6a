#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "proto/wire/limits.hpp"

namespace quasi::client {

/// Calls `send` with each part of the ids that one request may hold.
/// @tparam Request  a message with the field job_ids
template <class Request, class Send>
void send_in_parts(const std::vector<std::string>& ids, const Send& send) {
  for (std::size_t start = 0; start < ids.size(); start += limits::kIdsPerCall) {
    Request request;
    for (std::size_t i = start; i < std::min(start + limits::kIdsPerCall, ids.size()); ++i)
      request.add_job_ids(ids[i]);
    send(request);
  }
}

}  // namespace quasi::client
