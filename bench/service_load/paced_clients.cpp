#include "bench/service_load/paced_clients.hpp"

#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <random>
#include <thread>

#include "proto/wire/chunks.hpp"
#include "quasi/v1/job_service.grpc.pb.h"

namespace quasi::bench {
namespace {

/// One client with its own connection.
class Client {
 public:
  Client(const ServerProcess& server, std::uint64_t seed)
      : random_(seed), stub_(v1::JobService::NewStub(server.connect())) {
    submit();  // A job that it may ask for.
  }
  void call_at_pace(const Pace& pace) {
    const std::chrono::duration<double> period(1.0 / pace.calls_per_second);
    const auto begin = Clock::now();
    auto next = begin + std::chrono::duration_cast<Clock::duration>(
                            period * std::uniform_real_distribution<double>(0, 1)(random_));
    while (seconds_since(begin) < pace.seconds) {
      std::this_thread::sleep_until(next);
      next += std::chrono::duration_cast<Clock::duration>(period);
      const auto start = Clock::now();
      const int kind = static_cast<int>(random_() % 10);
      const char* name = kind < 5 ? "get" : kind < 7 ? "list" : kind < 9 ? "submit" : "watch";
      const bool is_ok = kind < 5 ? get() : kind < 7 ? list() : kind < 9 ? submit() : watch();
      answers.times_ms[name].push_back(1e3 * seconds_since(start));
      if (!is_ok) ++answers.failures;
    }
  }
  Answers answers;

 private:
  static void limit(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    context.set_wait_for_ready(true);
  }
  bool submit() {
    grpc::ClientContext context;
    limit(context);
    v1::SubmitJobsRequest request;
    request.set_request_id(wire::make_uuid());
    request.add_jobs()->mutable_test()->mutable_noop();
    v1::SubmitJobsResponse response;
    const bool is_ok = stub_->SubmitJobs(&context, request, &response).ok();
    if (is_ok) id_ = response.job_ids(0);
    return is_ok;
  }
  bool get() {
    grpc::ClientContext context;
    limit(context);
    v1::GetJobRequest request;
    request.set_job_id(id_);
    v1::GetJobResponse response;
    return stub_->GetJob(&context, request, &response).ok();
  }
  bool list() {
    grpc::ClientContext context;
    limit(context);
    v1::ListJobsRequest request;
    request.set_page_size(10);
    v1::ListJobsResponse response;
    return stub_->ListJobs(&context, request, &response).ok();
  }
  bool watch() {
    grpc::ClientContext context;
    limit(context);
    v1::WatchJobsRequest request;
    request.set_snapshot(true);
    request.mutable_filter()->add_job_ids(id_);
    const auto reader = stub_->WatchJobs(&context, request);
    bool is_there = false;
    for (v1::WatchEvent event; !is_there && reader->Read(&event);) is_there = event.has_bookmark();
    context.TryCancel();
    reader->Finish();
    return is_there;
  }

  std::mt19937_64 random_;
  std::unique_ptr<v1::JobService::Stub> stub_;
  std::string id_;
};

}  // namespace

std::size_t Answers::calls() const {
  std::size_t count = 0;
  for (const auto& [name, times] : times_ms) count += times.size();
  return count;
}

std::string Answers::as_json() {
  std::string text;
  for (auto& [name, times] : times_ms) {
    char part[128];
    std::snprintf(part, sizeof part, "%s\"%s_p50_ms\":%.2f,\"%s_p99_ms\":%.2f",
                  text.empty() ? "" : ",", name.c_str(), quantile(times, 0.5), name.c_str(),
                  quantile(times, 0.99));
    text += part;
  }
  return text;
}

Answers run_clients(const ServerProcess& server, const Pace& pace) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < pace.clients; ++i)
    clients.push_back(std::make_unique<Client>(server, static_cast<std::uint64_t>(i)));
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (const auto& client : clients)
    threads.emplace_back([&client, &pace] { client->call_at_pace(pace); });
  for (std::thread& thread : threads) thread.join();
  Answers all;
  all.seconds = seconds_since(begin);
  for (const auto& client : clients) {
    all.failures += client->answers.failures;
    for (const auto& [name, times] : client->answers.times_ms)
      all.times_ms[name].insert(all.times_ms[name].end(), times.begin(), times.end());
  }
  return all;
}

}  // namespace quasi::bench
