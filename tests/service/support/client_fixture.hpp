#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temporary_directory.hpp"

extern char** environ;

namespace quasi::client {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Longest wait for an expected event. Only a hanging test waits so long. No test concludes
/// anything from the speed of an event, because machines may be slow.
constexpr seconds kHang{200};

inline std::string slurp(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// A child process with its streams in files. The destructor kills it.
class Process {
 public:
  Process(const std::vector<std::string>& words, const fs::path& log_base,
          const std::vector<std::string>& variables)
      : out_(log_base.string() + ".out"), err_(log_base.string() + ".err") {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    std::vector<char*> argv, envp;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    // A worker starts engines in an environment of its own. Bits can be compared only if the user's
    // settings of BLAS do not reach the engine of `quasi run` either.
    for (char** at = environ; *at != nullptr; ++at)
      if (std::string(*at).rfind("QUASI_", 0) != 0 && std::string(*at).rfind("OPENBLAS_", 0) != 0)
        envp.push_back(*at);
    for (const std::string& variable : variables)
      envp.push_back(const_cast<char*>(variable.c_str()));
    envp.push_back(nullptr);
    if (posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, argv.data(), envp.data()) != 0)
      pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Process() {
    if (running()) end(SIGKILL);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool started() const { return pid_ > 0; }
  bool running() {
    if (pid_ <= 0 || ended_) return false;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) take(status);
    return !ended_;
  }
  void send(int signal) {
    if (pid_ > 0 && !ended_) ::kill(pid_, signal);
  }
  /// Stops the process by SIGSTOP. @return false if it had ended before.
  bool stop() {
    if (!running()) return false;
    send(SIGSTOP);
    const std::string place = "/proc/" + std::to_string(pid_) + "/stat";
    while (running()) {
      const std::string text = slurp(place);
      if (const auto name_end = text.rfind(") ");
          name_end != std::string::npos && text[name_end + 2] == 'T')
        return true;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return false;
  }
  /// Sends a signal and waits for the end.
  int end(int signal) {
    send(signal);
    return wait();
  }
  int wait() {
    int status = 0;
    if (!ended_ && waitpid(pid_, &status, 0) == pid_) take(status);
    return status_;
  }
  /// Waits for the end; a test that hangs fails.
  int wait_at_most(seconds limit = kHang) {
    const auto deadline = Clock::now() + limit;
    while (running() && Clock::now() < deadline) std::this_thread::sleep_for(milliseconds(5));
    if (running()) {
      ADD_FAILURE() << "still running after " << limit.count() << " s\n" << out() << err();
      return end(SIGKILL);
    }
    return status_;
  }
  /// True if the kernel wrote or piped a core dump at the end.
  bool dumped_core() const { return dumped_core_; }
  std::string out() const { return slurp(out_); }
  std::string err() const { return slurp(err_); }

 private:
  void take(int status) {
    ended_ = true;
    dumped_core_ = WIFSIGNALED(status) && WCOREDUMP(status);
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  fs::path out_, err_;
  pid_t pid_ = -1;
  bool ended_ = false;
  bool dumped_core_ = false;
  int status_ = -1;
};

struct Ran {
  int status = -1;
  std::string out;
  std::string err;
};

/// A server and a worker for each test, and a user's directory.
class EndToEnd : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(start_server());
    ASSERT_NO_FATAL_FAILURE(start_worker());
  }
  void TearDown() override {
    if (worker_) worker_->end(SIGKILL);
    if (server_) server_->end(SIGKILL);
    if (HasFailure()) {
      if (server_) std::fprintf(stderr, "--- server\n%s", server_->err().c_str());
      if (worker_) std::fprintf(stderr, "--- worker\n%s", worker_->err().c_str());
    }
  }

  fs::path path(const std::string& name) const { return directory_.path() / name; }
  std::string socket() const { return "unix:" + path("s").string(); }
  fs::path file(const std::string& name, const std::string& text) const {
    fs::create_directories(path(name).parent_path());
    std::ofstream(path(name)) << text;
    return path(name);
  }
  /// A job file for one piece of test work.
  std::string job(const std::string& name, const std::string& work) const {
    return file(name + ".toml", "name = \"" + name + "\"\n" + work + "\n").string();
  }

  std::unique_ptr<Process> spawn(const std::string& log, std::vector<std::string> words,
                                 std::vector<std::string> variables = {}) const {
    words[0] = std::string(QUASI_BINARY_DIR) + "/" + words[0];
    variables.push_back("QUASI_STATE=" + path("state").string());
    variables.push_back("QUASI_CONFIG=" + path("client.toml").string());
    return std::make_unique<Process>(words, path(log), variables);
  }
  std::unique_ptr<Process> begin(std::vector<std::string> words) {
    words.insert(words.begin(), {"quasi", "--server", socket()});
    if (!fs::exists(path("client.toml"))) file("client.toml", "");
    return spawn("quasi" + std::to_string(++commands_), std::move(words));
  }
  Ran quasi(std::vector<std::string> words, seconds limit = kHang) {
    const auto process = begin(std::move(words));
    const int status = process->wait_at_most(limit);
    return {status, process->out(), process->err()};
  }
  /// Submits a job file and returns the id of the job.
  std::string submit(const std::string& job_file, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"submit", job_file, "-o", "name"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = quasi(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::string id = ran.out.substr(0, ran.out.find('\n'));
    EXPECT_EQ(id.size(), 28u) << ran.out;
    return id;
  }

  /// Begins a fetch of data.bin into out/ and holds it by SIGSTOP when some MiB have arrived and
  /// more than half are missing. Returns nothing if the fetch always ends before that.
  std::unique_ptr<Process> begin_and_hold_midway(const std::string& id, std::uintmax_t size_bytes) {
    const fs::path part = path("out/data.bin.part");
    for (int attempt = 0; attempt < 50; ++attempt) {
      std::error_code ignored;
      fs::remove(path("out/data.bin"), ignored);
      auto fetching = begin({"fetch", id, "-d", path("out").string(), "--artifact", "data.bin"});
      const auto come = [&] {
        const auto size = fs::file_size(part, ignored);
        return ignored ? 0 : size;
      };
      while (fetching->running() && come() <= (8u << 20)) std::this_thread::yield();
      if (fetching->stop() && come() < size_bytes / 2) return fetching;
      fetching->send(SIGCONT);
      EXPECT_EQ(fetching->wait_at_most(), 0) << fetching->err();
    }
    return nullptr;
  }

  void start_server() {
    std::vector<std::string> words{
        "quasi-server", "--data-directory",         path("data").string(),
        "--listen",     socket() + more_addresses_, "--enable-test-work",
        "true"};
    words.insert(words.end(), server_flags_.begin(), server_flags_.end());
    server_ = spawn("server" + std::to_string(++servers_), words);
    ASSERT_TRUE(server_->started());
    const auto deadline = Clock::now() + kHang;
    while (Clock::now() < deadline && server_->running())
      if (quasi({"list", "--timeout", "5s"}).status == 0) return;
    FAIL() << "the server does not answer\n" << server_->err();
  }
  void start_worker() {
    worker_ = spawn("worker", {"quasi-worker", "--server", socket(), "--state-directory",
                               path("worker").string(), "--devices", "none", "--slots", "2"});
    ASSERT_TRUE(worker_->started());
  }
  /// Waits until the output of a command contains `text`.
  void await_output(const Process& process, std::string (Process::*stream)() const,
                    const std::string& text) {
    const auto deadline = Clock::now() + kHang;
    while ((process.*stream)().find(text) == std::string::npos) {
      ASSERT_LT(Clock::now(), deadline) << "never said '" << text << "'\n"
                                        << process.out() << process.err();
      std::this_thread::sleep_for(milliseconds(20));
    }
  }
  void await_state(const std::string& id, const std::string& state) {
    const auto deadline = Clock::now() + kHang;
    std::string seen;
    while (Clock::now() < deadline) {
      seen = json::parse(quasi({"show", id, "--json"}).out)["jobs"][0]["state"];
      if (seen == state) return;
      std::this_thread::sleep_for(milliseconds(50));
    }
    FAIL() << id << " is " << seen << ", not " << state;
  }

  std::vector<std::string> server_flags_;  ///< beside those of every test
  std::string more_addresses_;             ///< beside the Unix socket, each after a comma
  test::TemporaryDirectory directory_;
  std::unique_ptr<Process> server_, worker_;
  int commands_ = 0, servers_ = 0;
};

}  // namespace quasi::client
