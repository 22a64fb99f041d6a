#include "bench/service_load/test_worker.hpp"

#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "proto/wire/chunks.hpp"
#include "proto/wire/digest.hpp"

namespace quasi::bench {
namespace {

void require(const grpc::Status& status, const char* call) {
  if (!status.ok()) throw std::runtime_error(std::string(call) + ": " + status.error_message());
}

}  // namespace

TestWorker::TestWorker(const ServerProcess& server, const std::vector<std::string>& kinds,
                       int slots)
    : stub_(v1::WorkerService::NewStub(server.connect())),
      id_("w_" + std::string(26, '1')),
      incarnation_(wire::make_uuid()) {
  const std::string file = server.directory() / "made.bin";
  std::ofstream(file, std::ios::binary) << std::string(1'000, 'r');
  const auto made = wire::digest_file(file);
  digest_ = made.digest;
  size_bytes_ = made.size_bytes;
  require(wire::upload_file(server.connect(), file, digest_, size_bytes_), "upload");
  v1::RegisterRequest request;
  request.set_worker_id(id_);
  request.set_incarnation(incarnation_);
  request.set_name("bench");
  request.set_version(QUASI_VERSION);
  for (const std::string& kind : kinds) request.add_kinds(kind);
  v1::Device& device = *request.add_devices();
  device.set_id("cpu");
  device.set_backend(v1::DEVICE_BACKEND_CPU);
  device.set_model("a processor");
  device.set_memory_bytes(std::uint64_t{1} << 40);
  device.set_slots(static_cast<std::uint32_t>(slots));
  grpc::ClientContext context;
  v1::RegisterResponse response;
  require(stub_->Register(&context, request, &response), "Register");
}

std::vector<v1::Grant> TestWorker::acquire(int slots) {
  v1::AcquireLeasesRequest request;
  request.set_worker_id(id_);
  request.set_incarnation(incarnation_);
  request.set_acquire_id(wire::make_uuid());
  for (int i = 0; i < slots; ++i) request.add_slots()->set_device_id("cpu");
  grpc::ClientContext context;
  v1::AcquireLeasesResponse response;
  require(stub_->AcquireLeases(&context, request, &response), "AcquireLeases");
  return {response.grants().begin(), response.grants().end()};
}

void TestWorker::start(const v1::AttemptRef& attempt) {
  v1::StartAttemptRequest request;
  *request.mutable_attempt() = attempt;
  grpc::ClientContext context;
  v1::StartAttemptResponse response;
  require(stub_->StartAttempt(&context, request, &response), "StartAttempt");
}

void TestWorker::succeed(const v1::AttemptRef& attempt) {
  v1::CompleteAttemptRequest request;
  *request.mutable_attempt() = attempt;
  v1::Artifact& artifact = *request.mutable_succeeded()->add_artifacts();
  artifact.set_name("result.h5");
  artifact.set_digest(digest_);
  artifact.set_size_bytes(size_bytes_);
  request.mutable_succeeded()->set_summary_json("{}");
  complete(request);
}

void TestWorker::stopped(const v1::AttemptRef& attempt) {
  v1::CompleteAttemptRequest request;
  *request.mutable_attempt() = attempt;
  request.mutable_cancelled();
  complete(request);
}

void TestWorker::complete(const v1::CompleteAttemptRequest& request) {
  grpc::ClientContext context;
  v1::CompleteAttemptResponse response;
  require(stub_->CompleteAttempt(&context, request, &response), "CompleteAttempt");
}

v1::SubmitJobsResponse submit(v1::JobService::Stub& stub, const std::vector<v1::JobSpec>& specs) {
  v1::SubmitJobsRequest request;
  request.set_request_id(wire::make_uuid());
  for (const v1::JobSpec& spec : specs) *request.add_jobs() = spec;
  v1::SubmitJobsResponse response;
  grpc::Status status;
  // A repeated request has one effect.
  for (int tries = 0; tries < 3; ++tries) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    status = stub.SubmitJobs(&context, request, &response);
    if (status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) break;
    std::fprintf(stderr, "SubmitJobs got no answer for a minute\n");
  }
  require(status, "SubmitJobs");
  return response;
}

v1::JobSpec noop(const std::string& name) {
  v1::JobSpec spec;
  spec.set_name(name);
  spec.mutable_test()->mutable_noop();
  return spec;
}

}  // namespace quasi::bench
