#include "workers/daemon/devices/engine_facts.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "workers/daemon/error.hpp"

extern char** environ;

namespace quasi {
namespace {

constexpr std::chrono::seconds kLimit{30};

[[noreturn]] void fail(const std::filesystem::path& engine, const std::string& why) {
  throw ConfigError("engine '" + engine.string() + "' " + why +
                    "; set 'engine' to the path of quasi-engine");
}

/// Runs a program and returns everything that it prints.
/// @param variables  variables of the program's environment; "": those of the daemon
std::string output_of(const std::filesystem::path& program, std::vector<std::string> arguments,
                      std::vector<std::string> variables = {}) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail(program, "cannot be started: no pipe can be made");
  std::string question;
  for (const auto& argument : arguments) question += (question.empty() ? "" : " ") + argument;
  arguments.insert(arguments.begin(), program.string());
  std::vector<char*> words;
  for (auto& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  std::vector<char*> environment;
  for (auto& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), &actions, nullptr, words.data(),
                                variables.empty() ? environ : environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    fail(program, "cannot be started");
  }
  std::string output;
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  std::array<char, 4096> bytes{};
  ssize_t size = 1;
  while (size > 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd wait{.fd = ends[0], .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) == 0) {
      kill(pid, SIGKILL);
      break;
    }
    size = read(ends[0], bytes.data(), bytes.size());
    if (size > 0) output.append(bytes.data(), static_cast<std::size_t>(size));
  }
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail(program, "gives no valid answer to '" + question + "'");
  return output;
}

}  // namespace

EngineFacts ask_engine(const std::filesystem::path& engine) {
  if (access(engine.c_str(), X_OK) != 0) fail(engine, "cannot be executed");
  const auto document =
      nlohmann::json::parse(output_of(engine, {"devices", "--json"}), nullptr, false);
  if (!document.is_object() || !document.contains("kinds") || !document["kinds"].is_array())
    fail(engine, "lists no kind of job");
  EngineFacts facts;
  for (const auto& kind : document["kinds"])
    if (kind.is_string()) facts.kinds.push_back(kind.get<std::string>());
  facts.cuda_absence = document.value("cuda_absence", "");
  facts.cuda = facts.cuda_absence.empty();
  return facts;
}

std::string test_device(const std::filesystem::path& engine, const std::filesystem::path& program,
                        const std::string& uuid) {
  std::vector<std::string> variables{"CUDA_VISIBLE_DEVICES=" + uuid};
  for (char** each = environ; *each != nullptr; ++each)
    if (const std::string text = *each; !text.starts_with("CUDA_VISIBLE_DEVICES="))
      variables.push_back(text);
  try {
    if (!program.empty()) return output_of(program, {}, variables), "";
    const auto document =
        nlohmann::json::parse(output_of(engine, {"devices", "--json"}, variables), nullptr, false);
    if (!document.is_object()) return "the engine gave no list of devices";
    return document.value("cuda_absence", "");
  } catch (const ConfigError& error) {
    return error.what();
  }
}

CageFacts ask_cage(const std::filesystem::path& cage) {
  const std::string remedy = "; install quasi-cage beside quasi-worker, or set 'cage' to false";
  if (access(cage.c_str(), X_OK) != 0)
    throw ConfigError("'" + cage.string() + "' cannot be executed" + remedy);
  const auto document = nlohmann::json::parse(output_of(cage, {"--probe"}), nullptr, false);
  if (!document.is_object() || !document.contains("whole") || !document["whole"].is_boolean())
    throw ConfigError("'" + cage.string() + "' does not name its walls" + remedy);
  return {document["whole"].get<bool>(), document.value("summary", "")};
}

}  // namespace quasi
