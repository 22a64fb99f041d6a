// Lists NVIDIA GPUs through NVML. The library is opened at run time, so one binary serves machines
// with and without a driver. Nothing of CUDA is linked.

#include <dlfcn.h>

#include <array>
#include <map>

#include "workers/daemon/devices/devices.hpp"
#include "workers/daemon/error.hpp"

namespace quasi {
namespace {

// The declarations of nvml.h that are used here. The ABI of these functions is stable under their
// _vN names.
using nvmlReturn_t = int;
using nvmlDevice_t = struct nvmlDevice_st*;
using nvmlEventSet_t = struct nvmlEventSet_st*;
constexpr nvmlReturn_t kSuccess = 0;
constexpr nvmlReturn_t kInsufficientSize = 7;
constexpr unsigned long long kEventXidCriticalError = 8;
constexpr unsigned kMigEnabled = 1;
constexpr unsigned long long kUnknownBytes = ~0ULL;
constexpr int kMemoryErrorUncorrected = 1;
constexpr int kVolatileEcc = 0;

struct nvmlMemory_t {
  unsigned long long total, free, used;
};
struct nvmlProcessInfo_t {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
struct nvmlUtilization_t {
  unsigned gpu, memory;  // percent
};
struct nvmlEventData_t {
  nvmlDevice_t device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};

/// Xid codes after which the results of a GPU cannot be trusted until it is reset. They are
/// double-bit ECC (48), row-remap failure (64), NVLink (74), fallen off the bus (79), contained and
/// uncontained ECC (94, 95), GSP (119, 120), C2C and unrecoverable ECC (140). Faults that a program
/// causes in its own context (13, 31, 43, 45) end the attempt and not the device.
constexpr std::array<unsigned long long, 9> kFatalXids{48, 64, 74, 79, 94, 95, 119, 120, 140};

class NvmlDevices : public DeviceSource {
 public:
  NvmlDevices(int n_slots, std::function<std::string(const std::string&)> test)
      : n_slots_(n_slots), test_(std::move(test)) {
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library_) throw DevicesLost(std::string("no NVIDIA driver: ") + dlerror());
    resolve(error_string_, "nvmlErrorString");
    resolve(init_, "nvmlInit_v2");
    resolve(shutdown_, "nvmlShutdown");
    resolve(count_, "nvmlDeviceGetCount_v2");
    resolve(by_index_, "nvmlDeviceGetHandleByIndex_v2");
    resolve(uuid_, "nvmlDeviceGetUUID");
    resolve(name_, "nvmlDeviceGetName");
    resolve(memory_, "nvmlDeviceGetMemoryInfo");
    resolve(processes_, "nvmlDeviceGetComputeRunningProcesses_v3");
    // These functions are absent from older drivers or meaningless on some boards. Their facts are
    // then unknown, which is not a fault.
    resolve_optional(mig_mode_, "nvmlDeviceGetMigMode");
    resolve_optional(mig_count_, "nvmlDeviceGetMaxMigDeviceCount");
    resolve_optional(mig_by_index_, "nvmlDeviceGetMigDeviceHandleByIndex");
    resolve_optional(ecc_, "nvmlDeviceGetTotalEccErrors");
    resolve_optional(utilization_, "nvmlDeviceGetUtilizationRates");
    resolve_optional(temperature_, "nvmlDeviceGetTemperature");
    resolve_optional(power_, "nvmlDeviceGetPowerUsage");
    resolve_optional(event_set_create_, "nvmlEventSetCreate");
    resolve_optional(event_set_free_, "nvmlEventSetFree");
    resolve_optional(register_events_, "nvmlDeviceRegisterEvents");
    resolve_optional(event_wait_, "nvmlEventSetWait_v2");
    check(init_(), "nvmlInit");
    initialised_ = true;
    find_devices();
    if (devices_.empty()) throw DevicesLost("the NVIDIA driver is present but reports no GPU");
  }
  ~NvmlDevices() override {
    if (events_) event_set_free_(events_);
    if (initialised_) shutdown_();
    if (library_) dlclose(library_);
  }
  NvmlDevices(const NvmlDevices&) = delete;
  NvmlDevices& operator=(const NvmlDevices&) = delete;

  std::vector<WorkerDevice> devices() override { return devices_; }

  DeviceHealth health(const WorkerDevice& device) override {
    collect_xids();
    const auto found = handles_.find(device.uuid);
    if (found == handles_.end())
      throw DevicesLost("device " + device.uuid + " is not known to the NVIDIA driver");
    const nvmlDevice_t handle = found->second.self;
    DeviceHealth health;
    nvmlMemory_t memory{};
    check(memory_(handle, &memory), "memory of " + device.uuid);
    health.free_bytes = static_cast<std::int64_t>(memory.free);
    unsigned count = 64;
    std::vector<nvmlProcessInfo_t> processes(count);
    nvmlReturn_t result = processes_(handle, &count, processes.data());
    if (result == kInsufficientSize) {
      processes.resize(count + 64);
      count = static_cast<unsigned>(processes.size());
      result = processes_(handle, &count, processes.data());
    }
    check(result, "processes of " + device.uuid);
    for (unsigned i = 0; i < count; ++i) {
      health.processes.push_back(processes[i].pid);
      // The driver cannot tell the memory of processes in some containers.
      if (processes[i].used_bytes != kUnknownBytes)
        health.process_bytes[processes[i].pid] = static_cast<std::int64_t>(processes[i].used_bytes);
    }
    unsigned long long errors = 0;
    if (ecc_ &&
        ecc_(found->second.board, kMemoryErrorUncorrected, kVolatileEcc, &errors) == kSuccess &&
        errors > 0)
      health.fault = std::to_string(errors) + " uncorrected ECC error(s) since the last reset";
    if (const auto xid = fatal_xid_.find(found->second.board); xid != fatal_xid_.end())
      health.fault = "Xid " + std::to_string(xid->second);
    nvmlUtilization_t use{};
    if (utilization_ && utilization_(handle, &use) == kSuccess)
      health.utilization = use.gpu / 100.0;
    unsigned value = 0;
    if (temperature_ && temperature_(found->second.board, 0, &value) == kSuccess)
      health.temperature_c = value;
    if (power_ && power_(found->second.board, &value) == kSuccess) health.power_watts = value / 1e3;
    return health;
  }

  std::string self_test(const WorkerDevice& device) override { return test_(device.uuid); }

 private:
  struct Handles {
    nvmlDevice_t self;   ///< handle of the GPU or MIG instance
    nvmlDevice_t board;  ///< handle of the whole GPU, which counts ECC and Xid errors
  };

  template <typename F>
  void resolve_optional(F*& function, const char* name) {
    function = reinterpret_cast<F*>(dlsym(library_, name));
  }
  template <typename F>
  void resolve(F*& function, const char* name) {
    resolve_optional(function, name);
    if (!function)
      throw DevicesLost(std::string("the NVIDIA driver is too old; update it. It lacks ") + name);
  }
  void check(nvmlReturn_t result, const std::string& what) const {
    if (result != kSuccess) throw DevicesLost("NVML, " + what + ": " + error_string_(result));
  }

  void add(nvmlDevice_t handle, nvmlDevice_t board, bool mig) {
    std::array<char, 97> text{};
    check(uuid_(handle, text.data(), text.size()), "UUID");
    WorkerDevice device{.uuid = text.data(),
                        .model = "",
                        .memory_bytes = 0,
                        .cuda = true,
                        .mig = mig,
                        .slots = n_slots_};
    check(name_(handle, text.data(), text.size()), "name of " + device.uuid);
    device.model = text.data();
    nvmlMemory_t memory{};
    check(memory_(handle, &memory), "memory of " + device.uuid);
    device.memory_bytes = static_cast<std::int64_t>(memory.total);
    handles_[device.uuid] = {handle, board};
    devices_.push_back(std::move(device));
  }

  void find_devices() {
    if (event_set_create_ && event_set_free_ && register_events_ && event_wait_ &&
        event_set_create_(&events_) != kSuccess)
      events_ = nullptr;
    unsigned count = 0;
    check(count_(&count), "device count");
    for (unsigned index = 0; index < count; ++index) {
      nvmlDevice_t board = nullptr;
      check(by_index_(index, &board), "device " + std::to_string(index));
      if (events_) register_events_(board, kEventXidCriticalError, events_);
      unsigned current = 0, pending = 0, most = 0;
      const bool partitioned = mig_mode_ && mig_count_ && mig_by_index_ &&
                               mig_mode_(board, &current, &pending) == kSuccess &&
                               current == kMigEnabled && mig_count_(board, &most) == kSuccess;
      if (!partitioned) {
        add(board, board, false);
        continue;
      }
      for (unsigned instance = 0; instance < most; ++instance) {
        nvmlDevice_t handle = nullptr;
        if (mig_by_index_(board, instance, &handle) == kSuccess) add(handle, board, true);
      }
    }
  }

  void collect_xids() {
    if (!events_) return;
    nvmlEventData_t event{};
    while (event_wait_(events_, &event, 0) == kSuccess)
      if (event.type == kEventXidCriticalError)
        for (const auto xid : kFatalXids)
          if (event.data == xid) fatal_xid_[event.device] = xid;
  }

  int n_slots_;
  std::function<std::string(const std::string&)> test_;
  void* library_ = nullptr;
  bool initialised_ = false;
  nvmlEventSet_t events_ = nullptr;
  std::vector<WorkerDevice> devices_;
  std::map<std::string, Handles> handles_;
  std::map<nvmlDevice_t, unsigned long long> fatal_xid_;

  const char* (*error_string_)(nvmlReturn_t) = nullptr;
  nvmlReturn_t (*init_)() = nullptr;
  nvmlReturn_t (*shutdown_)() = nullptr;
  nvmlReturn_t (*count_)(unsigned*) = nullptr;
  nvmlReturn_t (*by_index_)(unsigned, nvmlDevice_t*) = nullptr;
  nvmlReturn_t (*uuid_)(nvmlDevice_t, char*, unsigned) = nullptr;
  nvmlReturn_t (*name_)(nvmlDevice_t, char*, unsigned) = nullptr;
  nvmlReturn_t (*memory_)(nvmlDevice_t, nvmlMemory_t*) = nullptr;
  nvmlReturn_t (*processes_)(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*) = nullptr;
  nvmlReturn_t (*mig_mode_)(nvmlDevice_t, unsigned*, unsigned*) = nullptr;
  nvmlReturn_t (*mig_count_)(nvmlDevice_t, unsigned*) = nullptr;
  nvmlReturn_t (*mig_by_index_)(nvmlDevice_t, unsigned, nvmlDevice_t*) = nullptr;
  nvmlReturn_t (*ecc_)(nvmlDevice_t, int, int, unsigned long long*) = nullptr;
  nvmlReturn_t (*utilization_)(nvmlDevice_t, nvmlUtilization_t*) = nullptr;
  nvmlReturn_t (*temperature_)(nvmlDevice_t, int, unsigned*) = nullptr;
  nvmlReturn_t (*power_)(nvmlDevice_t, unsigned*) = nullptr;
  nvmlReturn_t (*event_set_create_)(nvmlEventSet_t*) = nullptr;
  nvmlReturn_t (*event_set_free_)(nvmlEventSet_t) = nullptr;
  nvmlReturn_t (*register_events_)(nvmlDevice_t, unsigned long long, nvmlEventSet_t) = nullptr;
  nvmlReturn_t (*event_wait_)(nvmlEventSet_t, nvmlEventData_t*, unsigned) = nullptr;
};

}  // namespace

std::unique_ptr<DeviceSource> make_nvml_devices(
    int n_slots, std::function<std::string(const std::string& uuid)> test) {
  return std::make_unique<NvmlDevices>(n_slots, std::move(test));
}

}  // namespace quasi
