#include "server/web/metrics_text.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "server/web/words.hpp"

namespace quasi::server {
namespace {

double number(std::int64_t value) { return static_cast<double>(value); }

Labels labels_of(const WorkerStatus& worker, const DeviceStatus& device) {
  return {{"pool", worker.worker.pool},
          {"worker", worker.worker.name},
          {"worker_id", worker.worker.id},
          {"device", device.device.id}};
}

/// Writes one sample for each device of the workers that are online.
template <class Value>
void for_each_device(Exposition& out, const FleetBoard::View& fleet, Value value) {
  for (const WorkerStatus& worker : fleet.workers)
    if (worker.online)
      for (const DeviceStatus& device : worker.devices)
        out.sample(labels_of(worker, device), value(worker, device));
}

}  // namespace

void write_queue(Exposition& out, const std::vector<UnfinishedJobs>& unfinished,
                 std::int64_t now_ms) {
  out.family("quasi_jobs", "gauge", "Unfinished jobs, by state and pool.");
  for (const UnfinishedJobs& row : unfinished)
    out.sample({{"state", lower_case(name_of(row.state))}, {"pool", row.pool}}, number(row.jobs));
  out.family("quasi_queue_oldest_seconds", "gauge", "Age of the oldest queued job.");
  for (const UnfinishedJobs& row : unfinished)
    if (row.state == JobState::kQueued)
      out.sample({{"pool", row.pool}},
                 number(std::max<std::int64_t>(0, now_ms - row.oldest_created_ms)) / 1'000.0);
}

void write_writer(Exposition& out, const WriterFigures& writer, const std::string& database_path) {
  out.family("quasi_db_commit_seconds", "histogram", "Duration of a group of writes.");
  out.sample({}, writer.commit_seconds.view());
  out.family("quasi_db_batch_size", "histogram", "Number of writes in a group.");
  out.sample({}, writer.group_size.view());
  out.family("quasi_db_queue_depth", "gauge", "Writes that wait for the writer.");
  out.sample(number(writer.waiting));
  std::error_code error;
  const auto log_bytes = std::filesystem::file_size(database_path + "-wal", error);
  out.family("quasi_db_wal_bytes", "gauge", "Length of the write-ahead log.");
  out.sample(error ? 0.0 : static_cast<double>(log_bytes));
}

void write_files(Exposition& out, const FileFigures& files, const ServerState& state) {
  out.family("quasi_blob_transfer_bytes_total", "counter", "Bytes of files, by direction.");
  out.sample({{"direction", "in"}}, number(files.received_bytes));
  out.sample({{"direction", "out"}}, number(files.sent_bytes));
  out.family("quasi_blob_corrupt_total", "counter", "Stored files found damaged since the start.");
  out.sample(number(state.corrupt_files));
  out.family("quasi_storage_free_bytes", "gauge", "Free bytes of the data directory's disk.");
  out.sample(number(state.free_bytes));
  out.family("quasi_storage_total_bytes", "gauge", "Size of the data directory's disk.");
  out.sample(number(state.total_bytes));
  out.family("quasi_storage_low", "gauge", "1 while new work is refused for lack of space.");
  out.sample(state.storage_low ? 1.0 : 0.0);
  out.family("quasi_watchers", "gauge", "Open watches.");
  out.sample(number(state.watches));
}

void write_fleet(Exposition& out, const FleetBoard::View& fleet) {
  std::map<std::pair<std::string, std::string>, std::int64_t> workers;
  for (const WorkerStatus& worker : fleet.workers)
    ++workers[{worker.worker.pool, !worker.online    ? "offline"
                                   : worker.draining ? "draining"
                                                     : "online"}];
  out.family("quasi_workers", "gauge", "Workers that registered since the server started.");
  for (const auto& [key, n] : workers)
    out.sample({{"pool", key.first}, {"state", key.second}}, number(n));
  out.family("quasi_device_memory_used_bytes", "gauge", "Used memory of a device.");
  for_each_device(out, fleet, [](const WorkerStatus&, const DeviceStatus& device) {
    return number(std::max<std::int64_t>(0, device.device.memory_bytes - device.free_bytes));
  });
  out.family("quasi_device_utilization_ratio", "gauge", "Utilization as the worker reported it.");
  for_each_device(out, fleet, [](const WorkerStatus&, const DeviceStatus& device) {
    return device.utilization;
  });
  out.family("quasi_device_energy_joules_total", "counter", "Reported power times the time.");
  for_each_device(out, fleet, [&](const WorkerStatus& worker, const DeviceStatus& device) {
    const auto found = fleet.energy_joules.find(worker.worker.id + "/" + device.device.id);
    return found == fleet.energy_joules.end() ? 0.0 : found->second;
  });
  out.family("quasi_device_state", "gauge", "1 for the state that a device is in.");
  for (const WorkerStatus& worker : fleet.workers) {
    if (!worker.online) continue;
    for (const DeviceStatus& device : worker.devices) {
      Labels labels = labels_of(worker, device);
      labels.emplace_back("state", word_of(device.state));
      out.sample(labels, 1);
    }
  }
}

}  // namespace quasi::server
