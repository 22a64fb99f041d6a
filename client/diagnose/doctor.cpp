#include "client/diagnose/doctor.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "client/commands/plot.hpp"
#include "client/engine/engine_process.hpp"
#include "client/views/readable.hpp"

namespace quasi::client {
namespace {

namespace fs = std::filesystem;
using Level = Finding::Level;

constexpr double kPatience_s = 3.0;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Finding examine_engine(std::string* devices) {
  const auto engine = find_engine();
  if (!engine)
    return {"engine", Level::kNote, "quasi-engine is not beside quasi: no run, no check of decks",
            "apt install quasi-worker, or set QUASI_ENGINE to its path"};
  const CapturedEnd version = capture_engine(*engine, {"--version"});
  const std::string name = first_line(version.out);
  if (version.end.status != 0 || version.end.signal != 0)
    return {"engine", Level::kFault,
            engine->string() + " does not start: " + first_line(version.err),
            "install it again; missing libraries: ldd " + engine->string()};
  *devices = capture_engine(*engine, {"devices", "--json"}).out;
  if (name != "quasi-engine " QUASI_VERSION)
    return {"engine", Level::kFault,
            engine->string() + " is '" + name + "', and quasi is " + QUASI_VERSION,
            "install both from the same release"};
  return {"engine", Level::kOk, name + " at " + engine->string(), ""};
}

Finding examine_devices(const std::string& answer) {
  const auto document = nlohmann::json::parse(answer, nullptr, false);
  if (!document.is_object() || !document.contains("devices"))
    return {"devices", Level::kNote, "unknown without an engine", ""};
  std::string names;
  for (const auto& device : document["devices"])
    names += (names.empty() ? "" : "; ") + device.value("name", "") + " (" +
             device.value("model", "") + ")";
  const std::string absence = document.value("cuda_absence", "");
  if (absence.empty()) return {"devices", Level::kOk, names, ""};
  return {"devices", Level::kNote, names + "; no CUDA device: " + absence,
          "no GPU is needed; with one, see docs/reference/operations.md"};
}

Finding examine_python() {
  const std::string problem = drawing_problem();
  if (problem.empty()) return {"python", Level::kOk, "quasi plot and quasi report work", ""};
  return {"python", Level::kNote, problem, "apt install python3-quasi"};
}

Finding examine_state(const Session& session) {
  const fs::path directory = session.state.directory();
  fs::path existing = directory;
  std::error_code ignored;
  while (!existing.empty() && !fs::exists(existing, ignored)) existing = existing.parent_path();
  if (existing.empty() || ::access(existing.c_str(), W_OK) != 0)
    return {"state", Level::kFault,
            "'" + directory.string() +
                "' cannot be written: no job can be "
                "submitted",
            "set QUASI_STATE to a folder of your own"};
  return {"state", Level::kOk, directory.string(), ""};
}

Finding examine_disk() {
  std::error_code error;
  const fs::space_info space = fs::space(".", error);
  if (error) return {"disk", Level::kNote, "unknown: " + error.message(), ""};
  const bool is_low = space.available < (std::uintmax_t{1} << 30);
  return {"disk", is_low ? Level::kFault : Level::kOk,
          readable_bytes(space.available) + " free in this folder",
          is_low ? "results may need more: choose another disk with -d" : ""};
}

std::vector<Finding> examine_server(Session& session) {
  const std::string& address = session.server.address();
  v1::GetCapabilitiesResponse capabilities;
  const grpc::Status status = session.server.try_call(
      &Jobs::GetCapabilities, v1::GetCapabilitiesRequest(), capabilities, kPatience_s);
  if (!status.ok()) {
    const Failure failure = session.server.refused(status);
    // Without a configured address a server is not expected.
    const bool is_expected = session.config.address.origin != "built in";
    return {{"server", is_expected ? Level::kFault : Level::kNote, failure.what(),
             failure.remedy.empty() ? "name it: --server ADDRESS" : failure.remedy}};
  }
  std::vector<Finding> findings;
  const bool is_same = capabilities.server_version() == QUASI_VERSION;
  findings.push_back({"server", is_same ? Level::kOk : Level::kNote,
                      "version " + printable(capabilities.server_version()) + " at " + address,
                      is_same ? "" : "quasi is version " QUASI_VERSION});
  v1::ListPoolsResponse pools;
  if (!session.server.try_call(&Jobs::ListPools, v1::ListPoolsRequest(), pools, kPatience_s).ok())
    return findings;
  int online = 0;
  for (const v1::Pool& pool : pools.pools())
    for (const v1::Worker& worker : pool.workers())
      online += worker.state() == v1::WORKER_STATE_ONLINE ? 1 : 0;
  findings.push_back({"workers", online > 0 ? Level::kOk : Level::kFault,
                      std::to_string(online) + " connected",
                      online > 0 ? "" : "jobs wait until one connects: quasi-worker --help"});
  return findings;
}

const char* word_of(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kNote:
      return "note";
    default:
      return "fault";
  }
}

}  // namespace

std::vector<Finding> examine(Session& session) {
  std::string devices;
  std::vector<Finding> findings{{"program", Level::kOk, "quasi " QUASI_VERSION, ""}};
  findings.push_back(examine_engine(&devices));
  findings.push_back(examine_devices(devices));
  findings.push_back(examine_python());
  findings.push_back(examine_state(session));
  findings.push_back(examine_disk());
  for (Finding& finding : examine_server(session)) findings.push_back(std::move(finding));
  return findings;
}

Json findings_json(const std::vector<Finding>& findings) {
  Json checks = Json::array();
  for (const Finding& finding : findings)
    checks.push_back({{"name", finding.name},
                      {"level", word_of(finding.level)},
                      {"text", finding.text},
                      {"remedy", finding.remedy}});
  return checks;
}

ExitStatus doctor(Session& session) {
  Console& console = session.console;
  const std::vector<Finding> findings = examine(session);
  const bool is_well = std::none_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.level == Level::kFault;
  });
  if (console.json()) {
    console.document({{"ok", is_well}, {"checks", findings_json(findings)}});
    return is_well ? ExitStatus::kOk : ExitStatus::kPartial;
  }
  for (const Finding& finding : findings) {
    const Colour colour = finding.level == Level::kOk     ? Colour::kGreen
                          : finding.level == Level::kNote ? Colour::kYellow
                                                          : Colour::kRed;
    std::string word = word_of(finding.level), name = finding.name;
    word.resize(7, ' ');
    name.resize(9, ' ');
    console.data(console.paint(colour, word) + name + printable(finding.text) + "\n");
    if (!finding.remedy.empty())
      console.data(std::string(16, ' ') + printable(finding.remedy) + "\n");
  }
  return is_well ? ExitStatus::kOk : ExitStatus::kPartial;
}

}  // namespace quasi::client
