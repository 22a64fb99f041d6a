// The server alone, as a process of its own: durable submissions, batches of a thousand jobs, and a
// large result fetched over a connection that is cut twice. One JSON line a case. Callers use a
// Unix socket, or with `tls` TCP on 127.0.0.1 with TLS 1.3 and the token of a user.
//
// With a number of jobs it also measures single submissions beside a backup of a store of so many
// jobs, and the restoration of that backup.
//
//   service_server [submits per caller = 200] [GiB to fetch = 0] [unix | tls] [jobs = 0]

#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/service_load/server_process.hpp"
#include "proto/wire/channel.hpp"
#include "proto/wire/chunks.hpp"
#include "proto/wire/digest.hpp"
#include "proto/wire/manager/mutex_checks.hpp"
#include "quasi/v1/job_service.grpc.pb.h"
#include "tests/service/support/people/tls_door.hpp"

extern char** environ;

namespace quasi {
namespace {

using bench::Clock;
using bench::forget_peak;
using bench::memory_mib;
using bench::processor_seconds;
using bench::seconds_since;

/// Names the way to the server, as the results call it.
struct Door {
  std::string name;
  std::function<std::shared_ptr<grpc::Channel>()> open;
};

std::string program_path() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "quasi-server").string();
}

pid_t start_server(const std::string& directory, const std::vector<std::string>& listen) {
  const std::string program = program_path();
  std::vector<std::string> words = {
      program,   "--data-directory",     directory, "--log-level",
      "warning", "--enable-test-work",   "true",    "--storage-low-bytes",
      "0",       "--submits-per-second", "1000000", "--calls-per-second",
      "1000000"};
  words.insert(words.end(), listen.begin(), listen.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments.data(), environ) != 0) {
    std::cerr << "cannot start " << program << '\n';
    std::exit(1);
  }
  return pid;
}

/// Callers submit at the same time, `each` times `batch` jobs, on one connection.
void submits(const Door& door, pid_t server, int callers, int each, int batch) {
  std::atomic<int> failures{0};
  std::vector<double> latency_ms;
  std::vector<std::vector<double>> per_caller(static_cast<std::size_t>(callers));
  std::vector<std::thread> threads;
  const auto channel = door.open();
  channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const double processor_before = processor_seconds(server);
  const auto start = Clock::now();
  for (int caller = 0; caller < callers; ++caller) {
    threads.emplace_back([&, caller] {
      const auto stub = v1::JobService::NewStub(channel);
      for (int i = 0; i < each; ++i) {
        grpc::ClientContext context;
        v1::SubmitJobsRequest request;
        request.set_request_id(wire::make_uuid());
        for (int job = 0; job < batch; ++job) request.add_jobs()->mutable_test()->mutable_noop();
        v1::SubmitJobsResponse response;
        const auto begin = Clock::now();
        if (!stub->SubmitJobs(&context, request, &response).ok()) ++failures;
        per_caller[static_cast<std::size_t>(caller)].push_back(1e3 * seconds_since(begin));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = seconds_since(start);
  const double processor = processor_seconds(server) - processor_before;
  for (const auto& list : per_caller) latency_ms.insert(latency_ms.end(), list.begin(), list.end());
  std::sort(latency_ms.begin(), latency_ms.end());
  const auto at = [&](double share) {
    return latency_ms[static_cast<std::size_t>(share * static_cast<double>(latency_ms.size() - 1))];
  };
  std::printf(
      "{\"case\":\"durable_submits\",\"door\":\"%s\",\"callers\":%d,\"jobs_a_call\":%d,"
      "\"submits\":%zu,\"failures\":%d,\"calls_per_second\":%.0f,\"jobs_per_second\":%.0f,"
      "\"p50_ms\":%.2f,\"p99_ms\":%.2f,\"server_processor_us_each\":%.0f}\n",
      door.name.c_str(), callers, batch, latency_ms.size(), failures.load(),
      static_cast<double>(latency_ms.size()) / seconds,
      static_cast<double>(latency_ms.size()) * batch / seconds, at(0.5), at(0.99),
      1e6 * processor / static_cast<double>(latency_ms.size()));
  std::fflush(stdout);
}

/// Measures the memory of both sides of a transfer, from its start.
class Growth {
 public:
  explicit Growth(pid_t server) : server_(server) {
    for (const pid_t pid : {server_, getpid()}) forget_peak(pid);
    server_before_ = memory_mib(server_, "VmRSS");
    client_before_ = memory_mib(getpid(), "VmRSS");
  }
  double server_mib() const { return memory_mib(server_, "VmHWM") - server_before_; }
  double client_mib() const { return memory_mib(getpid(), "VmHWM") - client_before_; }

 private:
  pid_t server_;
  double server_before_ = 0.0, client_before_ = 0.0;
};

/// Uploads a file and fetches it `parts` − 1 times in part and then whole.
void fetch(const Door& door, const std::string& directory, pid_t server, std::uint64_t bytes,
           int parts) {
  const std::string source = directory + "/source.bin";
  {
    std::ofstream out(source, std::ios::binary);
    out.seekp(static_cast<std::streamoff>(bytes - 1));
    out.put('q');
  }
  const auto file = wire::digest_file(source);
  const Growth up_growth(server);
  auto start = Clock::now();
  const grpc::Status up = wire::upload_file(door.open(), source, file.digest, file.size_bytes);
  const double up_seconds = seconds_since(start);
  if (!up.ok()) {
    std::cerr << "upload: " << up.error_message() << '\n';
    std::exit(1);
  }
  const double up_server = up_growth.server_mib(), up_client = up_growth.client_mib();
  std::filesystem::remove(source);
  const std::string target = directory + "/result.bin" + std::to_string(parts);
  grpc::Status status;
  const Growth growth(server);
  const double server_before = processor_seconds(server),
               client_before = processor_seconds(getpid());
  start = Clock::now();
  // Each part is a process of a client that was killed on the way; the last one ends.
  for (int part = 1; part <= parts; ++part) {
    std::uint64_t done = 0;
    status = wire::download_file(
        door.open(), file.digest, file.size_bytes, target,
        {.on_progress = [&](std::uint64_t now, std::uint64_t) { done = now; },
         .cancelled =
             [&] {
               return part < parts && done > static_cast<std::uint64_t>(part) * bytes /
                                                 static_cast<std::uint64_t>(parts);
             }});
  }
  const double seconds = seconds_since(start);
  const double server_processor = processor_seconds(server) - server_before;
  const double client_processor = processor_seconds(getpid()) - client_before;
  const double down_server = growth.server_mib(), down_client = growth.client_mib();
  const bool right = status.ok() && wire::digest_file(target).digest == file.digest;
  std::printf(
      "{\"case\":\"transfer\",\"cuts\":%d,\"door\":\"%s\",\"bytes\":%llu,\"digest_right\":%s,"
      "\"upload_mb_per_s\":%.0f,\"fetch_mb_per_s\":%.0f,\"upload_server_growth_mib\":%.1f,"
      "\"upload_client_growth_mib\":%.1f,\"fetch_server_growth_mib\":%.1f,"
      "\"fetch_client_growth_mib\":%.1f,\"fetch_server_processor_s\":%.2f,"
      "\"fetch_client_processor_s\":%.2f}\n",
      parts - 1, door.name.c_str(), static_cast<unsigned long long>(bytes),
      right ? "true" : "false", static_cast<double>(bytes) / 1e6 / up_seconds,
      static_cast<double>(bytes) / 1e6 / seconds, up_server, up_client, down_server, down_client,
      server_processor, client_processor);
  if (!right) std::exit(1);
}

/// Runs `quasi-server` with these arguments. @return its seconds
double run_command(const std::string& arguments) {
  const auto start = Clock::now();
  if (std::system((program_path() + " " + arguments + " > /dev/null").c_str()) != 0) std::exit(1);
  return seconds_since(start);
}

/// Callers submit one job after the other until `stop`. @return the latencies in milliseconds
std::vector<double> submit_until(const Door& door, int callers, const std::function<bool()>& stop) {
  std::vector<std::vector<double>> per_caller(static_cast<std::size_t>(callers));
  std::vector<std::thread> threads;
  const auto channel = door.open();
  for (std::vector<double>& latencies : per_caller)
    threads.emplace_back([&] {
      const auto stub = v1::JobService::NewStub(channel);
      while (!stop()) {
        grpc::ClientContext context;
        v1::SubmitJobsRequest request;
        request.set_request_id(wire::make_uuid());
        request.add_jobs()->mutable_test()->mutable_noop();
        v1::SubmitJobsResponse response;
        const auto begin = Clock::now();
        if (stub->SubmitJobs(&context, request, &response).ok())
          latencies.push_back(1e3 * seconds_since(begin));
        // A load of people and scripts: fast, and below what the server can do.
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<double> all;
  for (const auto& list : per_caller) all.insert(all.end(), list.begin(), list.end());
  std::sort(all.begin(), all.end());
  return all;
}

double share_of(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

/// Backs a store of `jobs` jobs up while callers submit, and restores the backup.
void backup(const Door& door, pid_t server, const std::string& directory, int jobs) {
  constexpr int kCallers = 16;
  submits(door, server, 4, std::max(1, jobs / 4'000), 1'000);
  const std::string data = directory + "/data";
  const auto stop_time = Clock::now() + std::chrono::seconds(10);
  const auto before = submit_until(door, kCallers, [&] { return Clock::now() > stop_time; });
  std::atomic<bool> done{false};
  double backup_seconds = 0;
  std::thread maker([&] {
    backup_seconds = run_command("backup " + directory + "/backups --data-directory " + data);
    done = true;
  });
  const auto during = submit_until(door, kCallers, [&] { return done.load(); });
  maker.join();
  const auto bytes = static_cast<double>(std::filesystem::file_size(data + "/quasi.db"));
  const double restore_seconds =
      run_command("restore " + directory + "/backups --data-directory " + directory + "/restored");
  std::printf(
      "{\"case\":\"backup\",\"jobs\":%d,\"database_mb\":%.0f,\"backup_s\":%.2f,\"callers\":%d,"
      "\"submits_before\":%zu,\"p50_before_ms\":%.2f,\"p99_before_ms\":%.2f,"
      "\"submits_during\":%zu,\"p50_during_ms\":%.2f,\"p99_during_ms\":%.2f,"
      "\"restore_s\":%.2f,\"restore_s_per_gb\":%.1f}\n",
      jobs, bytes / 1e6, backup_seconds, kCallers, before.size(), share_of(before, 0.5),
      share_of(before, 0.99), during.size(), share_of(during, 0.5), share_of(during, 0.99),
      restore_seconds, restore_seconds / (bytes / 1e9));
}

/// True once the server has opened its store.
bool answers(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  v1::ListJobsResponse response;
  return v1::JobService::NewStub(channel)->ListJobs(&context, {}, &response).ok();
}

/// Runs all cases through a door of a server whose files lie in `directory`.
void measure(const std::string& directory, bool tls, int each, double gib, int jobs) {
  const std::string address = "unix:" + directory + "/server.sock";
  const test::TlsDoor tls_door(directory);
  const pid_t server = start_server(directory + "/data", tls_door.server_flags(address));
  const auto owner = wire::open_channel(address);
  owner->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(30));
  while (!answers(owner)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::string token = tls ? tls_door.token_file(owner, "ada", v1::ROLE_USER) : "";
  const Door door = {.name = tls ? "tls" : "unix", .open = [&] {
                       return tls ? tls_door.open(token) : wire::open_channel(address);
                     }};
  if (each > 0) submits(door, server, 64, each, 1);
  if (each > 0) submits(door, server, 4, std::max(1, each / 10), 1'000);
  const auto bytes = static_cast<std::uint64_t>(gib * static_cast<double>(1ULL << 30));
  // Files of different sizes are different blobs, so that each is uploaded.
  if (bytes > 1) fetch(door, directory, server, bytes, 1);
  if (bytes > 1) fetch(door, directory, server, bytes - 1, 3);
  if (jobs > 0) backup(door, server, directory, jobs);
  kill(server, SIGTERM);
  waitpid(server, nullptr, 0);
}

}  // namespace
}  // namespace quasi

int main(int argc, char** argv) {
  quasi::wire::skip_mutex_checks();
  const int each = argc > 1 ? std::atoi(argv[1]) : 200;
  const double gib = argc > 2 ? std::atof(argv[2]) : 0.0;
  const std::string directory =
      std::filesystem::temp_directory_path() / ("quasi-bench-" + std::to_string(getpid()));
  if (!std::filesystem::create_directory(directory)) {
    std::fprintf(stderr, "%s is there already; remove it\n", directory.c_str());
    return 1;
  }
  quasi::measure(directory, argc > 3 && std::string(argv[3]) == "tls", each, gib,
                 argc > 4 ? std::atoi(argv[4]) : 0);
  std::filesystem::remove_all(directory);
}
