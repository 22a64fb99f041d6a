#include "server/api/starting_server.hpp"

#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/health_check_service_interface.h>

#include <chrono>

#include "proto/wire/status.hpp"
#include "server/api/bind.hpp"
#include "server/api/refused_calls.hpp"
#include "server/api/status.hpp"

namespace quasi::server {

namespace {

grpc::Status starting(const std::string&) {
  return to_status(Refused(Refusal::kUnavailable, wire::reason::kStarting,
                           "the server is starting: its store is being opened and checked; "
                           "try again in a moment")
                       .retry_in(500));
}

}  // namespace

/// Answers a call of the health service by NOT_SERVING. The service of gRPC itself begins as
/// SERVING and can be told otherwise only when it is reachable already.
struct NotServing : grpc::ServerGenericBidiReactor {
  NotServing() { StartRead(&request_); }
  void OnReadDone(bool) override {
    StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override { delete this; }

  /// The message HealthCheckResponse{status = 1: NOT_SERVING = 2}.
  const grpc::Slice bytes_{std::string("\x08\x02")};
  grpc::ByteBuffer request_, answer_{&bytes_, 1};
};

/// Every call of a server that is starting.
class StartingCalls : public RefusedCalls {
 public:
  StartingCalls() : RefusedCalls(starting) {}
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    if (context->method().starts_with("/grpc.health.v1.Health/")) return new NotServing();
    return RefusedCalls::CreateReactor(context);
  }
};

struct StartingServer::Parts {
  void bind(Bound& bound, const std::vector<std::string>& addresses, const BindRules& rules,
            RefusedCalls& service) {
    bound = bind_server(addresses, rules, [&](grpc::ServerBuilder& builder) {
      builder.RegisterCallbackGenericService(&service);
      builder.SetOption(std::make_unique<grpc::HealthCheckServiceServerBuilderOption>(nullptr));
    });
  }

  StartingCalls to_clients;
  StartingCalls to_workers;
  Bound clients;
  Bound workers;  ///< empty if workers call at the addresses of clients
};

StartingServer::StartingServer(const std::vector<std::string>& listen,
                               const std::vector<std::string>& worker_listen,
                               const std::shared_ptr<grpc::ServerCredentials>& tls)
    : parts_(std::make_unique<Parts>()) {
  grpc::EnableDefaultHealthCheckService(true);
  parts_->bind(parts_->clients, listen, {.tls = tls}, parts_->to_clients);
  if (!worker_listen.empty())
    parts_->bind(parts_->workers, worker_listen,
                 {.sockets = SocketRule::kOwnerOrDirectoryGroup, .tls = tls}, parts_->to_workers);
}

StartingServer::~StartingServer() {
  // A refused call ends at once, so only watchers of the health service are still connected.
  for (Bound* bound : {&parts_->clients, &parts_->workers})
    if (bound->server) bound->server->Shutdown(std::chrono::system_clock::now());
}

const std::vector<std::string>& StartingServer::addresses() const {
  return parts_->clients.addresses;
}

const std::vector<std::string>& StartingServer::worker_addresses() const {
  return parts_->workers.addresses;
}

}  // namespace quasi::server
