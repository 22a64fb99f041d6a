// The server behind its calls: a real one, in this process, on a Unix socket.

#include <iostream>
#include <limits>
#include <map>
#include <thread>
#include <vector>

#include <grpcpp/generic/generic_stub.h>

#include "server/store/sqlite.hpp"
#include "tests/service/support/calls_fixture.hpp"

namespace quasi::server {
namespace {

/// A message that no generated code of ours reads; "" if there is none.
std::string bytes_of(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (message.Valid() && message.Dump(&slices).ok())
    for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  return bytes;
}

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

TEST_F(Calls, AnUploadAndADownloadContinueWhereTheyWereCut) {
  const std::string path = write_file("big", (5U << 20) + 123);
  const auto file = wire::digest_file(path);
  const std::string upload_id = wire::make_uuid();
  std::uint64_t first = 0;
  grpc::Status status =
      wire::upload_file(channel_, path, file.digest, file.size_bytes,
                        {.on_progress = [&](std::uint64_t done, std::uint64_t) { first = done; },
                         .cancelled =
                             [&] {
                               if (first <= (3U << 20)) return false;
                               // What is still on its way is lost with the connection: until the
                               // server has taken some of it.
                               return wait_for([&] {
                                 std::error_code none;
                                 const auto staged = std::filesystem::file_size(
                                     root_ + "/data/staging/" + upload_id, none);
                                 return !none && staged > (2U << 20);
                               });
                             },
                         .upload_id = upload_id});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  std::uint64_t resumed_at = 0;
  status = wire::upload_file(channel_, path, file.digest, file.size_bytes,
                             {.on_progress =
                                  [&](std::uint64_t done, std::uint64_t) {
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

// A blob that rots where nobody reads it is found by reading everything again, and put aside.
TEST_F(Calls, ABlobThatRotsIsFoundBeforeItIsNeeded) {
  server_.reset();
  options_.scrub.period_ms = 1;
  options_.scrub.bytes_per_second = std::int64_t{1} << 30;
  start();
  std::vector<wire::FileDigest> files;
  for (const std::size_t size : {700'000U, 3'000'001U, 1U << 20}) {
    const std::string path = write_file(std::to_string(size), size);
    files.push_back(wire::digest_file(path));
    ASSERT_TRUE(
        wire::upload_file(channel_, path, files.back().digest, files.back().size_bytes).ok());
  }
  const std::string rotten = files[1].digest;
  const std::string stored = options_.data_directory + "/blobs/sha256/" + rotten.substr(0, 2) +
                             "/" + rotten.substr(2, 2) + "/" + rotten;
  std::filesystem::permissions(stored, std::filesystem::perms::owner_all);
  {
    std::fstream out(stored, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(2'999'999);
    out.put('!');
    out.put('?');
  }
  const std::string aside = options_.data_directory + "/corrupt/" + rotten;
  EXPECT_TRUE(wait_for([&] { return std::filesystem::exists(aside); }));
  for (const auto& file : files) {
    const grpc::Status status =
        wire::download_file(channel_, file.digest, file.size_bytes, root_ + "/out");
    EXPECT_EQ(status.error_code(),
              file.digest == rotten ? grpc::StatusCode::DATA_LOSS : grpc::StatusCode::OK)
        << status.error_message();
  }
}

/// Breaks one field of a sound request; returns a word that the refusal must contain.
std::string spoil(v1::SubmitJobsRequest& request, std::mt19937_64& random) {
  v1::JobSpec& spec = *request.mutable_jobs(static_cast<int>(random() % 2));
  const auto number = static_cast<std::int64_t>(random());
  switch (random() % 22) {
    case 0:
      spec.set_name(std::string(129 + random() % 500, 'x'));
      return "name";
    case 1:
      spec.set_name("bell\x07");
      return "name";
    case 2:
      (*spec.mutable_labels())["Upper"] = "x";
      return "labels";
    case 3:
      (*spec.mutable_labels())["long"] = std::string(200, 'v');
      return "labels";
    case 4:
      spec.mutable_thermal()->set_deck("../etc");
      return "deck";
    case 5:
      spec.mutable_thermal()->set_deck("elsewhere");
      return "deck";
    case 6:
      spec.mutable_thermal()->mutable_settings(0)->set_key("");
      return "settings[0].key";
    case 7:
      spec.mutable_thermal()->add_exports("a/b");
      return "exports[0]";
    case 8:
      spec.mutable_inputs(0)->set_slot("/etc/passwd");
      return "inputs[0].slot";
    case 9:
      spec.mutable_inputs(0)->set_digest("xyz");
      return "inputs[0].digest";
    case 10:
      spec.mutable_inputs(0)->set_size_bytes(~0ULL >> (random() % 8));
      return "size_bytes";
    case 11:
      *spec.add_inputs() = spec.inputs(0);
      return "inputs[1].slot";
    case 12:
      spec.mutable_resources()->set_gpus(17 + static_cast<std::uint32_t>(random() % 99));
      return "resources.gpus";
    case 13:
      spec.mutable_resources()->set_pool("Not A Pool");
      return "resources.pool";
    case 14:
      spec.mutable_resources()->set_gpu_mem_bytes(~0ULL);
      return "gpu_mem_bytes";
    case 15:
      spec.mutable_max_runtime()->set_seconds(-1 - std::abs(number / 4));
      return "max_runtime";
    case 16:
      spec.mutable_max_runtime()->set_nanos(-5);
      return "max_runtime";
    case 17:
      spec.mutable_retry()->set_max_attempts(11);
      return "max_attempts";
    case 18:
      spec.set_priority(101 + static_cast<std::int32_t>(random() % 1000));
      return "priority";
    case 19:
      spec.mutable_not_before()->set_seconds(std::numeric_limits<std::int64_t>::max());
      return "not_before";
    case 20:
      spec.clear_work();
      return "work";
    default:
      request.set_request_id("not a uuid");
      return "request_id";
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

// Until the store is open the server is there and says so; health says NOT_SERVING.
TEST_F(Calls, WhileTheStoreIsOpenedEveryCallIsToldSo) {
  const std::string id = submit();
  server_.reset();
  auto other =
      std::make_unique<Database>(options_.data_directory + "/quasi.db", Database::Mode::kWriter);
  other->execute("BEGIN IMMEDIATE");  // The server's own first write waits for us.
  std::thread starter([&] {
    // It waits for some seconds for us; on a slow machine that may be too short a while.
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
    return bytes.size() == 2 ? static_cast<int>(bytes[1])
                             : 0;  // HealthCheckResponse{status = 1: n}
  };
  EXPECT_EQ(health(), 2) << "NOT_SERVING";
  grpc::Status status = get();
  for (int tries = 1; wire::reason_of(status).empty() && tries < 20; ++tries)
    status = get();  // it was just beginning anew
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  EXPECT_EQ(wire::reason_of(status), wire::reason::kStarting);
  EXPECT_TRUE(wire::parse_details(status).retry_after);
  other->execute("ROLLBACK");
  other.reset();
  starter.join();
  EXPECT_TRUE(get().ok());
  EXPECT_EQ(health(), 1) << "SERVING";
}

// Who has none of our .proto files, as grpcurl, asks the server for its services.
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
  const grpc::Slice list_services(
      std::string("\x3a\x01*"));  // ServerReflectionRequest{list_services = 7: "*"}
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

// Who takes nothing for too long hears why once it reads on, and may continue by offset; who does
// not even then is reset.
TEST_F(Calls, ASlowReaderIsToldSo) {
  const std::string path = write_file("big", 8U << 20);
  const auto file = wire::digest_file(path);
  ASSERT_TRUE(wire::upload_file(channel_, path, file.digest, file.size_bytes).ok());
  // After one limit it is told, after two it is reset. Where reader or server overslept that, again
  // with longer ones.
  for (const bool reads_on : {true, false}) {
    std::int64_t limit_ms = 300;
    for (bool shown = false; !shown; limit_ms *= 2) {
      ASSERT_LT(limit_ms, 20'000) << (reads_on ? "nobody was told" : "nobody was reset");
      server_.reset();
      options_.api.slow_reader_ms = limit_ms;
      start();
      grpc::ClientContext context;
      limit(context);
      v1::ReadBlobRequest request;
      request.set_digest(file.digest);
      const auto reader = blobs_->ReadBlob(&context, request);
      std::this_thread::sleep_for(
          std::chrono::milliseconds(reads_on ? limit_ms * 3 / 2 : limit_ms * 4));
      v1::ReadBlobResponse response;
      std::uint64_t taken = 0;
      while (reader->Read(&response)) taken += response.data().size();
      const grpc::Status status = reader->Finish();
      shown = taken < file.size_bytes && !status.ok();
      if (reads_on)
        shown = shown && status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED &&
                wire::reason_of(status) == wire::reason::kSlowReader;
      // The rest comes, in as many pieces as there are pauses in which this thread does not run.
      grpc::Status rest;
      for (int tries = 0; tries < 50 && taken < file.size_bytes; ++tries) {
        request.set_offset(taken);
        grpc::ClientContext again;
        limit(again);
        const auto continued = blobs_->ReadBlob(&again, request);
        while (continued->Read(&response)) taken += response.data().size();
        rest = continued->Finish();
      }
      EXPECT_TRUE(rest.ok()) << rest.error_message();
      EXPECT_EQ(taken, file.size_bytes);
    }
  }
}

std::uint64_t bytes_read_by_this_process() {
  std::ifstream in("/proc/self/io");
  std::string name;
  std::uint64_t bytes = 0;
  in >> name >> bytes;
  EXPECT_EQ(name, "rchar:");
  return bytes;
}

// A download cut forty times costs the disk little more than one that is never cut, and the whole
// is verified all the same: what was damaged since the last cut is not served to its end.
TEST_F(Calls, ContinuedDownloadsAreNotHashedFromTheirBeginning) {
  constexpr std::uint64_t kSize = 64U << 20;
  const std::string path = write_file("big", kSize);
  const auto file = wire::digest_file(path);
  ASSERT_TRUE(wire::upload_file(channel_, path, file.digest, file.size_bytes).ok());
  std::uint64_t taken = 0;
  wire::Sha256 hash;
  const auto read_on = [&](std::uint64_t most) {
    grpc::ClientContext context;
    limit(context);
    v1::ReadBlobRequest request;
    request.set_digest(file.digest);
    request.set_offset(taken);
    const auto reader = blobs_->ReadBlob(&context, request);
    v1::ReadBlobResponse response;
    const std::uint64_t until = taken + most;
    while (reader->Read(&response)) {
      hash.update(response.data());
      taken += response.data().size();
      if (taken >= until) {
        context.TryCancel();
        break;  // what has come already is left
      }
    }
    return reader->Finish();
  };
  const std::uint64_t before = bytes_read_by_this_process();
  for (int cut = 0; cut < 40; ++cut) {
    read_on(1U << 20);
    ASSERT_LT(taken, kSize);
  }
  ASSERT_TRUE(read_on(2 * kSize).ok());
  EXPECT_EQ(hash.finish_hex(), file.digest);
  // At most the distance of two marks again at each cut, and what was under way when it came.
  const double share = static_cast<double>(bytes_read_by_this_process() - before) / kSize;
  std::cout << "    read " << share
            << " times its size for 40 cuts; 14 times if hashed from its beginning\n";
  EXPECT_LT(share, 4.0);

  // Damage behind the first half, which a reader has.
  const auto damage = [&] {
    const auto stored = root_ + "/data/blobs/sha256/" + file.digest.substr(0, 2) + "/" +
                        file.digest.substr(2, 2) + "/" + file.digest;
    std::filesystem::permissions(stored, std::filesystem::perms::owner_write,
                                 std::filesystem::perm_options::add);
    std::fstream out(stored, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(40 << 20);
    out.put('x').put('y');
    ASSERT_TRUE(out.good());
  };
  taken = 0;
  read_on(kSize / 2);
  damage();
  const grpc::Status status = read_on(2 * kSize);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS) << status.error_message();
  EXPECT_LT(taken, kSize);
  // Uploaded again, it is read again, from the middle too: nothing is remembered of the damaged
  // one.
  ASSERT_TRUE(wire::upload_file(channel_, path, file.digest, file.size_bytes).ok());
  taken = kSize / 4 * 3;
  EXPECT_TRUE(read_on(2 * kSize).ok());
}

// A job that no device known can ever hold is refused with the largest there is; one for which no
// device has come yet waits.
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
    EXPECT_EQ(report.problems_size(), status.ok() ? 0 : 1);  // Both by the same rule.
    if (!status.ok() && report.problems_size() == 1) {
      EXPECT_EQ(report.problems(0).reason(), wire::reason::kUnschedulable);
      EXPECT_EQ(status.error_message().find(report.problems(0).field()), 0U)
          << status.error_message();
    }
    return status;
  };
  EXPECT_TRUE(ask(std::uint64_t{900} << 30, 4, "").ok()) << "nobody has registered yet";
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

TEST(Local, OnlyLoopbackAndUnixSocketsAreServed) {
  for (const char* address :
       {"127.0.0.1:7460", "127.8.9.1:0", "[::1]:7460", "localhost:1", "unix:/run/quasi.sock"})
    EXPECT_NO_THROW(require_local(address)) << address;
  for (const char* address :
       {"0.0.0.0:7460", "[::]:7460", "10.0.0.1:7460", "example.org:7460", "127.0.0.1",
        "127.0.0.1.example.org:1", "unix:", "*:7460", ":7460", "127.0.0.1:70000", "localhost:-1"})
    EXPECT_THROW(require_local(address), BadConfiguration) << address;
}

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
}

}  // namespace
}  // namespace quasi::server
