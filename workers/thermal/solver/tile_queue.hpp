#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "workers/thermal/kernels/scattering_kernels_4ph.hpp"
#include "workers/thermal/solver/device_team.hpp"

namespace quasi::thermal {

/// Total momenta per tile: a property of the problem alone, so that sums have the same bits on any
/// number of devices.
inline constexpr std::int32_t kTotalsPerTile4ph = 16;

inline std::int64_t tiles_of(const Problem4ph& problem) {
  return (problem.mesh.size() + kTotalsPerTile4ph - 1) / kTotalsPerTile4ph;
}

/// The tiles from `first` on, computed by a team of devices and handed over in order.
class TileQueue {
 public:
  TileQueue(std::int64_t first, std::int64_t end, std::size_t n_devices)
      : next_(first), handed_over_(first), end_(end), ahead_(static_cast<std::int64_t>(4 * n_devices)) {}

  /// The next tile to compute, or −1 when none is left. Waits while too many finished ones wait for an
  /// earlier one.
  std::int64_t take(const std::atomic<bool>& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stop || next_ >= end_ || next_ < handed_over_ + ahead_; });
    return stop || next_ >= end_ ? -1 : next_++;
  }
  void finish(std::int64_t tile, std::vector<double> values) {
    const std::lock_guard lock(mutex_);
    finished_[tile] = std::move(values);
  }
  /// Hands what is next in order to `add`, one caller at a time.
  template <typename Add>
  void hand_over(const Add& add) {
    const std::lock_guard lock(mutex_);
    for (auto at = finished_.begin(); at != finished_.end() && at->first == handed_over_; at = finished_.erase(at)) {
      add(at->first, at->second);
      ++handed_over_;
    }
    changed_.notify_all();
  }
  /// After `stop` was set.
  void wake() {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t next_, handed_over_, end_, ahead_;
  std::map<std::int64_t, std::vector<double>> finished_;
};

/// Tiles of total momenta from `first_tile` on: compute(kernels, first Q, last Q) on whichever device is free,
/// add(tile, values) in the order of the tiles, one at a time. Loads the problem on every device that gets
/// work.
template <typename Compute, typename Add>
void on_every_tile(const Problem4ph& problem, const std::vector<ScatteringKernels4ph*>& kernels, std::int64_t first_tile,
                   const Compute& compute, const Add& add) {
  const auto n_q = static_cast<std::int32_t>(problem.mesh.size());
  TileQueue queue(first_tile, tiles_of(problem), kernels.size());
  std::atomic<bool> stop{false};
  on_every_device(kernels.size(), stop, [&](std::size_t device) {
    struct WakeOthers {  // whatever ends this device's work, nobody waits for it
      TileQueue& queue;
      std::atomic<bool>& stop;
      bool finished = false;
      ~WakeOthers() {
        if (!finished) stop = true;
        queue.wake();
      }
    } wake{queue, stop};
    bool loaded = false;
    for (std::int64_t tile = queue.take(stop); tile >= 0; tile = queue.take(stop)) {
      if (!loaded) kernels[device]->load(problem);
      loaded = true;
      const auto first = static_cast<std::int32_t>(tile * kTotalsPerTile4ph);
      queue.finish(tile, compute(*kernels[device], first, std::min(n_q, first + kTotalsPerTile4ph)));
      queue.hand_over(add);
    }
    wake.finished = true;
  });
}

}  // namespace quasi::thermal
