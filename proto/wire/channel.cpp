#include "proto/wire/channel.hpp"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

namespace quasi::wire {
namespace {

// Only calls that have a request id or are idempotent by nature are retried.
constexpr char kServiceConfig[] = R"({
  "methodConfig": [{
    "name": [{"service": "quasi.v1.WorkerService"},
             {"service": "quasi.v1.JobService"},
             {"service": "quasi.v1.BlobService", "method": "FindMissingBlobs"},
             {"service": "quasi.v1.BlobService", "method": "QueryUpload"}],
    "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.2s", "maxBackoff": "5s",
                    "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}
  }],
  "retryThrottling": {"maxTokens": 20, "tokenRatio": 0.5}
})";

}  // namespace

std::shared_ptr<grpc::Channel> open_channel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(kServiceConfig);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A restarted server is back within seconds. gRPC's default back-off of up to two minutes would
  // be longer than a lease.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5'000);
  arguments.SetMaxReceiveMessageSize(64 << 20);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

bool is_server_address(std::string_view address) {
  if (address.starts_with("unix:")) return address.size() > 5;
  const auto colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0 ||
      address.find("://") != std::string_view::npos)
    return false;
  const std::string_view port = address.substr(colon + 1);
  return !port.empty() && port.size() <= 5 &&
         port.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace quasi::wire
