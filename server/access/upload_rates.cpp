#include "server/access/upload_rates.hpp"

#include <string>

#include "proto/wire/status.hpp"
#include "server/queue/refused.hpp"

namespace quasi::server {

bool UploadRates::is_limited(const Caller& caller) const {
  return bytes_per_second_ > 0 && caller.role != Role::kWorker && caller.principal_id != 0;
}

void UploadRates::require_turn(const Caller& caller, std::int64_t now_ms) const {
  if (!is_limited(caller)) return;
  const std::int64_t wait_ms = spent_.wait_ms(std::to_string(caller.principal_id), now_ms);
  if (wait_ms == 0) return;
  throw Refused(Refusal::kResourceExhausted, wire::reason::kRateLimited,
                "more than " + std::to_string(bytes_per_second_) + " bytes a second from " +
                    caller.name + " (server key upload_bytes_per_second); wait " +
                    std::to_string(wait_ms) + " ms, then continue the upload")
      .retry_in(wait_ms);
}

std::int64_t UploadRates::charge(const Caller& caller, std::int64_t bytes, std::int64_t now_ms) {
  if (!is_limited(caller)) return 0;
  const std::string key = std::to_string(caller.principal_id);
  // A message has at most 1 MiB, so that the product fits.
  spent_.spend(key, bytes * 1'000'000 / bytes_per_second_, now_ms);
  return spent_.wait_ms(key, now_ms);
}

}  // namespace quasi::server
