#pragma once

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace quasi::thermal {

/// Calls work(i) for every device i of a job, each in a thread of its own; the first works in the
/// caller's. `stop` is set when any of them fails, for the others to look at between pieces of work.
/// Rethrows the failure of the lowest device.
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
