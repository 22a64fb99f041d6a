#include "client/commands/devices.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "client/engine/engine_process.hpp"
#include "client/views/job_view.hpp"
#include "client/views/readable.hpp"
#include "client/views/table.hpp"

namespace quasi::client {
namespace {

Json device_json(const v1::Device& device) {
  Json json{{"id", device.id()},
            {"backend", enum_word(*v1::DeviceBackend_descriptor(), device.backend())},
            {"model", device.model()},
            {"memory_bytes", device.memory_bytes()},
            {"free_bytes", device.free_bytes()},
            {"slots", device.slots()},
            {"busy_slots", device.busy_slots()},
            {"state", enum_word(*v1::DeviceState_descriptor(), device.state())},
            {"state_reason", device.state_reason()},
            {"jobs", Json::array()},
            {"telemetry", Json()}};
  for (const std::string& id : device.running_job_ids()) json["jobs"].push_back(id);
  if (device.has_telemetry())
    json["telemetry"] = Json{{"utilization", device.telemetry().utilization()},
                             {"temperature_c", device.telemetry().temperature_c()},
                             {"power_watts", device.telemetry().power_watts()}};
  return json;
}

Json pool_json(const v1::Pool& pool) {
  Json json{{"name", pool.name()},
            {"queued", pool.queued()},
            {"running", pool.running()},
            {"workers", Json::array()}};
  for (const v1::Worker& worker : pool.workers()) {
    Json entry{
        {"id", worker.id()},
        {"name", worker.name()},
        {"version", worker.version()},
        {"state", enum_word(*v1::WorkerState_descriptor(), worker.state())},
        {"state_reason", worker.state_reason()},
        {"last_seen", worker.has_last_seen() ? Json(rfc3339(unix_ms(worker.last_seen()))) : Json()},
        {"kinds", Json::array()},
        {"devices", Json::array()}};
    for (const std::string& kind : worker.kinds()) entry["kinds"].push_back(kind);
    for (const v1::Device& device : worker.devices())
      entry["devices"].push_back(device_json(device));
    json["workers"].push_back(std::move(entry));
  }
  return json;
}

std::string state_cell(const v1::Worker& worker, const v1::Device& device) {
  if (worker.state() != v1::WORKER_STATE_ONLINE) {
    std::string text = enum_word(*v1::WorkerState_descriptor(), worker.state());
    if (worker.state() == v1::WORKER_STATE_LOST && worker.has_last_seen())
      text += ", seen " + readable_age(unix_ms(worker.last_seen()), now_unix_ms());
    if (!worker.state_reason().empty()) text += ": " + worker.state_reason();
    return text;
  }
  std::string text = enum_word(*v1::DeviceState_descriptor(), device.state());
  if (!device.state_reason().empty()) text += ": " + device.state_reason();
  return text;
}

/// One row of the table: a device and its worker.
struct DeviceRow {
  std::vector<std::string> cells;
  bool is_well = false;
};

/// Users choose the names of workers, so two may be equal. The id then tells them apart.
std::string worker_cell(const v1::Worker& worker, bool is_unique, bool wide) {
  if (is_unique && !wide) return worker.name();
  return worker.name() + " " + worker.id().substr(0, wide ? std::string::npos : 12);
}

DeviceRow device_row(const v1::Worker& worker, const v1::Device& device, const std::string& name,
                     bool wide) {
  std::string jobs;
  for (const std::string& id : device.running_job_ids()) jobs += (jobs.empty() ? "" : " ") + id;
  return {.cells = {name, wide ? device.id() : device.id().substr(0, 12), device.model(),
                    device.memory_bytes() > 0 ? readable_bytes(device.memory_bytes()) : "",
                    device.free_bytes() > 0 ? readable_bytes(device.free_bytes()) : "",
                    std::to_string(device.busy_slots()) + "/" + std::to_string(device.slots()),
                    state_cell(worker, device), jobs},
          .is_well = worker.state() == v1::WORKER_STATE_ONLINE &&
                     device.state() == v1::DEVICE_STATE_READY};
}

void print_names(Console& console, const v1::Pool& pool) {
  for (const v1::Worker& worker : pool.workers())
    for (const v1::Device& device : worker.devices())
      console.data(worker.name() + "/" + device.id() + "\n");
}

void print_pool(Console& console, const v1::Pool& pool) {
  constexpr std::size_t kStateColumn = 6;
  const bool wide = console.format() == Format::kWide;
  Table table({{"WORKER"},
               {"DEVICE"},
               {"MODEL"},
               {"MEMORY", Table::Align::kRight},
               {"FREE", Table::Align::kRight},
               {"BUSY", Table::Align::kRight},
               {"STATE"},
               {"JOBS"}});
  std::vector<bool> well;
  std::map<std::string, int> bearers;
  for (const v1::Worker& worker : pool.workers()) ++bearers[worker.name()];
  for (const v1::Worker& worker : pool.workers()) {
    const std::string name = worker_cell(worker, bearers[worker.name()] == 1, wide);
    for (const v1::Device& device : worker.devices()) {
      DeviceRow row = device_row(worker, device, name, wide);
      table.add(std::move(row.cells));
      well.push_back(row.is_well);
    }
  }
  console.data("pool " + pool.name() + ": " + std::to_string(pool.queued()) + " queued, " +
               std::to_string(pool.running()) + " running\n");
  if (table.rows() == 0) return;
  console.data(table.text([&](int row, std::size_t column, std::string cell) {
    if (row < 0) return console.paint(Colour::kDim, cell);
    if (column != kStateColumn) return cell;
    return console.paint(well[static_cast<std::size_t>(row)] ? Colour::kGreen : Colour::kYellow,
                         cell);
  }));
}

}  // namespace

ExitStatus devices(Session& session, const DevicesOptions& options) {
  Console& console = session.console;
  if (options.local) {
    std::vector<std::string> arguments{"devices"};
    if (console.json()) arguments.emplace_back("--json");
    console.flush();
    return status_of_engine(run_engine(require_engine(), arguments));
  }
  const v1::ListPoolsResponse response =
      session.server.call(&Jobs::ListPools, v1::ListPoolsRequest());
  if (console.json()) {
    Json document{{"pools", Json::array()}};
    for (const v1::Pool& pool : response.pools()) document["pools"].push_back(pool_json(pool));
    console.document(document);
    return ExitStatus::kOk;
  }
  int n_workers = 0;
  for (const v1::Pool& pool : response.pools()) {
    n_workers += pool.workers_size();
    if (console.format() == Format::kName)
      print_names(console, pool);
    else
      print_pool(console, pool);
  }
  if (n_workers == 0)
    console.note("no worker is connected to " + session.server.address() +
                 ": jobs wait until one connects (quasi-worker --help)");
  return ExitStatus::kOk;
}

ExitStatus version(Session& session) {
  v1::GetCapabilitiesResponse capabilities;
  const grpc::Status status =
      session.server.try_call(&Jobs::GetCapabilities, v1::GetCapabilitiesRequest(), capabilities,
                              std::min(session.server.timeout_s(), 1.0));
  Console& console = session.console;
  if (console.json()) {
    Json kinds = Json::array();
    for (const std::string& kind : capabilities.kinds()) kinds.push_back(kind);
    console.document({{"client", QUASI_VERSION},
                      {"server", status.ok() ? Json{{"address", session.server.address()},
                                                    {"version", capabilities.server_version()},
                                                    {"api", capabilities.api_version()},
                                                    {"kinds", kinds}}
                                             : Json()}});
    return ExitStatus::kOk;
  }
  console.data("quasi " QUASI_VERSION "\n");
  if (status.ok())
    console.data("server " + printable(capabilities.server_version()) + " at " +
                 session.server.address() + "\n");
  else
    console.note("server: no answer from " + session.server.address());
  return ExitStatus::kOk;
}

}  // namespace quasi::client
