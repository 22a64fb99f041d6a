#include "client/diagnose/bug_report.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/diagnose/doctor.hpp"
#include "client/input/job_ids.hpp"
#include "client/session/durable_file.hpp"
#include "client/views/job_view.hpp"
#include "client/views/readable.hpp"

extern char** environ;

namespace quasi::client {
namespace {

constexpr std::uint64_t kLogBytes = 64 << 10;

/// The value after "NAME" and any of the separators, on the first such line of a file.
std::string value_in(const char* path, const std::string& name) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name)) continue;
    const auto begin = line.find_first_not_of(" \t:=\"", name.size());
    const auto end = line.find_last_not_of(" \"");
    return begin == std::string::npos ? "" : line.substr(begin, end - begin + 1);
  }
  return "";
}

Json system_json() {
  utsname names{};
  ::uname(&names);
  Json variables = Json::array();
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string text = *at;
    const std::string name = text.substr(0, text.find('='));
    for (const char* prefix : {"QUASI_", "OMP_", "OPENBLAS_", "CUDA_"})
      if (name.starts_with(prefix)) variables.push_back(name);
  }
  std::sort(variables.begin(), variables.end());
  return Json{{"distribution", value_in("/etc/os-release", "PRETTY_NAME")},
              {"kernel", names.release},
              {"machine", names.machine},
              {"processor", value_in("/proc/cpuinfo", "model name")},
              {"processors", ::sysconf(_SC_NPROCESSORS_ONLN)},
              {"memory", value_in("/proc/meminfo", "MemTotal")},
              {"variables_set", variables}};
}

/// The last bytes of the newest attempt's log.
std::string log_end(Session& session, const v1::Job& job) {
  if (job.attempt_history().empty()) return "";
  const v1::Attempt& attempt = job.attempt_history(job.attempt_history_size() - 1);
  grpc::ClientContext context;
  const interrupt::Scope cancel([&context] { context.TryCancel(); });
  v1::ReadLogsRequest request;
  request.set_job_id(job.id());
  request.set_attempt(attempt.number());
  request.set_offset(attempt.log_bytes() > kLogBytes ? attempt.log_bytes() - kLogBytes : 0);
  const auto reader = session.server.jobs().ReadLogs(&context, request);
  v1::ReadLogsResponse part;
  std::string text;
  while (reader->Read(&part)) text += part.data();
  (void)reader->Finish();  // A log that cannot be read is left out.
  return printable(text);
}

Json job_part(Session& session, const std::string& word) {
  v1::GetJobRequest request;
  request.set_job_id(resolve_job_id(session, word));
  v1::Job job = session.server.call(&Jobs::GetJob, request).job();
  job.mutable_spec()->clear_labels();
  Json part = job_json(job, Detail::kFull);
  part["log_end"] = log_end(session, job);
  return part;
}

}  // namespace

std::string without_home(std::string text, std::string home) {
  while (home.ends_with('/')) home.pop_back();
  if (home.empty()) return text;
  for (std::size_t at = text.find(home); at != std::string::npos; at = text.find(home, at + 1))
    text.replace(at, home.size(), "~");
  return text;
}

ExitStatus bug_report(Session& session, const BugReportOptions& options) {
  std::string file = options.output;
  if (file.empty()) {
    std::string time = rfc3339(now_unix_ms()).substr(0, 19);
    std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
    file = "quasi-bug-report-" + time + ".json";
  }
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored))
    throw Failure(ExitStatus::kConflict, "'" + file + "' exists", "name another file with -o FILE");
  Json report{{"schema", "quasi.bug-report.v1"},
              {"version", QUASI_VERSION},
              {"checks", findings_json(examine(session))},
              {"system", system_json()}};
  if (!options.job.empty()) report["job"] = job_part(session, options.job);
  const char* home = std::getenv("HOME");
  const std::string text = report.dump(1, ' ', false, Json::error_handler_t::replace);
  write_durably(file, without_home(text, home == nullptr ? "" : home) + "\n");
  Console& console = session.console;
  if (console.json())
    console.document({{"file", file}});
  else
    console.data(file + "\n");
  console.note("read it before you send it; it holds no input file, no label and no home folder");
  return ExitStatus::kOk;
}

}  // namespace quasi::client
