#pragma once

#include <map>
#include <sstream>
#include <string>

#include "quasi/v1/admin_service.grpc.pb.h"
#include "tests/service/server/web/http.hpp"
#include "tests/service/support/calls_fixture.hpp"

namespace quasi::server {

/// A server with metrics on a free port of 127.0.0.1, and a worker that the
/// test plays.
class Web : public Calls {
 protected:
  Web() {
    server_.reset();
    options_.metrics_listen = "127.0.0.1:0";
    start();
  }
  test::HttpAnswer get(const std::string& path, const std::string& headers = "") {
    return test::http(server_->metrics_address(), path, headers);
  }
  /// The samples of a scrape: the name with its labels, and the value.
  std::map<std::string, double> scrape() {
    std::map<std::string, double> samples;
    std::istringstream text(get("/metrics").body);
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with('#')) continue;
      const std::size_t blank = line.rfind(' ');
      EXPECT_TRUE(samples.emplace(line.substr(0, blank), std::stod(line.substr(blank))).second)
          << "two samples of " << line;
    }
    return samples;
  }
  double sample(const std::string& name) {
    const auto samples = scrape();
    const auto found = samples.find(name);
    return found == samples.end() ? -1.0 : found->second;
  }

  template <class Request, class Response>
  grpc::Status call(grpc::Status (v1::WorkerService::Stub::*method)(grpc::ClientContext*,
                                                                    const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    limit(context);
    return (workers_.get()->*method)(&context, request, response);
  }
  void expect_ok(const grpc::Status& status) { EXPECT_TRUE(status.ok()) << status.error_message(); }

  void register_worker() {
    v1::RegisterRequest request;
    request.set_worker_id(worker_);
    request.set_incarnation(incarnation_);
    request.set_name("node7");
    request.set_version("0.1.0");
    request.add_kinds("test");
    v1::Device& device = *request.add_devices();
    device.set_id("cpu<b>");
    device.set_backend(v1::DEVICE_BACKEND_CPU);
    device.set_memory_bytes(1U << 30);
    device.set_free_bytes(3U << 28);
    device.set_slots(1);
    v1::RegisterResponse response;
    expect_ok(call(&v1::WorkerService::Stub::Register, request, &response));
  }
  /// Takes the next job and starts it.
  v1::AttemptRef start_job() {
    v1::AcquireLeasesRequest acquire;
    acquire.set_worker_id(worker_);
    acquire.set_incarnation(incarnation_);
    acquire.set_acquire_id(wire::make_uuid());
    acquire.add_slots()->set_device_id("cpu<b>");
    v1::AcquireLeasesResponse granted;
    expect_ok(call(&v1::WorkerService::Stub::AcquireLeases, acquire, &granted));
    if (granted.grants_size() != 1) throw std::runtime_error("no job was granted");
    v1::StartAttemptRequest begin;
    *begin.mutable_attempt() = granted.grants(0).attempt();
    v1::StartAttemptResponse begun;
    expect_ok(call(&v1::WorkerService::Stub::StartAttempt, begin, &begun));
    return begin.attempt();
  }
  grpc::Status end_job(const v1::AttemptRef& attempt, v1::AttemptOutcome outcome) {
    v1::CompleteAttemptRequest request;
    *request.mutable_attempt() = attempt;
    if (outcome == v1::ATTEMPT_OUTCOME_FAILED) {
      request.mutable_failed()->set_reason(v1::FAILURE_REASON_NUMERICAL);
      request.mutable_failed()->set_message("κ < 0 & <script>alert(1)</script>");
    } else {
      request.mutable_succeeded();
    }
    v1::CompleteAttemptResponse response;
    return call(&v1::WorkerService::Stub::CompleteAttempt, request, &response);
  }
  /// A token of a new principal.
  std::string token_of(const std::string& name, v1::Role role, const std::string& tenant) {
    const auto admin = v1::AdminService::NewStub(channel_);
    grpc::ClientContext save, create;
    v1::SavePrincipalRequest person;
    person.mutable_principal()->set_name(name);
    person.mutable_principal()->set_role(role);
    person.mutable_principal()->set_tenant(tenant);
    v1::SavePrincipalResponse saved;
    expect_ok(admin->SavePrincipal(&save, person, &saved));
    v1::CreateTokenRequest request;
    request.set_principal(name);
    v1::CreateTokenResponse created;
    expect_ok(admin->CreateToken(&create, request, &created));
    return created.token();
  }
  static std::string bearer(const std::string& token) {
    return "Authorization: Bearer " + token + "\r\n";
  }

  const std::string worker_ = "w_" + std::string(26, '1');
  const std::string incarnation_ = wire::make_uuid();
};

}  // namespace quasi::server
