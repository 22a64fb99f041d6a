// 200 watchers of all jobs, each cut now and then, see each event once and in order.

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <thread>
#include <unordered_map>

#include "bench/service_load/cases.hpp"
#include "bench/service_load/test_worker.hpp"

namespace quasi::bench {
namespace {

/// Number of events that one watcher has received, of wrong ones, and of cuts of its stream.
struct Seen {
  std::uint64_t events = 0, wrong = 0;
  int cuts = 0;
};

/// Watches from `token` on until `n_events` changes of state have come. The stream is cut after a
/// random number of events.
Seen watch(const ServerProcess& server, std::string token, std::uint64_t seed,
           std::uint64_t n_events) {
  std::mt19937_64 random(seed);
  const auto stub = v1::JobService::NewStub(server.connect());
  std::unordered_map<std::string, std::uint64_t> newest;
  std::uint64_t last = 0;
  Seen seen;
  while (seen.events < n_events) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(600));
    v1::WatchJobsRequest request;
    request.set_resume_token(token);
    const auto reader = stub->WatchJobs(&context, request);
    const std::uint64_t taken = 1 + random() % (n_events / 4);
    v1::WatchEvent event;
    for (std::uint64_t i = 0; i < taken && seen.events < n_events; ++i) {
      if (!reader->Read(&event)) break;
      token = event.resume_token();
      if (!event.has_state_changed()) continue;
      ++seen.events;
      if (event.seq() <= last || event.job_seq() != ++newest[event.job_id()]) ++seen.wrong;
      last = event.seq();
    }
    ++seen.cuts;
    context.TryCancel();
    const grpc::Status status = reader->Finish();
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
      throw std::runtime_error("a watcher waits for events that do not come");
  }
  return seen;
}

/// A token of the place after the newest event.
std::string token_of_now(v1::JobService::Stub& stub) {
  grpc::ClientContext context;
  v1::WatchJobsRequest request;
  request.set_snapshot(true);
  const auto reader = stub.WatchJobs(&context, request);
  v1::WatchEvent event;
  while (reader->Read(&event) && !event.has_bookmark()) {
  }
  context.TryCancel();
  return event.resume_token();
}

/// Submits jobs and cancels them, which are two events each.
void make_events(v1::JobService::Stub& stub, std::uint64_t n_events) {
  for (std::uint64_t made = 0; made < n_events; made += 200) {
    const auto jobs = submit(stub, std::vector<v1::JobSpec>(100, noop()));
    grpc::ClientContext context;
    v1::CancelJobsRequest request;
    *request.mutable_job_ids() = jobs.job_ids();
    v1::CancelJobsResponse response;
    if (!stub.CancelJobs(&context, request, &response).ok())
      throw std::runtime_error("a cancel was refused");
  }
}

}  // namespace

void watchers(const std::filesystem::path& folder, int size) {
  constexpr int kWatchers = 200;
  const std::uint64_t n_events = size > 0 ? static_cast<std::uint64_t>(size) : 100'000;
  const ServerProcess server(folder);
  const auto stub = v1::JobService::NewStub(server.connect());
  const std::string token = token_of_now(*stub);
  forget_peak(server.pid());
  const double before_mib = memory_mib(server.pid(), "VmRSS");
  const auto begin = Clock::now();
  std::vector<Seen> seen(kWatchers);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < seen.size(); ++i)
    threads.emplace_back([&, i] { seen[i] = watch(server, token, i, n_events); });
  make_events(*stub, n_events);
  for (std::thread& thread : threads) thread.join();
  Seen all;
  for (const Seen& one : seen) {
    all.events += one.events;
    all.wrong += one.wrong;
    all.cuts += one.cuts;
  }
  std::printf(
      "%s,\"watchers\":%d,\"events\":%llu,\"seen\":%llu,\"wrong\":%llu,\"cuts\":%d,"
      "\"seconds\":%.0f,\"growth_mib\":%.1f}\n",
      begin_line("watchers").c_str(), kWatchers, static_cast<unsigned long long>(n_events),
      static_cast<unsigned long long>(all.events), static_cast<unsigned long long>(all.wrong),
      all.cuts, seconds_since(begin), memory_mib(server.pid(), "VmHWM") - before_mib);
  if (all.wrong > 0 || all.events != n_events * kWatchers)
    throw std::runtime_error("an event was missed, repeated or out of order");
}

}  // namespace quasi::bench
