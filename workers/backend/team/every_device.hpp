#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/backend/stopwatch.hpp"

/// Begin here: workers/backend/team spreads the work of one job over its devices and ranks.
/// every_device.hpp runs one thread for each device, task_queue.hpp hands out tasks one at a time,
/// task_ranges.hpp hands out neighbouring tasks, and tree_sum.hpp adds parts in one fixed order.
/// The cut into tasks does not depend on the number of devices, and results are combined in the
/// order of the tasks. One device and many therefore give the same bits.
namespace quasi {

/// Initialises the devices of a job, each in its own thread, while the caller continues. The CUDA
/// driver needs a tenth of a second and more to set up a GPU.
class DeviceStart {
 public:
  explicit DeviceStart(const std::vector<Device>& devices) {
    for (const Device& device : devices)
      threads_.emplace_back([device] {
        try {
          use_device(device);
        } catch (const std::exception&) {
          // The first use of the device fails again and reports the cause.
        }
      });
  }
  /// Waits until all devices are ready. @return seconds waited
  double wait() {
    const Stopwatch clock;
    threads_.clear();
    return clock.seconds();
  }

 private:
  std::vector<std::jthread> threads_;
};

/// Calls work(i) for every device i in [0, n_devices) at the same time, each in its own thread, and
/// returns when all calls have returned. The call of device 0 runs in the caller's thread, and
/// all threads have the caller's number of OpenMP threads. `stop` becomes true when a call throws;
/// the other calls look at it between pieces of work.
/// @throws what the call of the lowest failed device has thrown
template <typename Work>
void on_every_device(std::size_t n_devices, std::atomic<bool>& stop, const Work& work) {
  if (n_devices == 0) return;
  if (n_devices == 1) return work(std::size_t{0});
  std::vector<std::exception_ptr> failure(n_devices);
  {
    const int host_threads = omp_get_max_threads();
    const auto guarded = [&](std::size_t i) {
      omp_set_num_threads(host_threads);
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

/// Gives the calling thread its share of the host's OpenMP threads while `n_devices` threads work
/// at the same time. The destructor restores the thread's own number.
class HostThreadShare {
 public:
  explicit HostThreadShare(std::size_t n_devices) : before_(omp_get_max_threads()) {
    omp_set_num_threads(std::max(1, before_ / static_cast<int>(n_devices)));
  }
  HostThreadShare(const HostThreadShare&) = delete;
  HostThreadShare& operator=(const HostThreadShare&) = delete;
  ~HostThreadShare() { omp_set_num_threads(before_); }

 private:
  int before_;
};

}  // namespace quasi
