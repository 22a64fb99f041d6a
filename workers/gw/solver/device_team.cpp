#include "workers/gw/solver/device_team.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

namespace quasi::gw {

DeviceTeam::DeviceTeam(const std::vector<Device>& devices) {
  for (const Device& device : devices) {
    owned_.push_back(make_gw_kernels(device));
    members_.push_back(owned_.back().get());
  }
}

void DeviceTeam::run(std::int64_t count, const std::function<void(std::int64_t, GwKernels&)>& body) {
  const std::int64_t n = std::min<std::int64_t>(size(), count);
  if (n <= 1) {
    for (std::int64_t task = 0; task < count; ++task) body(task, first());
    return;
  }
  std::vector<std::exception_ptr> failure(static_cast<std::size_t>(n));
  std::atomic<bool> failed{false};
  const int threads_each = std::max(1, omp_get_max_threads() / static_cast<int>(n));
  std::vector<std::thread> threads;
  for (std::int64_t member = 0; member < n; ++member)
    threads.emplace_back([&, member] {
      omp_set_num_threads(threads_each);
      GwKernels& kernels = *members_[static_cast<std::size_t>(member)];
      use_device(kernels.device());
      try {
        for (std::int64_t task = member * count / n; task < (member + 1) * count / n && !failed; ++task) body(task, kernels);
      } catch (...) {
        failure[static_cast<std::size_t>(member)] = std::current_exception();
        failed = true;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& error : failure)
    if (error) std::rethrow_exception(error);
}

}  // namespace quasi::gw
