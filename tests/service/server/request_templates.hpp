#pragma once

// A sound request of every call of the three services, made through a real server.

#include <google/protobuf/message.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "quasi/v1/access_service.grpc.pb.h"
#include "quasi/v1/admin_service.grpc.pb.h"
#include "tests/service/server/dependencies/sweep_requests.hpp"
#include "tests/service/server/orders/order_templates.hpp"
#include "tests/service/support/calls_fixture.hpp"

namespace quasi::server::test {

/// A server with a blob, a worker and a job, and sound requests that refer to them.
class RequestTemplates : public Calls {
 protected:
  /// Uploads one blob and registers one worker.
  void prepare() {
    file_ = write_file("blob", 5'000);
    const auto digest = wire::digest_file(file_);
    digest_ = digest.digest;
    size_ = digest.size_bytes;
    ASSERT_TRUE(wire::upload_file(channel_, file_, digest_, size_).ok());
    worker_ = "w_" + std::string(26, '1');
    enlist();
  }

  /// Registers the worker anew, so that earlier spoilt requests about it have no effect.
  void enlist() {
    incarnation_ = wire::make_uuid();
    const v1::RegisterRequest request = registration();
    grpc::ClientContext context;
    limit(context);
    v1::RegisterResponse response;
    ASSERT_TRUE(workers_->Register(&context, request, &response).ok());
    end_orders(channel_, worker_);
  }

  v1::RegisterRequest registration() const {
    v1::RegisterRequest request;
    request.set_worker_id(worker_);
    request.set_incarnation(incarnation_);
    request.set_name("node7");
    request.set_version("0.1.0");
    request.add_kinds("test");
    v1::Device& device = *request.add_devices();
    device.set_id("cpu");
    device.set_backend(v1::DEVICE_BACKEND_CPU);
    device.set_model("a processor");
    device.set_memory_bytes(1U << 30);
    device.set_slots(200);
    device.mutable_telemetry()->set_power_watts(20.0);
    return request;
  }

  /// Acquires a new lease: an earlier spoilt request may have ended the last one.
  v1::AttemptRef lease() {
    enlist();
    submit();
    v1::AcquireLeasesRequest request = acquisition();
    grpc::ClientContext context;
    limit(context);
    v1::AcquireLeasesResponse response;
    const grpc::Status status = workers_->AcquireLeases(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    if (response.grants().empty()) {
      ADD_FAILURE() << "no lease";
      return {};
    }
    job_ = response.grants(0).job_id();
    return response.grants(0).attempt();
  }

  /// Reports the start of an attempt's engine.
  void begin(const v1::AttemptRef& attempt) {
    v1::StartAttemptRequest request;
    *request.mutable_attempt() = attempt;
    grpc::ClientContext context;
    limit(context);
    v1::StartAttemptResponse response;
    EXPECT_TRUE(workers_->StartAttempt(&context, request, &response).ok());
  }

  /// A job that has ended and is not deleted.
  std::string ended_job() {
    const std::string id = submit();
    cancel(id);
    return id;
  }

  v1::AcquireLeasesRequest acquisition() const {
    v1::AcquireLeasesRequest request;
    request.set_worker_id(worker_);
    request.set_incarnation(incarnation_);
    request.set_acquire_id(wire::make_uuid());
    request.add_slots()->set_device_id("cpu");
    return request;
  }

  /// A job with every field set.
  v1::JobSpec full_spec() {
    v1::JobSpec spec = valid_spec();
    spec.mutable_inputs(0)->set_digest(digest_);
    spec.mutable_inputs(0)->set_size_bytes(size_);
    spec.mutable_resources()->set_gpus(0);
    spec.mutable_resources()->set_cpus(2);
    spec.mutable_max_runtime()->set_seconds(60);
    spec.mutable_retry()->set_max_attempts(2);
    spec.mutable_checkpoint()->set_keep(2);
    spec.mutable_not_before()->set_seconds(1'700'000'000);
    spec.set_priority(3);
    return spec;
  }

  /// A sound request of each call.
  Templates templates() {
    Templates all;
    add_job_calls(all);
    add_turn_calls(all);
    add_blob_calls(all);
    add_worker_calls(all);
    add_attempt_calls(all);
    add_admin_calls(all);
    add_sweeps(all, *jobs_, [this] { return full_spec(); });
    return all;
  }

  void add_job_calls(Templates& all) {
    all["GetCapabilities"] = [] { return one(v1::GetCapabilitiesRequest()); };
    all["ListPools"] = [] { return one(v1::ListPoolsRequest()); };
    all["SubmitJobs"] = [this] {
      v1::SubmitJobsRequest request;
      request.set_request_id(wire::make_uuid());
      *request.add_jobs() = full_spec();
      request.add_jobs()->mutable_test()->mutable_progress()->set_steps(3);
      return one(request);
    };
    all["ValidateJobs"] = [this] {
      v1::ValidateJobsRequest request;
      *request.add_jobs() = full_spec();
      return one(request);
    };
    all["GetJob"] = [this] {
      v1::GetJobRequest request;
      request.set_job_id(job_);
      return one(request);
    };
    const auto filter = [this](v1::JobFilter& wanted) {
      wanted.add_job_ids(job_);
      wanted.add_kinds("test");
      wanted.set_name_prefix("si");
      (*wanted.mutable_labels())["project"] = "kappa";
      wanted.mutable_created_after()->set_seconds(1'700'000'000);
    };
    all["ListJobs"] = [filter] {
      v1::ListJobsRequest request;
      filter(*request.mutable_filter());
      request.mutable_filter()->add_states(v1::JOB_STATE_QUEUED);
      request.set_page_size(10);
      return one(request);
    };
    all["CancelJobs"] = [this] {
      v1::CancelJobsRequest request;
      request.set_request_id(wire::make_uuid());
      request.add_job_ids(job_);
      request.set_reason("enough");
      return one(request);
    };
    all["DeleteJobs"] = [this] {
      v1::DeleteJobsRequest request;
      request.set_request_id(wire::make_uuid());
      request.add_job_ids(ended_job());
      request.set_reason("enough");
      return one(request);
    };
    all["WatchJobs"] = [filter] {
      v1::WatchJobsRequest request;
      filter(*request.mutable_filter());
      request.set_snapshot(true);
      return one(request);
    };
    all["ReadLogs"] = [this] {
      v1::ReadLogsRequest request;
      request.set_job_id(job_);
      request.set_attempt(1);
      return one(request);
    };
    all["ListArtifacts"] = [this] {
      v1::ListArtifactsRequest request;
      request.set_job_id(job_);
      request.set_page_size(5);
      return one(request);
    };
  }

  void add_turn_calls(Templates& all) {
    all["ExplainJob"] = [this] {
      v1::ExplainJobRequest request;
      request.set_job_id(job_);
      return one(request);
    };
    all["GetUsage"] = [] { return one(v1::GetUsageRequest()); };
    all["HoldJobs"] = [this] {
      v1::HoldJobsRequest request;
      request.set_request_id(wire::make_uuid());
      request.add_job_ids(submit());
      request.set_reason("later");
      return one(request);
    };
    all["ReleaseJobs"] = [this] {
      v1::ReleaseJobsRequest request;
      request.set_request_id(wire::make_uuid());
      request.add_job_ids(submit());
      request.set_reason("now");
      return one(request);
    };
    all["ReprioritiseJobs"] = [this] {
      v1::ReprioritiseJobsRequest request;
      request.set_request_id(wire::make_uuid());
      request.add_job_ids(submit());
      request.set_priority(-5);
      return one(request);
    };
  }

  void add_blob_calls(Templates& all) {
    all["FindMissingBlobs"] = [this] {
      v1::FindMissingBlobsRequest request;
      request.add_digests(digest_);
      return one(request);
    };
    all["QueryUpload"] = [] {
      v1::QueryUploadRequest request;
      request.set_upload_id(wire::make_uuid());
      return one(request);
    };
    all["ReadBlob"] = [this] {
      v1::ReadBlobRequest request;
      request.set_digest(digest_);
      request.set_offset(10);
      request.set_limit(100);
      return one(request);
    };
    all["WriteBlob"] = [this] {
      const std::string bytes = "new bytes " + std::to_string(++uploads_);
      Messages messages;
      v1::WriteBlobRequest request;
      request.mutable_header()->set_digest(wire::sha256_hex(bytes));
      request.mutable_header()->set_size_bytes(bytes.size());
      request.mutable_header()->set_upload_id(wire::make_uuid());
      messages.push_back(std::make_unique<v1::WriteBlobRequest>(request));
      for (std::size_t at = 0; at < bytes.size(); at += 6) {
        request.mutable_data()->set_offset(at);
        request.mutable_data()->set_data(bytes.substr(at, 6));
        messages.push_back(std::make_unique<v1::WriteBlobRequest>(request));
      }
      return messages;
    };
  }

  void add_worker_calls(Templates& all) {
    all["Register"] = [this] { return one(registration()); };
    all["AcquireLeases"] = [this] { return one(acquisition()); };
    all["Heartbeat"] = [this] {
      const v1::AttemptRef attempt = lease();
      v1::HeartbeatRequest request;
      request.set_worker_id(worker_);
      request.set_incarnation(incarnation_);
      auto& status = *request.add_attempts();
      status.set_attempt_id(attempt.attempt_id());
      status.set_fence(attempt.fence());
      status.mutable_progress()->set_phase("rates");
      status.mutable_progress()->set_done(1);
      (*status.mutable_progress()->mutable_metrics())["residual"] = 0.5;
      *request.add_devices() = registration().devices(0);
      return one(request);
    };
  }

  void add_admin_calls(Templates& all) {
    add_order_calls(
        all,
        [this] {
          enlist();
          return worker_;
        },
        [this] {
          lease();
          return job_;
        });
    all["SavePrincipal"] = [] {
      v1::SavePrincipalRequest request;
      request.mutable_principal()->set_name("ada");
      request.mutable_principal()->set_role(v1::ROLE_USER);
      request.mutable_principal()->set_tenant("phonons");
      return one(request);
    };
    all["ListPrincipals"] = [] { return one(v1::ListPrincipalsRequest()); };
    all["CreateToken"] = [] {
      v1::CreateTokenRequest request;
      request.set_principal("ada");
      request.mutable_lifetime()->set_seconds(60);
      return one(request);
    };
    all["CreateCode"] = [] {
      v1::CreateCodeRequest request;
      request.set_principal("ada");
      request.mutable_lifetime()->set_seconds(60);
      request.add_scopes(v1::TOKEN_SCOPE_READ);
      return one(request);
    };
    all["RedeemCode"] = [] {
      v1::RedeemCodeRequest request;
      request.set_secret(std::string(32, 'a'));
      return one(request);
    };
    all["RenewToken"] = [] { return one(v1::RenewTokenRequest()); };
    all["SaveQuotas"] = [] {
      v1::SaveQuotasRequest request;
      request.set_principal("ada");
      request.mutable_quotas()->set_shares(200);
      request.mutable_quotas()->set_jobs(1'000'000);
      return one(request);
    };
    all["RevokeToken"] = [this] {
      grpc::ClientContext context;
      limit(context);
      v1::CreateTokenRequest creation;
      creation.set_principal("ada");
      v1::CreateTokenResponse created;
      EXPECT_TRUE(
          v1::AdminService::NewStub(channel_)->CreateToken(&context, creation, &created).ok());
      v1::RevokeTokenRequest request;
      request.set_key_id(created.info().key_id());
      return one(request);
    };
  }

  void add_attempt_calls(Templates& all) {
    all["StartAttempt"] = [this] {
      v1::StartAttemptRequest request;
      *request.mutable_attempt() = lease();
      return one(request);
    };
    all["AppendLog"] = [this] {
      v1::AppendLogRequest request;
      *request.mutable_attempt() = lease();
      request.set_data("a line\n");
      return one(request);
    };
    all["RecordCheckpoint"] = [this] {
      v1::RecordCheckpointRequest request;
      *request.mutable_attempt() = lease();
      request.set_sequence(1);
      request.set_step(5);
      request.set_digest(digest_);
      request.set_size_bytes(size_);
      return one(request);
    };
    all["CompleteAttempt"] = [this] {
      v1::CompleteAttemptRequest request;
      *request.mutable_attempt() = lease();
      if (uploads_++ % 2 == 0) {
        begin(request.attempt());
        auto& artifact = *request.mutable_succeeded()->add_artifacts();
        artifact.set_name("result.h5");
        artifact.set_digest(digest_);
        artifact.set_size_bytes(size_);
        request.mutable_succeeded()->set_summary_json("{}");
      } else {
        request.mutable_failed()->set_reason(v1::FAILURE_REASON_NUMERICAL);
        request.mutable_failed()->set_message("no convergence");
      }
      request.mutable_usage()->set_wall_seconds(2.0);
      return one(request);
    };
    all["ReleaseLease"] = [this] {
      v1::ReleaseLeaseRequest request;
      *request.mutable_attempt() = lease();
      request.set_reason(v1::RELEASE_REASON_DRAIN);
      request.set_message("stopping");
      return one(request);
    };
  }

  std::string file_, digest_, worker_, incarnation_, job_;
  std::uint64_t size_ = 0;
  int uploads_ = 0;
};

}  // namespace quasi::server::test
