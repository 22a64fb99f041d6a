#include "proto/wire/channel.hpp"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_interceptor.h>

#include <utility>
#include <vector>

#include "proto/wire/identity.hpp"

namespace quasi::wire {
namespace {

// Only calls that have a request id or are idempotent by nature are retried.
constexpr char kServiceConfig[] = R"({
  "methodConfig": [{
    "name": [{"service": "quasi.v1.WorkerService"},
             {"service": "quasi.v1.JobService"},
             {"service": "quasi.v1.AdminService", "method": "ListPrincipals"},
             {"service": "quasi.v1.BlobService", "method": "FindMissingBlobs"},
             {"service": "quasi.v1.BlobService", "method": "QueryUpload"}],
    "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.2s", "maxBackoff": "5s",
                    "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}
  }],
  "retryThrottling": {"maxTokens": 20, "tokenRatio": 0.5}
})";

/// Adds the caller's token to a call before it is sent.
class TokenInterceptor : public grpc::experimental::Interceptor {
 public:
  explicit TokenInterceptor(TokenSource& source) : source_(source) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    using Point = grpc::experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(Point::PRE_SEND_INITIAL_METADATA)) {
      const std::string token = source_.token();
      if (!token.empty())
        methods->GetSendInitialMetadata()->insert({"authorization", "Bearer " + token});
    }
    methods->Proceed();
  }

 private:
  TokenSource& source_;
};

/// Makes the interceptor of each call. It lives as long as the channel.
class TokenInterceptors : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit TokenInterceptors(std::unique_ptr<TokenSource> source) : source_(std::move(source)) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    return new TokenInterceptor(*source_);
  }

 private:
  std::unique_ptr<TokenSource> source_;
};

}  // namespace

std::shared_ptr<grpc::Channel> open_channel(const std::string& address,
                                            const std::string& token_file) {
  auto tokens = token_source(address, token_file);
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
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  if (tokens) interceptors.push_back(std::make_unique<TokenInterceptors>(std::move(tokens)));
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      address, grpc::InsecureChannelCredentials(), arguments, std::move(interceptors));
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
