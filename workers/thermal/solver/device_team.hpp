#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include "workers/backend/device/device.hpp"

namespace quasi::thermal {

/// Begins to use the devices of a job, each in a thread of its own, while something else is done:
/// what the driver needs for a GPU takes a tenth of a second and more.
class DeviceStart {
 public:
  explicit DeviceStart(const std::vector<Device>& devices) {
    for (const Device& device : devices)
      threads_.emplace_back([device] {
        try {
          use_device(device);
        } catch (const std::exception&) {  // the first to use it says what is wrong
        }
      });
  }
  /// @return seconds waited
  double wait() {
    const auto start = std::chrono::steady_clock::now();
    threads_.clear();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  std::vector<std::jthread> threads_;
};

/// Calls work(i) for every device i of a job, each in a thread of its own; the first works in the
/// caller's. `stop` is set when any of them fails, for the others to look at between pieces of
/// work. Rethrows the failure of the lowest device.
template <typename Work>
void on_every_device(std::size_t n_devices, std::atomic<bool>& stop, const Work& work) {
  if (n_devices == 1) return work(std::size_t{0});
  std::vector<std::exception_ptr> failure(n_devices);
  {
    const auto guarded = [&](std::size_t i) {
      try {
        work(i);
      } catch (...) {
        failure[i] = std::current_exception();
        stop = true;
      }
    };
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < n_devices; ++i) threads.emplace_back([&, i] { guarded(i); });
    guarded(0);
  }
  for (const auto& f : failure)
    if (f) std::rethrow_exception(f);
}

}  // namespace quasi::thermal
