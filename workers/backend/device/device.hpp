#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace quasi {

enum class Backend { kCpu, kCuda };

/// Begin here: a processor that kernels can run on. The files *.cuh of this folder own CUDA objects
/// such as memory, streams and events; stream.cuh states their order of work.
struct Device {
  Backend backend = Backend::kCpu;
  int index = 0;                  ///< CUDA ordinal; 0 for the CPU
  std::string model;              ///< e.g. "NVIDIA H200"
  std::int64_t memory_bytes = 0;  ///< total memory of the device; for the CPU, of the host
  int compute_units = 0;          ///< multiprocessors of a GPU, or hardware threads

  /// Returns "cpu" or "cuda:N", the form that users write and results record.
  std::string name() const;
};
std::ostream& operator<<(std::ostream& out, const Device& device);

/// Lists every device that this binary can use on this machine: the CPU first, then CUDA devices by
/// ordinal.
std::vector<Device> list_devices();

/// Returns the reason why there is no CUDA device ("built without CUDA", or the driver's message),
/// or "" if there is one.
std::string cuda_absence();

/// Finds the device named "auto" (first CUDA device, else the CPU), "cpu", "cuda" or "cuda:N".
/// @throws BackendAbsent if the named device does not exist here; the message lists the devices
/// that do
/// @throws InvalidInput for any other name.
Device find_device(std::string_view name);

// device_cuda.cu and device_cuda_absent.cpp define this function, one for each build.
std::vector<Device> list_cuda_devices(std::string* why_none);
/// Makes `device` current for this thread. Does nothing for the CPU.
void use_device(const Device& device);
/// Returns the bytes that are free on the device; for the CPU, MemAvailable of the host.
std::int64_t free_memory_bytes(const Device& device);
/// Returns the free memory of a CUDA device in bytes; called by free_memory_bytes().
std::int64_t free_cuda_memory_bytes(const Device& device);

}  // namespace quasi
