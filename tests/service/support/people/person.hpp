#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>

#include "proto/wire/digest.hpp"
#include "tests/service/support/calls_fixture.hpp"

namespace quasi::server {

/// A principal with a token, and the calls that it makes by TCP.
class Person {
 public:
  Person(std::shared_ptr<grpc::Channel> channel, std::string token)
      : token_(std::move(token)),
        channel_(channel),
        jobs_(v1::JobService::NewStub(channel)),
        blobs_(v1::BlobService::NewStub(channel)),
        workers_(v1::WorkerService::NewStub(channel)) {}

  template <class Stub, class Request, class Response>
  grpc::Status call(Stub& stub,
                    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response) const {
    grpc::ClientContext context;
    admit(context);
    return (stub.*method)(&context, request, response);
  }
  void admit(grpc::ClientContext& context) const {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(200));
    context.AddMetadata("authorization", "Bearer " + token_);
  }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  v1::JobService::Stub& jobs() const { return *jobs_; }
  v1::BlobService::Stub& blobs() const { return *blobs_; }
  v1::WorkerService::Stub& workers() const { return *workers_; }

  /// Sends bytes as a blob. @return its digest
  std::string send(const std::string& bytes,
                   const std::string& upload_id = wire::make_uuid()) const {
    const grpc::Status status = try_send(bytes, upload_id);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return wire::sha256_hex(bytes);
  }
  /// @param message_bytes  largest part of the bytes in one message
  grpc::Status try_send(const std::string& bytes, const std::string& upload_id = wire::make_uuid(),
                        std::size_t message_bytes = 1 << 20) const {
    const std::string digest = wire::sha256_hex(bytes);
    grpc::ClientContext context;
    admit(context);
    v1::WriteBlobResponse response;
    const auto stream = blobs_->WriteBlob(&context, &response);
    v1::WriteBlobRequest message;
    message.mutable_header()->set_upload_id(upload_id);
    message.mutable_header()->set_digest(digest);
    message.mutable_header()->set_size_bytes(bytes.size());
    stream->Write(message);
    std::size_t sent = 0;
    do {
      message.mutable_data()->set_offset(sent);
      message.mutable_data()->set_data(bytes.substr(sent, message_bytes));
      sent += message_bytes;
    } while (stream->Write(message) && sent < bytes.size());
    stream->WritesDone();
    return stream->Finish();
  }
  bool has(const std::string& digest) const {
    v1::FindMissingBlobsRequest request;
    request.add_digests(digest);
    v1::FindMissingBlobsResponse response;
    const grpc::Status status =
        call(*blobs_, &v1::BlobService::Stub::FindMissingBlobs, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.missing_size() == 0;
  }
  grpc::Status read(const std::string& digest, std::string* bytes = nullptr) const {
    grpc::ClientContext context;
    admit(context);
    v1::ReadBlobRequest request;
    request.set_digest(digest);
    const auto stream = blobs_->ReadBlob(&context, request);
    v1::ReadBlobResponse chunk;
    while (stream->Read(&chunk))
      if (bytes != nullptr) *bytes += chunk.data();
    return stream->Finish();
  }
  grpc::Status submit(v1::SubmitJobsRequest request, std::string* id) const {
    if (request.request_id().empty()) request.set_request_id(wire::make_uuid());
    v1::SubmitJobsResponse response;
    const grpc::Status status = call(*jobs_, &v1::JobService::Stub::SubmitJobs, request, &response);
    if (status.ok()) *id = response.job_ids(0);
    return status;
  }
  std::string submit(v1::Visibility visibility = v1::VISIBILITY_UNSPECIFIED) const {
    std::string id;
    const grpc::Status status = try_submit(visibility, &id);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return id;
  }
  grpc::Status try_submit(v1::Visibility visibility = v1::VISIBILITY_UNSPECIFIED,
                          std::string* id = nullptr) const {
    v1::SubmitJobsRequest request;
    v1::JobSpec& spec = *request.add_jobs();
    spec.set_name("noop");
    spec.mutable_test()->mutable_noop();
    spec.set_visibility(visibility);
    std::string ignored;
    return submit(request, id != nullptr ? id : &ignored);
  }
  grpc::Status get(const std::string& id, v1::GetJobResponse* response) const {
    v1::GetJobRequest request;
    request.set_job_id(id);
    return call(*jobs_, &v1::JobService::Stub::GetJob, request, response);
  }
  grpc::Status cancel(const std::string& id) const {
    v1::CancelJobsRequest request;
    request.add_job_ids(id);
    v1::CancelJobsResponse response;
    return call(*jobs_, &v1::JobService::Stub::CancelJobs, request, &response);
  }
  grpc::Status erase(const std::string& id) const {
    v1::DeleteJobsRequest request;
    request.set_request_id(wire::make_uuid());
    request.add_job_ids(id);
    v1::DeleteJobsResponse response;
    return call(*jobs_, &v1::JobService::Stub::DeleteJobs, request, &response);
  }
  grpc::Status explain(const std::string& id, v1::ExplainJobResponse* response) const {
    v1::ExplainJobRequest request;
    request.set_job_id(id);
    return call(*jobs_, &v1::JobService::Stub::ExplainJob, request, response);
  }
  grpc::Status hold(const std::string& id) const {
    v1::HoldJobsRequest request;
    request.add_job_ids(id);
    v1::HoldJobsResponse response;
    return call(*jobs_, &v1::JobService::Stub::HoldJobs, request, &response);
  }
  grpc::Status release(const std::string& id) const {
    v1::ReleaseJobsRequest request;
    request.add_job_ids(id);
    v1::ReleaseJobsResponse response;
    return call(*jobs_, &v1::JobService::Stub::ReleaseJobs, request, &response);
  }
  grpc::Status reprioritise(const std::string& id, std::int32_t priority) const {
    v1::ReprioritiseJobsRequest request;
    request.add_job_ids(id);
    request.set_priority(priority);
    v1::ReprioritiseJobsResponse response;
    return call(*jobs_, &v1::JobService::Stub::ReprioritiseJobs, request, &response);
  }
  grpc::Status artifacts(const std::string& id, v1::ListArtifactsResponse* response) const {
    v1::ListArtifactsRequest request;
    request.set_job_id(id);
    return call(*jobs_, &v1::JobService::Stub::ListArtifacts, request, response);
  }
  grpc::Status log(const std::string& id, std::string* text = nullptr) const {
    grpc::ClientContext context;
    admit(context);
    v1::ReadLogsRequest request;
    request.set_job_id(id);
    const auto stream = jobs_->ReadLogs(&context, request);
    v1::ReadLogsResponse part;
    while (stream->Read(&part))
      if (text != nullptr) *text += part.data();
    return stream->Finish();
  }
  /// The ids that a listing shows.
  std::set<std::string> listed(const std::string& name_prefix = "") const {
    v1::ListJobsRequest request;
    request.mutable_filter()->set_name_prefix(name_prefix);
    v1::ListJobsResponse response;
    const grpc::Status status = call(*jobs_, &v1::JobService::Stub::ListJobs, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::set<std::string> ids;
    for (const v1::Job& job : response.jobs()) ids.insert(job.id());
    return ids;
  }
  /// The jobs that a watch with a snapshot shows before its first bookmark.
  std::set<std::string> watched() const {
    grpc::ClientContext context;
    admit(context);
    v1::WatchJobsRequest request;
    request.set_snapshot(true);
    const auto stream = jobs_->WatchJobs(&context, request);
    std::set<std::string> ids;
    v1::WatchEvent event;
    while (stream->Read(&event) && !event.has_bookmark()) ids.insert(event.job_id());
    context.TryCancel();
    while (stream->Read(&event)) continue;
    stream->Finish();
    return ids;
  }

 private:
  std::string token_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::BlobService::Stub> blobs_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
};

}  // namespace quasi::server
