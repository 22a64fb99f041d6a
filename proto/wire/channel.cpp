#include "proto/wire/channel.hpp"

#include <arpa/inet.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_interceptor.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "proto/wire/access/tls.hpp"
#include "proto/wire/identity.hpp"
#include "proto/wire/limits.hpp"

namespace quasi::wire {
namespace {

// Only calls that have a request id or are idempotent by nature are retried. A server that limits
// the rate of calls names the time to wait, which gRPC keeps. Each success returns the token of a
// retry, so that a long series of calls at the limit is never given up.
constexpr char kServiceConfig[] = R"({
  "methodConfig": [{
    "name": [{"service": "quasi.v1.WorkerService"},
             {"service": "quasi.v1.JobService"},
             {"service": "quasi.v1.AdminService", "method": "ListPrincipals"},
             {"service": "quasi.v1.BlobService", "method": "FindMissingBlobs"},
             {"service": "quasi.v1.BlobService", "method": "QueryUpload"}],
    "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.2s", "maxBackoff": "5s",
                    "backoffMultiplier": 2,
                    "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]}
  }],
  "retryThrottling": {"maxTokens": 100, "tokenRatio": 1}
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
                                            const std::string& token_file,
                                            const std::string& ca_file) {
  const bool is_unix = address.starts_with("unix:");
  if (ca_file.empty() && !is_local_address(address))
    throw std::invalid_argument("plain text to " + address +
                                ", which is beyond this machine; name the CA of the server");
  const auto credentials = ca_file.empty() || is_unix ? grpc::InsecureChannelCredentials()
                                                      : tls_channel_credentials(ca_file);
  auto tokens = token_source(address, token_file);
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(kServiceConfig);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // gRPC would let the window of a fast connection grow to many times a chunk, in memory.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                   static_cast<int>(limits::kStreamWindowBytes));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, static_cast<int>(limits::kFrameBytes));
  // A restarted server is back within seconds. gRPC's default back-off of up to two minutes would
  // be longer than a lease.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  // This is also the least time that gRPC gives to an attempt: connection and TLS handshake over a
  // slow network, or with a busy machine, take longer than a back-off.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 10'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5'000);
  arguments.SetMaxReceiveMessageSize(64 << 20);
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  if (tokens) interceptors.push_back(std::make_unique<TokenInterceptors>(std::move(tokens)));
  return grpc::experimental::CreateCustomChannelWithInterceptors(address, credentials, arguments,
                                                                 std::move(interceptors));
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

std::string default_address(const char* runtime_directory) {
  if (runtime_directory == nullptr || *runtime_directory == '\0')
    return "unix:/run/quasi/server.sock";
  return "unix:" + std::string(runtime_directory) + "/quasi.sock";
}

bool is_local_address(std::string_view address) {
  if (address.starts_with("unix:")) return address.size() > 5;
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view host = address.substr(0, colon);
  if (host == "localhost" || host == "[::1]") return true;
  // All of 127.0.0.0/8 is loopback. A host is accepted only if it consists of four plain numbers.
  in_addr number{};
  return ::inet_pton(AF_INET, std::string(host).c_str(), &number) == 1 &&
         ntohl(number.s_addr) >> 24 == 127;
}

}  // namespace quasi::wire
