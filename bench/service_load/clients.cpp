// Clients at a steady rate: alone, beside malformed requests, and beside slow readers.

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <random>
#include <stdexcept>
#include <thread>

#include "bench/service_load/cases.hpp"
#include "bench/service_load/paced_clients.hpp"
#include "proto/wire/chunks.hpp"
#include "proto/wire/digest.hpp"
#include "quasi/v1/blob_service.grpc.pb.h"
#include "quasi/v1/job_service.pb.h"

namespace quasi::bench {
namespace {

constexpr Pace kOthers{.clients = 100, .calls_per_second = 5, .seconds = 20};

Pace others_for(int size) {
  Pace pace = kOthers;
  if (size > 0) pace.seconds = size;
  return pace;
}

/// Sends requests whose fields or bytes are wrong, until `stop`. @return number of requests
std::uint64_t send_malformed(const ServerProcess& server, std::uint64_t seed,
                             const std::atomic<bool>& stop) {
  std::mt19937_64 random(seed);
  grpc::GenericStub stub(server.connect());
  grpc::CompletionQueue queue;
  std::uint64_t sent = 0;
  for (; !stop; ++sent) {
    v1::SubmitJobsRequest wrong;
    wrong.set_request_id("no id");
    v1::JobSpec& job = *wrong.add_jobs();
    job.set_name(std::string(random() % 400, 'n'));
    job.set_priority(static_cast<int>(random() % 4'000) - 2'000);
    job.mutable_resources()->set_gpus(static_cast<std::uint32_t>(random() % 1'000));
    std::string bytes = wrong.SerializeAsString();
    if (random() % 2 == 0)  // no message at all
      for (int i = 0; i < 8; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::Status status;
    grpc::ClientContext context;
    const auto call =
        stub.PrepareUnaryCall(&context, "/quasi.v1.JobService/SubmitJobs", request, &queue);
    call->StartCall();
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    if (status.error_code() == grpc::StatusCode::INTERNAL)
      throw std::runtime_error("a malformed request was INTERNAL: " + status.error_message());
  }
  return sent;
}

/// Reads a blob at 1 MB/s, until `stop`.
void read_slowly(const ServerProcess& server, const std::string& digest,
                 const std::atomic<bool>& stop) {
  const auto stub = v1::BlobService::NewStub(server.connect());
  grpc::ClientContext context;
  v1::ReadBlobRequest request;
  request.set_digest(digest);
  const auto reader = stub->ReadBlob(&context, request);
  const auto begin = Clock::now();
  std::uint64_t got = 0;
  for (v1::ReadBlobResponse response; !stop && reader->Read(&response);) {
    got += response.data().size();
    while (!stop && seconds_since(begin) < static_cast<double>(got) / 1e6)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  context.TryCancel();
  reader->Finish();
}

void print_both(const char* name, Answers& alone, Answers& beside, const std::string& more) {
  std::string before = alone.as_json(), after = beside.as_json();
  std::printf("%s,%s,\"failures\":%d,\"alone\":{%s},\"beside\":{%s}}\n", begin_line(name).c_str(),
              more.c_str(), alone.failures + beside.failures, before.c_str(), after.c_str());
}

/// Runs clients against a new server and prints their line.
void time_clients(const std::filesystem::path& folder, const char* name, const Pace& pace) {
  const ServerProcess server(folder);
  const double before = processor_seconds(server.pid());
  Answers answers = run_clients(server, pace);
  const double processor = processor_seconds(server.pid()) - before;
  std::printf(
      "%s,\"clients\":%d,\"calls\":%zu,\"failures\":%d,\"calls_per_second\":%.0f,%s,"
      "\"server_processor_us_each\":%.0f}\n",
      begin_line(name).c_str(), pace.clients, answers.calls(), answers.failures,
      static_cast<double>(answers.calls()) / answers.seconds, answers.as_json().c_str(),
      1e6 * processor / static_cast<double>(answers.calls()));
}

}  // namespace

void many_clients(const std::filesystem::path& folder, int size) {
  Pace pace;
  if (size > 0) pace.seconds = size;
  time_clients(folder, "clients", pace);
}

void calm_clients(const std::filesystem::path& folder, int size) {
  Pace pace{.calls_per_second = 10};
  if (size > 0) pace.seconds = size;
  time_clients(folder, "calm_clients", pace);
}

void malformed_requests(const std::filesystem::path& folder, int size) {
  const ServerProcess server(folder);
  Answers alone = run_clients(server, others_for(size));
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> sent{0};
  std::vector<std::thread> callers;
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    callers.emplace_back([&, seed] { sent += send_malformed(server, seed, stop); });
  Answers beside = run_clients(server, others_for(size));
  stop = true;
  for (std::thread& caller : callers) caller.join();
  print_both("malformed", alone, beside, "\"malformed\":" + std::to_string(sent));
}

void slow_readers(const std::filesystem::path& folder, int size) {
  constexpr int kReaders = 20;
  constexpr std::uint64_t kBytes = std::uint64_t{2} << 30;
  const ServerProcess server(folder);
  const std::filesystem::path source = folder / "source.bin";
  {
    std::ofstream out(source, std::ios::binary);
    out.seekp(static_cast<std::streamoff>(kBytes - 1));
    out.put('q');
  }
  const auto file = wire::digest_file(source);
  const auto up = wire::upload_file(server.connect(), source, file.digest, kBytes);
  if (!up.ok()) throw std::runtime_error("upload: " + up.error_message());
  std::filesystem::remove(source);
  Answers alone = run_clients(server, others_for(size));
  forget_peak(server.pid());
  const double before_mib = memory_mib(server.pid(), "VmRSS");
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i)
    readers.emplace_back([&] { read_slowly(server, file.digest, stop); });
  Answers beside = run_clients(server, others_for(size));
  const double growth_mib = memory_mib(server.pid(), "VmHWM") - before_mib;
  stop = true;
  for (std::thread& reader : readers) reader.join();
  print_both(
      "readers", alone, beside,
      "\"readers\":" + std::to_string(kReaders) + ",\"growth_mib\":" + std::to_string(growth_mib));
}

}  // namespace quasi::bench
