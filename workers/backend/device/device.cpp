#include "workers/backend/device/device.hpp"

#include <ostream>
#include <thread>

#include "workers/backend/device/host.hpp"
#include "workers/backend/error.hpp"

namespace quasi {
namespace {

Device cpu_device() {
  return {.backend = Backend::kCpu,
          .index = 0,
          .model = cpu_model(),
          .memory_bytes = meminfo_bytes("MemTotal:"),
          .compute_units = static_cast<int>(std::thread::hardware_concurrency())};
}

}  // namespace

std::string Device::name() const {
  return backend == Backend::kCpu ? "cpu" : "cuda:" + std::to_string(index);
}

std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.name(); }

std::vector<Device> list_devices() {
  std::vector<Device> devices{cpu_device()};
  std::string ignored;
  for (Device& device : list_cuda_devices(&ignored)) devices.push_back(std::move(device));
  return devices;
}

std::string cuda_absence() {
  std::string why;
  return list_cuda_devices(&why).empty() ? why : std::string();
}

Device find_device(std::string_view name) {
  if (name == "cpu") return cpu_device();
  std::string why;
  const auto cuda = list_cuda_devices(&why);
  if (name == "auto") return cuda.empty() ? cpu_device() : cuda.front();
  if (name == "cuda" || name.starts_with("cuda:")) {
    const std::string_view digits = name == "cuda" ? "0" : name.substr(5);
    if (digits.empty() || digits.size() > 4 ||
        digits.find_first_not_of("0123456789") != std::string_view::npos)
      throw InvalidInput("device '" + std::string(name) +
                         "' is not of the form cuda:N, e.g. cuda:0");
    const auto index = static_cast<std::size_t>(std::stoi(std::string(digits)));
    if (index < cuda.size()) return cuda[index];
    throw BackendAbsent(
        "device 'cuda:" + std::string(digits) + "' does not exist here: " +
        (cuda.empty() ? why : std::to_string(cuda.size()) + " CUDA device(s) found") +
        "; use --device cpu, or see 'quasi-engine devices'");
  }
  throw InvalidInput("device '" + std::string(name) + "' is unknown: use auto, cpu or cuda:N");
}

std::int64_t free_memory_bytes(const Device& device) {
  return device.backend == Backend::kCpu ? meminfo_bytes("MemAvailable:")
                                         : free_cuda_memory_bytes(device);
}

}  // namespace quasi
