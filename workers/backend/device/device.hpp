#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace quasi {

enum class Backend { kCpu, kCuda };

/// A processor that kernels can run on.
struct Device {
  Backend backend = Backend::kCpu;
  int index = 0;                  ///< CUDA ordinal; 0 for the CPU
  std::string model;              ///< e.g. "NVIDIA H200"
  std::int64_t memory_bytes = 0;  ///< total memory of the device; of the host for the CPU
  int compute_units = 0;          ///< multiprocessors, or hardware threads

  /// "cpu" or "cuda:N": what a user writes and what results record.
  std::string name() const;
};
std::ostream& operator<<(std::ostream& out, const Device& device);

/// Every device this binary can use on this machine: the CPU first, then CUDA devices by ordinal.
std::vector<Device> list_devices();

/// Why there is no CUDA device ("built without CUDA", the driver's own words), or "" if there is.
std::string cuda_absence();

/// "auto" (first CUDA device, else the CPU), "cpu", "cuda" or "cuda:N".
/// @throws BackendAbsent if the named device does not exist here, saying why and which do;
///         InvalidInput for any other word.
Device find_device(std::string_view name);

// One body for each build: device_cuda.cu and device_cuda_absent.cpp.
std::vector<Device> list_cuda_devices(std::string* why_none);
/// Makes `device` current for this thread. Does nothing for the CPU.
void use_device(const Device& device);
/// Bytes free on the device now: for the CPU, MemAvailable.
std::int64_t free_memory_bytes(const Device& device);
std::int64_t free_cuda_memory_bytes(const Device& device);

}  // namespace quasi
