#include "server/access/open_streams.hpp"

#include <string>

#include "proto/wire/status.hpp"
#include "server/queue/refused.hpp"

namespace quasi::server {
namespace {

/// Time after which a refused stream is tried again. When another stream ends is not known.
constexpr std::int64_t kRetryMs = 1'000;

}  // namespace

StreamPlace OpenStreams::open(const Caller& caller) {
  if (caller.role == Role::kWorker || caller.principal_id == 0) return nullptr;
  const std::int64_t id = caller.principal_id;
  {
    const std::lock_guard lock(counts_->mutex);
    std::int64_t& streams = counts_->streams_of_principals[id];
    if (streams >= limit_)
      throw Refused(Refusal::kResourceExhausted, wire::reason::kRateLimited,
                    caller.name + " has " + std::to_string(streams) +
                        " open streams, which is the limit (server key streams_per_principal); end "
                        "a watch, a log or a transfer, or wait " +
                        std::to_string(kRetryMs) + " ms")
          .retry_in(kRetryMs);
    ++streams;
  }
  return {counts_.get(), [counts = counts_, id](void*) {
            const std::lock_guard lock(counts->mutex);
            const auto found = counts->streams_of_principals.find(id);
            if (--found->second == 0) counts->streams_of_principals.erase(found);
          }};
}

}  // namespace quasi::server
