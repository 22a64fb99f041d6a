// Devices that need no driver: CPU slots, and the devices that a test lists in a file.

#include <toml++/toml.h>
#include <algorithm>
#include <fstream>
#include <sstream>

#include "workers/backend/device/host.hpp"
#include "workers/daemon/devices/devices.hpp"
#include "workers/daemon/error.hpp"

namespace quasi {
namespace {

class CpuSlots : public DeviceSource {
 public:
  explicit CpuSlots(int n_slots) : n_slots_(n_slots) {}

  std::vector<WorkerDevice> devices() override {
    return {{.uuid = "cpu",
             .model = cpu_model(),
             .memory_bytes = meminfo_bytes("MemTotal:"),
             .slots = n_slots_}};
  }
  DeviceHealth health(const WorkerDevice&) override {
    return {.free_bytes = meminfo_bytes("MemAvailable:")};
  }

 private:
  int n_slots_;
};

class FakeDevices : public DeviceSource {
 public:
  explicit FakeDevices(std::filesystem::path file) : file_(std::move(file)) { read(); }

  std::vector<WorkerDevice> devices() override {
    std::vector<WorkerDevice> found;
    for (const Entry& entry : read()) found.push_back(entry.device);
    return found;
  }
  DeviceHealth health(const WorkerDevice& device) override {
    for (const Entry& entry : read()) {
      if (entry.device.uuid != device.uuid) continue;
      if (entry.lost) throw DevicesLost("device " + device.uuid + " is lost; check its driver");
      return entry.health;
    }
    throw DevicesLost("device " + device.uuid + " is not in the list");
  }
  std::string self_test(const WorkerDevice& device) override {
    for (const Entry& entry : read())
      if (entry.device.uuid == device.uuid) return entry.self_test;
    return "it is not in the list";
  }

 private:
  struct Entry {
    WorkerDevice device;
    DeviceHealth health;
    std::string self_test;  ///< what its self-test finds
    bool lost = false;
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError("fake devices '" + file_.string() + "': " + what);
  }

  Entry entry(const toml::table& table) const {
    for (const auto& [key, value] : table) {
      static const std::vector<std::string_view> known{
          "uuid", "model", "memory_gib", "free_gib",    "processes", "fault",
          "lost", "cuda",  "slots",      "attempt_gib", "self_test"};
      if (std::find(known.begin(), known.end(), key.str()) == known.end())
        fail("unknown key '" + std::string(key.str()) + "' in [[device]]");
    }
    const auto bytes = [](double gib) { return static_cast<std::int64_t>(gib * (1 << 30)); };
    Entry entry;
    entry.device.uuid = table["uuid"].value_or(std::string());
    if (entry.device.uuid.empty()) fail("'uuid' is missing in a [[device]]");
    entry.device.model = table["model"].value_or(std::string("Fake"));
    const double memory_gib = table["memory_gib"].value_or(80.0);
    entry.device.memory_bytes = bytes(memory_gib);
    entry.device.cuda = table["cuda"].value_or(true);
    entry.device.slots = table["slots"].value_or(1);
    if (entry.device.slots < 1 || entry.device.slots > 256)
      fail("slots of " + entry.device.uuid + " must be 1..256");
    entry.health.free_bytes = bytes(table["free_gib"].value_or(memory_gib));
    if (const auto* processes = table["processes"].as_array())
      for (const auto& pid : *processes)
        entry.health.processes.push_back(pid.value_or(std::int64_t{0}));
    entry.health.fault = table["fault"].value<std::string>();
    entry.lost = table["lost"].value_or(false);
    entry.device.mig = entry.device.uuid.starts_with("MIG-");
    if (const auto gib = table["attempt_gib"].value<double>())
      entry.health.attempt_bytes = bytes(*gib);
    entry.self_test = table["self_test"].value_or(std::string());
    return entry;
  }

  std::vector<Entry> read() const {
    toml::table document;
    try {
      // The file may be a pipe, at which a test lets the worker wait. A parser would seek in it.
      std::ostringstream text;
      text << std::ifstream(file_).rdbuf();
      document = toml::parse(text.str(), file_.string());
    } catch (const toml::parse_error& error) {
      std::ostringstream where;
      where << error.description() << " at " << error.source().begin;
      fail(where.str());
    }
    std::vector<Entry> entries;
    const auto* list = document["device"].as_array();
    if (!list) fail("there is no [[device]]; list at least one");
    for (const auto& node : *list) {
      if (!node.is_table()) fail("'device' must be an array of tables: [[device]]");
      entries.push_back(entry(*node.as_table()));
    }
    return entries;
  }

  std::filesystem::path file_;
};

}  // namespace

std::unique_ptr<DeviceSource> make_cpu_slots(int n_slots) {
  return std::make_unique<CpuSlots>(n_slots);
}

std::unique_ptr<DeviceSource> make_fake_devices(const std::filesystem::path& file) {
  return std::make_unique<FakeDevices>(file);
}

}  // namespace quasi
