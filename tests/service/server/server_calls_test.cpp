// The calls of a real server in this process, on a Unix socket: repeated requests, watchers, the
// start of the store, reflection, jobs that no device can hold, and the configuration.

#include <grpcpp/generic/generic_stub.h>

#include <map>
#include <thread>
#include <vector>

#include "server/store/sqlite.hpp"
#include "tests/service/support/calls_fixture.hpp"

namespace quasi::server {
namespace {

/// Bytes of a message of a service that has no generated code here; "" without a message.
std::string bytes_of(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (message.Valid() && message.Dump(&slices).ok())
    for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  return bytes;
}

// I7, also over a restart: a request that is repeated with its id and body gets the stored answer.
// With another body it is refused.
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

// I9: a watcher that is cut off after every few events and resumes by token sees each state event
// of each job exactly once, in order.
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
  const auto hangs = std::chrono::steady_clock::now() + kHang;
  while (events < 2 * kJobs && std::chrono::steady_clock::now() < hangs) {
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

// While the store is being opened, calls are answered with the reason STARTING, and health says
// NOT_SERVING.
TEST_F(Calls, WhileTheStoreIsOpenedEveryCallIsToldSo) {
  const std::string id = submit();
  server_.reset();
  auto other =
      std::make_unique<Database>(options_.data_directory + "/quasi.db", Database::Mode::kWriter);
  other->execute("BEGIN IMMEDIATE");  // Blocks the first write of the server.
  std::thread starter([&] {
    // The server waits some seconds for the lock, which may be too short on a slow machine.
    for (int tries = 1; !server_; ++tries) try {
        server_ = std::make_unique<Server>(options_);
      } catch (const std::exception&) {
        if (tries == 20) throw;
      }
  });
  channel_ = wire::open_channel(options_.listen[0]);
  const auto stub = v1::JobService::NewStub(channel_);
  const auto get = [&] {
    grpc::ClientContext context;
    limit(context);
    context.set_wait_for_ready(true);
    v1::GetJobRequest request;
    request.set_job_id(id);
    v1::GetJobResponse response;
    return stub->GetJob(&context, request, &response);
  };
  const auto health = [&] {
    grpc::ClientContext context;
    limit(context);
    context.set_wait_for_ready(true);
    grpc::GenericStub generic(channel_);
    grpc::CompletionQueue queue;
    const grpc::Slice nothing(std::string{});
    const grpc::ByteBuffer empty(&nothing, 1);
    grpc::ByteBuffer answer;
    grpc::Status status;
    const auto call =
        generic.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", empty, &queue);
    call->StartCall();
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    if (!status.ok()) return -1;
    const std::string bytes = bytes_of(answer);
    // The message is HealthCheckResponse{status = 1: n}.
    return bytes.size() == 2 ? static_cast<int>(bytes[1]) : 0;
  };
  EXPECT_EQ(health(), 2) << "NOT_SERVING";
  grpc::Status status = get();
  for (int tries = 1; wire::reason_of(status).empty() && tries < 20; ++tries)
    status = get();  // The server was between two attempts to open the store.
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  EXPECT_EQ(wire::reason_of(status), wire::reason::kStarting);
  EXPECT_TRUE(wire::parse_details(status).retry_after);
  other->execute("ROLLBACK");
  other.reset();
  starter.join();
  EXPECT_TRUE(get().ok());
  EXPECT_EQ(health(), 1) << "SERVING";
}

// A client without our .proto files, such as grpcurl, asks the server for its services by
// reflection.
TEST_F(Calls, ReflectionNamesEveryService) {
  grpc::ClientContext context;
  limit(context);
  grpc::GenericStub generic(channel_);
  grpc::CompletionQueue queue;
  const auto stream = generic.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  const auto done = [&] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  stream->StartCall(nullptr);
  ASSERT_TRUE(done());
  // The message is ServerReflectionRequest{list_services = 7: "*"}.
  const grpc::Slice list_services(std::string("\x3a\x01*"));
  stream->WriteLast(grpc::ByteBuffer(&list_services, 1), grpc::WriteOptions(), nullptr);
  ASSERT_TRUE(done());
  grpc::ByteBuffer answer;
  stream->Read(&answer, nullptr);
  ASSERT_TRUE(done());
  const std::string services = bytes_of(answer);
  for (const char* name : {"quasi.v1.JobService", "quasi.v1.WorkerService", "quasi.v1.BlobService",
                           "grpc.health.v1.Health"})
    EXPECT_NE(services.find(name), std::string::npos) << name;
  grpc::Status status;
  stream->Finish(&status, nullptr);
  EXPECT_TRUE(done());
  EXPECT_TRUE(status.ok()) << status.error_message();
}

// A job that no known device can ever hold is refused with the largest device there is. Without any
// known device the job waits. `ValidateJobs` gives the answer of `SubmitJobs`.
TEST_F(Calls, WhatNoDeviceCanHoldIsUnschedulable) {
  const auto ask = [&](std::uint64_t memory_bytes, std::uint32_t gpus, const std::string& pool) {
    v1::SubmitJobsRequest request;
    request.set_request_id(wire::make_uuid());
    v1::JobSpec& job = *request.add_jobs();
    job.mutable_test()->mutable_noop();
    job.mutable_resources()->set_gpu_mem_bytes(memory_bytes);
    job.mutable_resources()->set_gpus(gpus);
    job.mutable_resources()->set_pool(pool);
    v1::ValidateJobsRequest check;
    *check.add_jobs() = job;
    grpc::ClientContext context;
    limit(context);
    v1::SubmitJobsResponse response;
    const grpc::Status status = jobs_->SubmitJobs(&context, request, &response);
    grpc::ClientContext checking;
    limit(checking);
    v1::ValidateJobsResponse report;
    EXPECT_TRUE(jobs_->ValidateJobs(&checking, check, &report).ok());
    EXPECT_EQ(report.problems_size(), status.ok() ? 0 : 1);
    if (!status.ok() && report.problems_size() == 1) {
      EXPECT_EQ(report.problems(0).reason(), wire::reason::kUnschedulable);
      EXPECT_EQ(status.error_message().find(report.problems(0).field()), 0U)
          << status.error_message();
    }
    return status;
  };
  EXPECT_TRUE(ask(std::uint64_t{900} << 30, 4, "").ok()) << "no worker has registered yet";
  v1::RegisterRequest worker;
  worker.set_worker_id("w_" + std::string(26, '0'));
  worker.set_incarnation(wire::make_uuid());
  worker.add_kinds("test");
  for (const std::uint64_t gibibytes : {80, 141}) {
    v1::Device& device = *worker.add_devices();
    device.set_id("GPU-" + std::to_string(gibibytes));
    device.set_backend(v1::DEVICE_BACKEND_CUDA);
    device.set_memory_bytes(gibibytes << 30);
    device.set_slots(1);
  }
  grpc::ClientContext context;
  limit(context);
  v1::RegisterResponse registered;
  ASSERT_TRUE(workers_->Register(&context, worker, &registered).ok());

  EXPECT_TRUE(ask(std::uint64_t{141} << 30, 1, "").ok());
  EXPECT_TRUE(ask(std::uint64_t{80} << 30, 2, "").ok());
  EXPECT_TRUE(ask(std::uint64_t{900} << 30, 4, "elsewhere").ok())
      << "another pool's workers may come";
  const grpc::Status memory = ask(std::uint64_t{142} << 30, 1, "");
  EXPECT_EQ(memory.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(wire::reason_of(memory), wire::reason::kUnschedulable);
  EXPECT_NE(memory.error_message().find("jobs[0].spec.resources.gpu_mem_bytes: asks for 142.0 GiB"),
            std::string::npos)
      << memory.error_message();
  EXPECT_NE(memory.error_message().find("has 141.0 GiB"), std::string::npos)
      << memory.error_message();
  const grpc::Status count = ask(0, 3, "");
  EXPECT_NE(count.error_message().find("jobs[0].spec.resources.gpus: asks for 3"),
            std::string::npos)
      << count.error_message();
  EXPECT_EQ(wire::reason_of(ask(std::uint64_t{100} << 30, 2, "")), wire::reason::kUnschedulable);
}

// Without a certificate the server listens on loopback addresses and Unix sockets only.
TEST(Local, OnlyLoopbackAndUnixSocketsAreServed) {
  for (const char* address :
       {"127.0.0.1:7460", "127.8.9.1:0", "[::1]:7460", "localhost:1", "unix:/run/quasi.sock"})
    EXPECT_NO_THROW(require_local(address)) << address;
  for (const char* address :
       {"0.0.0.0:7460", "[::]:7460", "10.0.0.1:7460", "example.org:7460", "127.0.0.1",
        "127.0.0.1.example.org:1", "unix:", "*:7460", ":7460", "127.0.0.1:70000", "localhost:-1"})
    EXPECT_THROW(require_local(address), BadConfiguration) << address;
  for (const char* address : {"0.0.0.0:7460", "[::]:7460", "example.org:7460", "unix:/s"})
    EXPECT_NO_THROW(require_address(address)) << address;
  for (const char* address : {"127.0.0.1", "unix:", ":7460", "127.0.0.1:70000", "localhost:-1"})
    EXPECT_THROW(require_address(address), BadConfiguration) << address;
}

// An unknown key of the configuration is refused with its file and the nearest known key.
TEST(Configuration, AnUnknownKeyNamesItsFileAndTheNearestKey) {
  const test::TemporaryDirectory directory;
  const std::string path = (directory.path() / "server.toml").string();
  const auto complaint = [&](const std::string& text) -> std::string {
    std::ofstream(path) << text;
    const char* const words[] = {"quasi-server", "--config", path.c_str()};
    try {
      parse_command_line(3, words);
    } catch (const BadConfiguration& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(complaint("lease_tll = 30"),
            "unknown key 'lease_tll' in " + path + "; did you mean 'lease_ttl'?");
  EXPECT_EQ(complaint("colour = 1"),
            "unknown key 'colour' in " + path + "; quasi-server --help lists the keys");
  EXPECT_EQ(complaint("lease_ttl = 30"), "accepted");
  EXPECT_EQ(complaint("listen = 'unix:/s'\nworker_listen = ['unix:/w', '127.0.0.1:0']"),
            "accepted");
  EXPECT_EQ(complaint("listen = 'unix:/s'\nworker_listen = 'unix:/s'"),
            "worker_listen: unix:/s is an address of `listen` too; give workers one of their own");
  EXPECT_EQ(complaint("worker_listen = '0.0.0.0:1'").substr(0, path.size()), path);
}

// The help names the form of each value: an address is no file.
TEST(Configuration, TheHelpNamesTheFormOfAValue) {
  const char* const words[] = {"quasi-server", "--help"};
  testing::internal::CaptureStdout();
  parse_command_line(2, words);
  const std::string help = testing::internal::GetCapturedStdout();
  EXPECT_NE(help.find("--public-address HOST:PORT"), std::string::npos) << help;
  EXPECT_NE(help.find("--tls-certificate FILE"), std::string::npos) << help;
}

}  // namespace
}  // namespace quasi::server
