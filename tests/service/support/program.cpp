#include "tests/service/support/program.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace quasi::test {

namespace fs = std::filesystem;

Deadline within(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

bool wait_for(const std::function<bool()>& holds, Deadline deadline) {
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

fs::path Program::path_of(const std::string& name) {
  const char* older = std::getenv("QUASI_OLDER_PROGRAMS");
  const bool is_older = older != nullptr && (name == "quasi" || name == "quasi-worker" ||
                                             name == "quasi-engine" || name == "quasi-cage");
  return fs::path(is_older ? older : QUASI_BINARY_DIR) / name;
}

Program::Program(const std::string& name, const std::vector<std::string>& arguments,
                 const fs::path& log)
    : log_(log) {
  std::vector<std::string> words{path_of(name).string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  const int error = posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw std::runtime_error("cannot start " + words[0] + ": " + std::strerror(error));
}

Program::~Program() { kill_now(); }

void Program::signal(int number) const {
  if (pid_ > 0) kill(pid_, number);
}

void Program::kill_now() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(std::exchange(pid_, -1), nullptr, 0);
}

std::optional<int> Program::wait(Deadline deadline) {
  int status = 0;
  const bool ended = wait_for([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }, deadline);
  if (!ended) return std::nullopt;
  pid_ = -1;
  return status;
}

std::string Program::output() const {
  std::ifstream in(log_);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool is_gone(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(in, text)) return true;
  const auto name_end = text.rfind(") ");  // the name may hold anything
  return name_end == std::string::npos || text[name_end + 2] == 'Z' || text[name_end + 2] == 'X';
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code error;
  const fs::path tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : fs::directory_iterator(tasks, error)) {
    std::ifstream in(task.path() / "children");
    for (pid_t child = 0; in >> child;) children.push_back(child);
  }
  return children;
}

}  // namespace quasi::test
