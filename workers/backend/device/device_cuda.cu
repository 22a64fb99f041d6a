#include <cuda_runtime.h>

#include "workers/backend/device/check_cuda.cuh"
#include "workers/backend/device/device.hpp"
#include "workers/backend/device/device_identity.hpp"

namespace quasi {

std::vector<Device> list_cuda_devices(std::string* why_none) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    *why_none = status == cudaSuccess ? "no CUDA device found" : cudaGetErrorString(status);
    cudaGetLastError();
    return {};
  }
  std::vector<Device> devices;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    cuda::check(cudaGetDeviceProperties(&properties, index), "reading device properties");
    devices.push_back({.backend = Backend::kCuda,
                       .index = index,
                       .model = properties.name,
                       .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
                       .compute_units = properties.multiProcessorCount});
  }
  return devices;
}

void use_device(const Device& device) {
  if (device.backend == Backend::kCuda)
    cuda::check(cudaSetDevice(device.index), "selecting the device");
}

std::string device_identity(const Device& device) {
  if (device.backend == Backend::kCpu) return {};
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, device.index), "reading device properties");
  std::string text;
  for (const char byte : properties.uuid.bytes)
    for (const int digit : {byte >> 4 & 15, byte & 15}) text += "0123456789abcdef"[digit];
  return text;
}

std::int64_t free_cuda_memory_bytes(const Device& device) {
  use_device(device);
  std::size_t free = 0;
  std::size_t total = 0;
  cuda::check(cudaMemGetInfo(&free, &total), "reading free device memory");
  return static_cast<std::int64_t>(free);
}

}  // namespace quasi
