#include "server/access/call_rates.hpp"

#include <string>

#include "proto/wire/status.hpp"
#include "server/queue/refused.hpp"

namespace quasi::server {

void CallRates::charge(const Caller& caller, std::string_view method, std::int64_t now_ms) {
  if (caller.role == Role::kWorker || caller.principal_id == 0) return;
  const bool submits = method == "SubmitJobs";
  TokenBuckets& buckets = submits ? submits_ : calls_;
  const std::int64_t wait_ms = buckets.add(std::to_string(caller.principal_id), now_ms);
  if (wait_ms == 0) return;
  throw Refused(Refusal::kResourceExhausted, wire::reason::kRateLimited,
                "more than " + std::to_string(submits ? submits_per_second_ : calls_per_second_) +
                    (submits ? " submissions" : " calls") + " a second from " + caller.name +
                    " (server key " + (submits ? "submits_per_second" : "calls_per_second") +
                    "); wait " + std::to_string(wait_ms) + " ms" +
                    (submits ? ", or submit many jobs in one call" : ""))
      .retry_in(wait_ms);
}

}  // namespace quasi::server
