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

/// Hands out the tasks of [first, end) to the devices of a job and passes their results on in order
/// of task. Lives in rank 0. Thread-safe.
class TaskQueue {
 public:
  TaskQueue(std::int64_t first, std::int64_t end, std::size_t n_devices)
      : next_(first),
        handed_over_(first),
        end_(end),
        ahead_(static_cast<std::int64_t>(kAheadPerDevice * n_devices)) {}

  /// The next task, or −1 when none is left or `stop` is set. Waits while too many finished results
  /// wait for an earlier task.
  std::int64_t take(const std::atomic<bool>& stop);
  /// The next task as `take` gives it, or no value where `take` would wait.
  std::optional<std::int64_t> try_take();
  /// Stores the result of a task until hand_over reaches it.
  void finish(std::int64_t task, std::vector<double> values);
  /// Calls add(task, values) for the results that are next in order, one caller at a time. After an
  /// `add` that threw, no result is passed on: the failed call may have added its result before it
  /// noticed a cancellation.
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
  bool all_handed_over();
  /// Lets waiting devices look at `stop` again.
  void wake();

 private:
  /// Results of each device that may wait for an earlier task.
  static constexpr std::size_t kAheadPerDevice = 4;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t next_, handed_over_, end_, ahead_;
  std::map<std::int64_t, std::vector<double>> finished_;
  bool adding_ = false;  ///< stays true after a failure
};

/// Serves the devices of all other ranks, in rank 0, until each was told that no task is left and
/// all results are passed on.
/// @param n_remote  number of devices of other ranks
/// @throws PeerFailed if another rank fails, Cancelled
void serve_tasks(TaskQueue& queue, Ranks& ranks, std::size_t n_remote,
                 const std::atomic<bool>& stop, const Progress& progress,
                 const std::function<void(std::int64_t, const std::vector<double>&)>& add);

/// Works for rank 0 on one device of another rank: asks for tasks until none is left. It asks for
/// the next task before it computes the present one.
void ask_for_tasks(Ranks& ranks, std::size_t device, const std::atomic<bool>& stop,
                   const Progress& progress, const std::function<void(std::int64_t)>& expect,
                   const std::function<std::vector<double>(std::int64_t)>& compute);

/// The tasks of one sum and who computes them.
struct TaskShare {
  Ranks& ranks;
  std::size_t n_own;        ///< devices of this rank
  std::int64_t first, end;  ///< tasks [first, end); the numbers of rank 0 count
  const Progress& progress;
};

/// Computes tasks on all devices of all ranks. Collective.
/// @param expect   expect(device, task): called where it is known which task follows
/// @param compute  compute(device, task) → values, on whichever device is free
/// @param add      add(task, values), in rank 0, in rising order of task, one call at a time
/// @throws the failure of the lowest device of this rank, PeerFailed
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
    struct WakeOthers {  // However the work of this device ends, no other device waits for it.
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
