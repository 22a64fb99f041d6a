#include "workers/backend/device/device.hpp"
#include "workers/backend/device/device_identity.hpp"
#include "workers/backend/error.hpp"

namespace quasi {

std::vector<Device> list_cuda_devices(std::string* why_none) {
  *why_none = "this program was built without the CUDA back end";
  return {};
}

void use_device(const Device& device) {
  if (device.backend == Backend::kCuda)
    throw BackendAbsent("this program was built without the CUDA back end; use --device cpu");
}

std::string device_identity(const Device&) { return {}; }

std::int64_t free_cuda_memory_bytes(const Device&) { return 0; }

}  // namespace quasi
