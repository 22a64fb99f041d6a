#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "proto/wire/channel.hpp"
#include "proto/wire/chunks.hpp"
#include "proto/wire/digest.hpp"
#include "proto/wire/status.hpp"
#include "quasi/v1/blob_service.grpc.pb.h"
#include "quasi/v1/job_service.grpc.pb.h"
#include "quasi/v1/worker_service.grpc.pb.h"
#include "server/server.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server {

/// A real server in this process, on a Unix socket, with stubs for its three services.
class Calls : public testing::Test {
 protected:
  Calls() {
    options_.data_directory = root_ + "/data";
    options_.listen = {"unix:" + root_ + "/s"};
    options_.log_level = "error";
    options_.api.enable_test_work = true;
    options_.api.storage_low_bytes = 0;
    options_.api.storage_low_share = 0.0;
    options_.api.bookmark_ms = 200;
    options_.shutdown_ms = 2'000;
    start();
  }
  ~Calls() override { server_.reset(); }
  void start() {
    server_ = std::make_unique<Server>(options_);
    channel_ = wire::open_channel(options_.listen[0]);
    jobs_ = v1::JobService::NewStub(channel_);
    blobs_ = v1::BlobService::NewStub(channel_);
    workers_ = v1::WorkerService::NewStub(channel_);
  }
  /// Time after which a call counts as hanging. No test concludes anything from the speed of an
  /// answer.
  static constexpr std::chrono::seconds kHang{200};
  static void limit(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + kHang);
  }
  /// Polls until `holds` is true; false if it never becomes true.
  static bool wait_for(const std::function<bool()>& holds) {
    for (const auto deadline = std::chrono::steady_clock::now() + kHang; !holds();) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }
  std::string submit(const std::string& request_id = wire::make_uuid()) {
    grpc::ClientContext context;
    limit(context);
    v1::SubmitJobsRequest request;
    request.set_request_id(request_id);
    request.add_jobs()->mutable_test()->mutable_noop();
    v1::SubmitJobsResponse response;
    const grpc::Status status = jobs_->SubmitJobs(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    replayed_ = context.GetServerTrailingMetadata().count("quasi-replayed") > 0;
    return response.job_ids_size() == 1 ? response.job_ids(0) : "";
  }
  void cancel(const std::string& id) {
    grpc::ClientContext context;
    limit(context);
    v1::CancelJobsRequest request;
    request.add_job_ids(id);
    v1::CancelJobsResponse response;
    EXPECT_TRUE(jobs_->CancelJobs(&context, request, &response).ok());
  }
  std::string write_file(const std::string& name, std::size_t size) {
    std::mt19937_64 random(size);
    std::string bytes(size, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    std::ofstream(root_ + "/" + name, std::ios::binary) << bytes;
    return root_ + "/" + name;
  }

  quasi::test::TemporaryDirectory directory_;
  const std::string root_ = directory_.path();
  ServerOptions options_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::BlobService::Stub> blobs_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
  bool replayed_ = false;
};

/// A job that the server accepts once its input is present.
inline v1::JobSpec valid_spec() {
  v1::JobSpec spec;
  spec.set_name("silicon");
  (*spec.mutable_labels())["project"] = "kappa";
  spec.mutable_thermal()->set_deck("deck");
  v1::Setting& setting = *spec.mutable_thermal()->add_settings();
  setting.set_key("T");
  setting.set_value("300");
  v1::Input& input = *spec.add_inputs();
  input.set_slot("deck/CONTROL");
  input.set_digest(std::string(64, 'a'));
  input.set_size_bytes(10);
  spec.mutable_resources()->set_gpus(1);
  return spec;
}

}  // namespace quasi::server
