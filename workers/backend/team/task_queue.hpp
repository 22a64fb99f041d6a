#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/backend/ranks/ranks.hpp"
#include "workers/backend/team/every_device.hpp"

namespace quasi {

/// Hands out the tasks of [first, end) to the devices of a job and passes their results on in the
/// order of the tasks. It lives in rank 0. Thread-safe.
class TaskQueue {
 public:
  TaskQueue(std::int64_t first, std::int64_t end, std::size_t n_devices)
      : next_(first),
        handed_over_(first),
        end_(end),
        ahead_(static_cast<std::int64_t>(kAheadPerDevice * n_devices)) {}

  /// Returns the next task, or −1 when none is left or `stop` is set. Waits while too many finished
  /// results wait for an earlier task.
  std::int64_t take(const std::atomic<bool>& stop);
  /// Returns the next task as `take` does, or no value if `take` would wait.
  std::optional<std::int64_t> try_take();
  /// Stores the result of a task until hand_over reaches it.
  void finish(std::int64_t task, std::vector<double> values);
  /// Calls add(task, values) for the results that are next in order, one call at a time. If an
  /// `add` has thrown, no further result is passed on, because the failed call may have added its
  /// result before the exception.
  template <typename Add>
  void hand_over(const Add& add) {
    const std::lock_guard lock(mutex_);
    while (!adding_ && !finished_.empty() && finished_.begin()->first == handed_over_) {
      adding_ = true;
      add(finished_.begin()->first, finished_.begin()->second);
      adding_ = false;
      finished_.erase(finished_.begin());
      ++handed_over_;
    }
    changed_.notify_all();
  }
  /// Returns true if add() has received the results of all tasks.
  bool all_handed_over();
  /// Makes waiting devices check `stop` again.
  void wake();

 private:
  /// Number of results of each device that may wait for an earlier task.
  static constexpr std::size_t kAheadPerDevice = 4;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t next_, handed_over_, end_, ahead_;
  std::map<std::int64_t, std::vector<double>> finished_;
  bool adding_ = false;  ///< stays true after a failure
};

/// Serves in rank 0 the devices of all other ranks, until all tasks are handed out and all results
/// are passed on. @param n_remote  number of devices of other ranks @throws PeerFailed if another
/// rank fails, Cancelled
void serve_tasks(TaskQueue& queue, Ranks& ranks, std::size_t n_remote,
                 const std::atomic<bool>& stop, const Progress& progress,
                 const std::function<void(std::int64_t, const std::vector<double>&)>& add);

/// Computes tasks of rank 0 on one device of another rank until no task is left. It asks for the
/// next task before it computes the present one.
void ask_for_tasks(Ranks& ranks, std::size_t device, const std::atomic<bool>& stop,
                   const Progress& progress, const std::function<void(std::int64_t)>& expect,
                   const std::function<std::vector<double>(std::int64_t)>& compute);

/// Tasks of one sum and the devices that compute them.
struct TaskShare {
  Ranks& ranks;
  std::size_t n_own;        ///< number of devices of this rank
  std::int64_t first, end;  ///< tasks [first, end); the numbers of rank 0 count
  const Progress& progress;
};

/// Computes tasks on all devices of all ranks. Collective.
/// @param expect   expect(device, task) is called as soon as the next task of a device is known
/// @param compute  compute(device, task) → values runs on any free device
/// @param add      add(task, values) runs in rank 0, in rising order of task, one call at a time
/// @throws the exception of the lowest failed device of this rank, or PeerFailed
template <typename Expect, typename Compute, typename Add>
void share_tasks(const TaskShare& share, const Expect& expect, const Compute& compute,
                 const Add& add) {
  Ranks& ranks = share.ranks;
  const Progress& progress = share.progress;
  const std::size_t n_own = share.n_own;
  std::size_t n_devices = 0;
  for (const auto& of_rank : ranks.gather({static_cast<double>(n_own)}))
    n_devices += static_cast<std::size_t>(of_rank.at(0));
  TaskQueue queue(share.first, share.end, n_devices);
  std::atomic<bool> stop{false};
  const bool serves = ranks.leads() && n_devices > n_own;
  on_every_device(n_own + (serves ? 1 : 0), stop, [&](std::size_t device) {
    struct WakeOthers {  // Wakes the other devices however the work of this device ends.
      TaskQueue& queue;
      std::atomic<bool>& stop;
      bool finished = false;
      ~WakeOthers() {
        if (!finished) stop = true;
        queue.wake();
      }
    } wake{queue, stop};
    if (device == n_own) {
      serve_tasks(queue, ranks, n_devices - n_own, stop, progress, add);
    } else if (!ranks.leads()) {
      ask_for_tasks(
          ranks, device, stop, progress, [&](std::int64_t task) { expect(device, task); },
          [&](std::int64_t task) { return compute(device, task); });
    } else {
      std::int64_t task = queue.take(stop);
      while (task >= 0 && !stop) {
        const auto next = queue.try_take();
        const bool known = next && *next >= 0;
        if (known) expect(device, *next);
        queue.finish(task, compute(device, task));
        queue.hand_over(add);
        task = known ? *next : queue.take(stop);
      }
    }
    wake.finished = true;
  });
}

}  // namespace quasi
