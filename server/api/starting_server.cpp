#include "server/api/starting_server.hpp"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/health_check_service_interface.h>

#include <chrono>

#include "proto/wire/status.hpp"
#include "server/api/bind.hpp"
#include "server/api/status.hpp"

namespace quasi::server {

constexpr std::int64_t kKeepaliveMs = 60'000;

struct StartingServer::Parts {
  /// One call of any method, refused without reading its request.
  class RefusedCall : public grpc::ServerGenericBidiReactor {
   public:
    explicit RefusedCall(grpc::GenericCallbackServerContext* context) {
      constexpr std::int64_t kRetryMs = 500;
      context->AddTrailingMetadata("grpc-retry-pushback-ms", std::to_string(kRetryMs));
      Finish(to_status(Refused(Refusal::kUnavailable, wire::reason::kStarting,
                               "the server is starting: its store is being opened and checked; "
                               "try again in a moment")
                           .retry_in(kRetryMs)));
    }
    void OnDone() override { delete this; }
  };

  class RefuseAll : public grpc::CallbackGenericService {
   public:
    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* context) override {
      return new RefusedCall(context);
    }
  };

  RefuseAll service;
  Bound bound;
};

StartingServer::StartingServer(const std::vector<std::string>& addresses)
    : parts_(std::make_unique<Parts>()) {
  grpc::EnableDefaultHealthCheckService(true);
  parts_->bound = bind_server(addresses, kKeepaliveMs, [this](grpc::ServerBuilder& builder) {
    builder.RegisterCallbackGenericService(&parts_->service);
  });
  parts_->bound.server->GetHealthCheckService()->SetServingStatus(false);
}

StartingServer::~StartingServer() {
  // A refused call ends at once, so only watchers of the health service are still connected.
  parts_->bound.server->Shutdown(std::chrono::system_clock::now());
}

const std::vector<std::string>& StartingServer::addresses() const {
  return parts_->bound.addresses;
}

}  // namespace quasi::server
