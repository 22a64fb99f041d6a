// The server behind its calls: a real one, in this process, on a Unix socket.

#include <gtest/gtest.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <random>
#include <thread>

#include "proto/wire/channel.hpp"
#include "proto/wire/chunks.hpp"
#include "proto/wire/digest.hpp"
#include "proto/wire/status.hpp"
#include "quasi/v1/blob_service.grpc.pb.h"
#include "quasi/v1/job_service.grpc.pb.h"
#include "quasi/v1/worker_service.grpc.pb.h"
#include "server/server.hpp"

namespace quasi::server {
namespace {

class Calls : public testing::Test {
 protected:
  Calls() {
    char name[] = "/tmp/quasi-calls-XXXXXX";
    root_ = mkdtemp(name);
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
  ~Calls() override {
    server_.reset();
    std::filesystem::remove_all(root_);
  }
  void start() {
    server_ = std::make_unique<Server>(options_);
    channel_ = wire::open_channel(options_.listen[0]);
    jobs_ = v1::JobService::NewStub(channel_);
    blobs_ = v1::BlobService::NewStub(channel_);
    workers_ = v1::WorkerService::NewStub(channel_);
  }
  static void limit(grpc::ClientContext& context, int seconds = 20) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(seconds));
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

  std::string root_;
  ServerOptions options_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::BlobService::Stub> blobs_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
  bool replayed_ = false;
};

// I7, also over a restart: same id and body, same answer; other body, refused.
TEST_F(Calls, ARepeatedRequestHasOneEffect) {
  const std::string request_id = wire::make_uuid();
  const std::string id = submit(request_id);
  EXPECT_FALSE(replayed_);
  EXPECT_EQ(submit(request_id), id);
  EXPECT_TRUE(replayed_);
  server_.reset();
  start();
  EXPECT_EQ(submit(request_id), id);
  grpc::ClientContext context;
  limit(context);
  v1::SubmitJobsRequest other;
  other.set_request_id(request_id);
  other.add_jobs()->mutable_test()->mutable_hang();
  v1::SubmitJobsResponse response;
  const grpc::Status status = jobs_->SubmitJobs(&context, other, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(wire::reason_of(status), wire::reason::kRequestIdReused);
}

// I9: a watcher that is cut after each few events and resumes by token sees each state event of
// each job exactly once, in order.
TEST_F(Calls, AWatcherThatResumesSeesEachEventOnce) {
  constexpr int kJobs = 40;
  std::string token;
  {
    grpc::ClientContext context;
    limit(context);
    v1::WatchJobsRequest request;
    request.set_snapshot(true);
    const auto reader = jobs_->WatchJobs(&context, request);
    v1::WatchEvent event;
    ASSERT_TRUE(reader->Read(&event));
    ASSERT_TRUE(event.has_bookmark());
    token = event.resume_token();
    context.TryCancel();
  }
  std::thread actor([&] {
    for (int i = 0; i < kJobs; ++i) cancel(submit());
  });
  std::map<std::string, std::uint64_t> newest;
  std::uint64_t last_seq = 0;
  int events = 0;
  int connections = 0;
  while (events < 2 * kJobs && connections < 200) {
    ++connections;
    grpc::ClientContext context;
    limit(context);
    v1::WatchJobsRequest request;
    request.set_resume_token(token);
    const auto reader = jobs_->WatchJobs(&context, request);
    v1::WatchEvent event;
    for (int taken = 0; taken < 3 && reader->Read(&event); ++taken) {
      token = event.resume_token();
      if (!event.has_state_changed()) continue;
      ++events;
      EXPECT_GT(event.seq(), last_seq);
      last_seq = event.seq();
      EXPECT_EQ(event.job_seq(), ++newest[event.job_id()]);
    }
    context.TryCancel();
  }
  actor.join();
  EXPECT_EQ(events, 2 * kJobs);
  EXPECT_EQ(newest.size(), static_cast<std::size_t>(kJobs));
  EXPECT_GT(connections, 10);
}

TEST_F(Calls, AnUploadAndADownloadContinueWhereTheyWereCut) {
  const std::string path = write_file("big", (5U << 20) + 123);
  const auto file = wire::digest_file(path);
  const std::string upload_id = wire::make_uuid();
  std::uint64_t first = 0;
  grpc::Status status = wire::upload_file(
      channel_, path, file.digest, file.size_bytes,
      {.on_progress = [&](std::uint64_t done, std::uint64_t) { first = done; },
       .cancelled =
           [&] {
             if (first <= (3U << 20)) return false;
             // What is still on its way is lost with the connection; let the server take it first.
             std::this_thread::sleep_for(std::chrono::milliseconds(300));
             return true;
           },
       .upload_id = upload_id});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  std::uint64_t resumed_at = 0;
  status = wire::upload_file(channel_, path, file.digest, file.size_bytes,
                             {.on_progress = [&](std::uint64_t done, std::uint64_t) {
                                if (resumed_at == 0) resumed_at = done;
                              },
                              .upload_id = upload_id});
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_GT(resumed_at, 1U << 20) << "began again from nothing";

  const std::string target = root_ + "/fetched";
  for (int part = 1; part <= 3; ++part) {
    std::uint64_t done = 0;
    status = wire::download_file(
        channel_, file.digest, file.size_bytes, target,
        {.on_progress = [&](std::uint64_t now, std::uint64_t) { done = now; },
         .cancelled = [&] { return part < 3 && done > static_cast<std::uint64_t>(part) << 20; }});
  }
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(wire::digest_file(target).digest, file.digest);
}

// I10: bytes that no longer hash to their name are not served, now or later; uploading heals.
TEST_F(Calls, ACorruptBlobIsDataLoss) {
  const std::string path = write_file("blob", 700'000);
  const auto file = wire::digest_file(path);
  ASSERT_TRUE(wire::upload_file(channel_, path, file.digest, file.size_bytes).ok());
  const std::string stored = options_.data_directory + "/blobs/sha256/" + file.digest.substr(0, 2) +
                             "/" + file.digest.substr(2, 2) + "/" + file.digest;
  std::filesystem::permissions(stored, std::filesystem::perms::owner_all);
  {
    std::fstream out(stored, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(12'345);
    out.put('!');
  }
  for (int time = 0; time < 2; ++time) {
    const grpc::Status status =
        wire::download_file(channel_, file.digest, file.size_bytes, root_ + "/out");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS) << status.error_message();
    EXPECT_EQ(wire::reason_of(status), wire::reason::kBlobCorrupt);
    EXPECT_FALSE(std::filesystem::exists(root_ + "/out"));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  ASSERT_TRUE(wire::upload_file(channel_, path, file.digest, file.size_bytes).ok());
  EXPECT_TRUE(wire::download_file(channel_, file.digest, file.size_bytes, root_ + "/out").ok());
}

v1::JobSpec valid_spec() {
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

/// Breaks one field of a sound request; returns a word that the refusal must contain.
std::string spoil(v1::SubmitJobsRequest& request, std::mt19937_64& random) {
  v1::JobSpec& spec = *request.mutable_jobs(static_cast<int>(random() % 2));
  const auto number = static_cast<std::int64_t>(random());
  switch (random() % 22) {
    case 0: spec.set_name(std::string(129 + random() % 500, 'x')); return "name";
    case 1: spec.set_name("bell\x07"); return "name";
    case 2: (*spec.mutable_labels())["Upper"] = "x"; return "labels";
    case 3: (*spec.mutable_labels())["long"] = std::string(200, 'v'); return "labels";
    case 4: spec.mutable_thermal()->set_deck("../etc"); return "deck";
    case 5: spec.mutable_thermal()->set_deck("elsewhere"); return "deck";
    case 6: spec.mutable_thermal()->mutable_settings(0)->set_key(""); return "settings[0].key";
    case 7: spec.mutable_thermal()->add_exports("a/b"); return "exports[0]";
    case 8: spec.mutable_inputs(0)->set_slot("/etc/passwd"); return "inputs[0].slot";
    case 9: spec.mutable_inputs(0)->set_digest("xyz"); return "inputs[0].digest";
    case 10: spec.mutable_inputs(0)->set_size_bytes(~0ULL >> (random() % 8)); return "size_bytes";
    case 11: *spec.add_inputs() = spec.inputs(0); return "inputs[1].slot";
    case 12: spec.mutable_resources()->set_gpus(17 + static_cast<std::uint32_t>(random() % 99));
      return "resources.gpus";
    case 13: spec.mutable_resources()->set_pool("Not A Pool"); return "resources.pool";
    case 14: spec.mutable_resources()->set_gpu_mem_bytes(~0ULL); return "gpu_mem_bytes";
    case 15: spec.mutable_max_runtime()->set_seconds(-1 - std::abs(number / 4)); return "max_runtime";
    case 16: spec.mutable_max_runtime()->set_nanos(-5); return "max_runtime";
    case 17: spec.mutable_retry()->set_max_attempts(11); return "max_attempts";
    case 18: spec.set_priority(101 + static_cast<std::int32_t>(random() % 1000)); return "priority";
    case 19: spec.mutable_not_before()->set_seconds(std::numeric_limits<std::int64_t>::max());
      return "not_before";
    case 20: spec.clear_work(); return "work";
    default: request.set_request_id("not a uuid"); return "request_id";
  }
}

// 1,000 requests that are wrong in one to three places: none crashes the server, none is INTERNAL,
// each refusal names every field that was spoilt.
TEST_F(Calls, MalformedRequestsAreRefusedByField) {
  const char* given = std::getenv("QUASI_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20'261;
  std::cout << "QUASI_SEED=" << seed << '\n';
  std::mt19937_64 random(seed);
  for (int i = 0; i < 1'000; ++i) {
    v1::SubmitJobsRequest request;
    request.set_request_id(wire::make_uuid());
    *request.add_jobs() = valid_spec();
    *request.add_jobs() = valid_spec();
    const std::string field = spoil(request, random);
    grpc::ClientContext context;
    limit(context);
    v1::SubmitJobsResponse response;
    const grpc::Status status = jobs_->SubmitJobs(&context, request, &response);
    ASSERT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << i << " " << field << ": " << status.error_message();
    bool named = false;
    for (const auto& violation : wire::parse_details(status).fields)
      named = named || violation.field.find(field) != std::string::npos;
    ASSERT_TRUE(named) << i << ": " << field << " is not named in " << status.error_message();
  }
  submit();  // Still well.
}

// Bytes that are no sound message: flipped bits of valid ones, sent as they are to every unary call.
TEST_F(Calls, FlippedBitsAreNeverInternal) {
  std::mt19937_64 random(77);
  v1::SubmitJobsRequest valid;
  valid.set_request_id(wire::make_uuid());
  *valid.add_jobs() = valid_spec();
  const std::string bytes = valid.SerializeAsString();
  int sent = 0;
  while (sent < 500) {
    std::string spoilt = bytes;
    for (int flips = 0; flips < 3; ++flips)
      spoilt[random() % spoilt.size()] ^= static_cast<char>(1U << (random() % 8));
    v1::SubmitJobsRequest submit_request;
    v1::CompleteAttemptRequest complete_request;
    v1::RegisterRequest register_request;
    v1::HeartbeatRequest heartbeat_request;
    v1::ListJobsRequest list_request;
    ++sent;
    const auto expect_sound = [&](const grpc::Status& status) {
      EXPECT_NE(status.error_code(), grpc::StatusCode::INTERNAL) << status.error_message();
      EXPECT_NE(status.error_code(), grpc::StatusCode::UNKNOWN) << status.error_message();
      EXPECT_NE(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
    };
    if (submit_request.ParseFromString(spoilt)) {
      grpc::ClientContext context;
      limit(context);
      v1::SubmitJobsResponse response;
      expect_sound(jobs_->SubmitJobs(&context, submit_request, &response));
    }
    if (complete_request.ParseFromString(spoilt)) {
      grpc::ClientContext context;
      limit(context);
      v1::CompleteAttemptResponse response;
      expect_sound(workers_->CompleteAttempt(&context, complete_request, &response));
    }
    if (register_request.ParseFromString(spoilt)) {
      grpc::ClientContext context;
      limit(context);
      v1::RegisterResponse response;
      expect_sound(workers_->Register(&context, register_request, &response));
    }
    if (heartbeat_request.ParseFromString(spoilt)) {
      grpc::ClientContext context;
      limit(context);
      v1::HeartbeatResponse response;
      expect_sound(workers_->Heartbeat(&context, heartbeat_request, &response));
    }
    if (list_request.ParseFromString(spoilt)) {
      grpc::ClientContext context;
      limit(context);
      v1::ListJobsResponse response;
      expect_sound(jobs_->ListJobs(&context, list_request, &response));
    }
  }
  submit();
}

TEST(Local, OnlyLoopbackAndUnixSocketsAreServed) {
  for (const char* address : {"127.0.0.1:7460", "127.8.9.1:0", "[::1]:7460", "localhost:1",
                              "unix:/run/quasi.sock"})
    EXPECT_NO_THROW(require_local(address)) << address;
  for (const char* address : {"0.0.0.0:7460", "[::]:7460", "10.0.0.1:7460", "example.org:7460",
                              "127.0.0.1", "127.0.0.1.example.org:1", "unix:", "*:7460", ":7460",
                              "127.0.0.1:70000", "localhost:-1"})
    EXPECT_THROW(require_local(address), BadConfiguration) << address;
}

}  // namespace
}  // namespace quasi::server
