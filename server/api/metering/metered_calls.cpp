#include "server/api/metering/metered_calls.hpp"

#include <grpcpp/support/server_interceptor.h>

#include <chrono>

#include "proto/wire/status.hpp"

namespace quasi::server {
namespace {

using Steady = std::chrono::steady_clock;
using grpc::experimental::InterceptionHookPoints;

class MeteredCall : public grpc::experimental::Interceptor {
 public:
  MeteredCall(CallFigures& figures, CallFigures::Method& method)
      : figures_(figures), method_(method) {
    method_.begin();
  }
  ~MeteredCall() override { method_.end(); }

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS))
      count(methods->GetSendStatus());
    methods->Proceed();
  }

 private:
  void count(const grpc::Status& status) {
    const std::chrono::duration<double> elapsed = Steady::now() - begun_;
    method_.answer(wire::code_name(status.error_code()), elapsed.count());
    switch (status.error_code()) {
      case grpc::StatusCode::ABORTED:
        if (wire::reason_of(status) == wire::reason::kFenced) method_.fenced();
        break;
      case grpc::StatusCode::UNAUTHENTICATED:
      case grpc::StatusCode::PERMISSION_DENIED:
        figures_.refuse_login(wire::reason_of(status));
        break;
      case grpc::StatusCode::RESOURCE_EXHAUSTED:
        if (wire::reason_of(status) == wire::reason::kRateLimited) figures_.limit_rate();
        break;
      default:
        break;
    }
  }

  CallFigures& figures_;
  CallFigures::Method& method_;
  Steady::time_point begun_ = Steady::now();
};

class MeteredCalls : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit MeteredCalls(CallFigures& figures) : figures_(figures) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    const std::string_view path = info->method();
    return new MeteredCall(figures_, figures_.of(path.substr(path.rfind('/') + 1)));
  }

 private:
  CallFigures& figures_;
};

}  // namespace

void meter_calls(grpc::ServerBuilder& builder, CallFigures& figures) {
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<MeteredCalls>(figures));
  builder.experimental().SetInterceptorCreators(std::move(factories));
}

}  // namespace quasi::server
