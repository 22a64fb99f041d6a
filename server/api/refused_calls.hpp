#pragma once

#include <functional>
#include <string>

#include <grpcpp/generic/async_generic_service.h>

#include "proto/wire/status.hpp"

namespace quasi::server {

/// Refuses every call that no other service of an address takes, without reading its request.
class RefusedCalls : public grpc::CallbackGenericService {
 public:
  /// Gives the status for the path of a method, e.g. "/quasi.v1.JobService/GetJob".
  using Answer = std::function<grpc::Status(const std::string& method)>;
  explicit RefusedCalls(Answer answer) : answer_(std::move(answer)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    const grpc::Status status = answer_(context->method());
    if (const auto delay = wire::parse_details(status).retry_after)
      context->AddTrailingMetadata("grpc-retry-pushback-ms", std::to_string(delay->count()));
    return new Call(status);
  }

 private:
  struct Call : grpc::ServerGenericBidiReactor {
    explicit Call(const grpc::Status& status) { Finish(status); }
    void OnDone() override { delete this; }
  };
  Answer answer_;
};

}  // namespace quasi::server
