#include "bench/service_load/server_process.hpp"

#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "quasi/v1/job_service.grpc.pb.h"

extern char** environ;

namespace quasi::bench {

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double memory_mib(pid_t pid, const std::string& field) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(field + ":")) return std::stod(line.substr(field.size() + 1)) / 1024.0;
  return 0.0;
}

void forget_peak(pid_t pid) {
  std::ofstream("/proc/" + std::to_string(pid) + "/clear_refs") << "5";
}

double processor_seconds(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(in, text);
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  double user = 0.0, system = 0.0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int open_files(pid_t pid) {
  std::error_code ignored;
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", ignored))
    count += entry.path().empty() ? 0 : 1;
  return count;
}

double quantile(std::vector<double>& values, double share) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

std::string begin_line(const std::string& name) {
  double load = 0.0;
  std::ifstream("/proc/loadavg") >> load;
  char text[128];
  std::snprintf(text, sizeof text, "{\"case\":\"%s\",\"load\":%.1f", name.c_str(), load);
  return text;
}

ServerProcess::ServerProcess(std::filesystem::path directory, std::vector<std::string> flags)
    : directory_(std::move(directory)), flags_(std::move(flags)) {
  start();
}

ServerProcess::~ServerProcess() { stop(); }

double ServerProcess::restart() {
  stop();
  return start();
}

std::shared_ptr<grpc::Channel> ServerProcess::connect() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(64 << 20);
  return grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(), arguments);
}

double ServerProcess::start() {
  const std::string program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "quasi-server").string();
  std::vector<std::string> words = {program,
                                    "--data-directory",
                                    (directory_ / "data").string(),
                                    "--listen",
                                    address(),
                                    "--log-level",
                                    "warning",
                                    "--enable-test-work",
                                    "true",
                                    "--storage-low-bytes",
                                    "0",
                                    "--storage-low-share",
                                    "0",
                                    "--submits-per-second",
                                    "1000000",
                                    "--calls-per-second",
                                    "1000000"};
  words.insert(words.end(), flags_.begin(), flags_.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const auto begin = Clock::now();
  if (posix_spawn(&pid_, program.c_str(), nullptr, nullptr, arguments.data(), environ) != 0)
    throw std::runtime_error("cannot start " + program);
  const auto stub = v1::JobService::NewStub(connect());
  while (true) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1::GetCapabilitiesResponse response;
    if (stub->GetCapabilities(&context, {}, &response).ok()) return seconds_since(begin);
    if (waitpid(pid_, nullptr, WNOHANG) != 0)
      throw std::runtime_error("the server has ended, see its message");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void ServerProcess::stop() {
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

}  // namespace quasi::bench
