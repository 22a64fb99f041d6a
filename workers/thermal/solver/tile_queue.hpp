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
#include "workers/thermal/solver/tile_plan_4ph.hpp"

namespace quasi::thermal {

/// The places of a TilePlan4ph from `first` on, taken by a team of devices and handed over in order.
class TileQueue {
 public:
  TileQueue(std::int64_t first, std::int64_t end, std::size_t n_devices)
      : next_(first), handed_over_(first), end_(end), ahead_(static_cast<std::int64_t>(4 * n_devices)) {}

  /// The next place to compute, or −1 when none is left. Waits while too many finished ones wait for an
  /// earlier one.
  std::int64_t take(const std::atomic<bool>& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stop || next_ >= end_ || next_ < handed_over_ + ahead_; });
    return stop || next_ >= end_ ? -1 : next_++;
  }
  /// As `take`, but −1 instead of waiting.
  std::int64_t try_take() {
    const std::lock_guard lock(mutex_);
    return next_ < end_ && next_ < handed_over_ + ahead_ ? next_++ : -1;
  }
  void finish(std::int64_t place, std::vector<double> values) {
    const std::lock_guard lock(mutex_);
    finished_[place] = std::move(values);
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

/// The places of `plan` from `first_place` on: compute(kernels, first Q, last Q) on whichever device is free, dearest
/// tile first, add(place, values) in rising place, one at a time. Loads the problem on every device that gets
/// work, and tells each what it gets next, so that it can prepare.
template <typename Compute, typename Add>
void on_every_tile(const Problem4ph& problem, const TilePlan4ph& plan, const std::vector<ScatteringKernels4ph*>& kernels,
                   std::int64_t first_place, const Compute& compute, const Add& add) {
  TileQueue queue(first_place, plan.size(), kernels.size());
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
    std::int64_t place = queue.take(stop);
    if (place >= 0) kernels[device]->load(problem);
    while (place >= 0) {
      const std::int64_t next = queue.try_take();
      if (next >= 0) kernels[device]->expect(plan.first_total(next), plan.last_total(next));
      queue.finish(place, compute(*kernels[device], plan.first_total(place), plan.last_total(place)));
      queue.hand_over(add);
      place = next >= 0 ? next : queue.take(stop);
      if (stop) break;
    }
    wake.finished = true;
  });
}

}  // namespace quasi::thermal
