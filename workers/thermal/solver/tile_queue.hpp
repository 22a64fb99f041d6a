#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/progress.hpp"
#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"
#include "workers/thermal/solver/device_team.hpp"
#include "workers/thermal/solver/four_phonon/team_4ph.hpp"
#include "workers/thermal/solver/four_phonon/tile_plan_4ph.hpp"

namespace quasi::thermal {

/// The places of a TilePlan4ph from `first` on, taken by a team of devices and handed over in
/// order. Lives in rank 0.
class TileQueue {
 public:
  TileQueue(std::int64_t first, std::int64_t end, std::size_t n_devices)
      : next_(first),
        handed_over_(first),
        end_(end),
        ahead_(static_cast<std::int64_t>(4 * n_devices)) {}

  /// The next place to compute, or −1 when none is left. Waits while too many finished ones wait
  /// for an earlier one.
  std::int64_t take(const std::atomic<bool>& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stop || next_ >= end_ || next_ < handed_over_ + ahead_; });
    return stop || next_ >= end_ ? -1 : next_++;
  }
  /// As `take`, but nothing instead of waiting.
  std::optional<std::int64_t> try_take() {
    const std::lock_guard lock(mutex_);
    if (next_ >= end_) return -1;
    if (next_ >= handed_over_ + ahead_) return {};
    return next_++;
  }
  void finish(std::int64_t place, std::vector<double> values) {
    const std::lock_guard lock(mutex_);
    finished_[place] = std::move(values);
  }
  /// Hands what is next in order to `add`, one caller at a time. Nothing more after an `add` that
  /// threw, which may have added what it was given (a cancellation is noticed after that): another
  /// caller would add it again.
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
  bool all_handed_over() {
    const std::lock_guard lock(mutex_);
    return handed_over_ >= end_;
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
  bool adding_ = false;  ///< stays true after a failure
};

/// What ranks say to each other about places: a device of another rank asks for one, and hands in
/// what it found.
enum TileTag : int {
  kTileAsk = 1,
  kTileDone = 2,
  kTileNext = 3 /* + device of the rank that asked */
};

/// Rank 0's side: serves the devices of all other ranks until none of them is left with work.
/// @param n_remote  their number
template <typename Add>
void serve_tiles(TileQueue& queue, Ranks& ranks, std::size_t n_remote,
                 const std::atomic<bool>& stop, const Progress& progress, const Add& add) {
  struct Asking {
    int rank, device;
  };
  std::vector<Asking> asking;
  while (n_remote > 0 && !stop) {
    bool idle = true;
    while (auto message = ranks.receive(kTileDone)) {
      idle = false;
      queue.finish(static_cast<std::int64_t>(message->values.at(0)),
                   {message->values.begin() + 1, message->values.end()});
      queue.hand_over(add);
    }
    while (auto message = ranks.receive(kTileAsk))
      asking.push_back({message->from, static_cast<int>(message->values.at(0))});
    while (!asking.empty()) {
      const auto place = queue.try_take();
      if (!place) break;
      idle = false;
      ranks.send(asking.front().rank, kTileNext + asking.front().device,
                 {static_cast<double>(*place)});
      asking.erase(asking.begin());
      if (*place < 0) --n_remote;
    }
    progress.throw_if_cancelled();
    if (ranks.peer_failed()) throw PeerFailed("another rank has failed");
    if (idle) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  // Who asked in vain may have handed in its last place before.
  while (!stop && !queue.all_handed_over()) {
    auto message = ranks.receive(kTileDone);
    if (message) {
      queue.finish(static_cast<std::int64_t>(message->values.at(0)),
                   {message->values.begin() + 1, message->values.end()});
      queue.hand_over(add);
      continue;
    }
    progress.throw_if_cancelled();
    if (ranks.peer_failed()) throw PeerFailed("another rank has failed");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

/// A device of another rank: asks rank 0 for places until none is left, for the next before it
/// works at one.
template <typename Expect, typename Compute>
void ask_for_tiles(Ranks& ranks, std::size_t device, const std::atomic<bool>& stop,
                   const Progress& progress, const Expect& expect, const Compute& compute) {
  constexpr int kPatience = 20;  // looks for an answer, 50 µs apart; rank 0 may hold it back
  const int tag = kTileNext + static_cast<int>(device);
  const auto ask = [&] { ranks.send(0, kTileAsk, {static_cast<double>(device)}); };
  ask();
  auto place = static_cast<std::int64_t>(ranks.wait_for(tag).values.at(0));
  while (place >= 0 && !stop) {
    progress.throw_if_cancelled();
    ask();
    std::optional<Ranks::Message> answer;
    for (int i = 0; i < kPatience && !(answer = ranks.receive(tag)); ++i)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (answer && answer->values.at(0) >= 0.0) expect(static_cast<std::int64_t>(answer->values[0]));
    std::vector<double> values = compute(place);
    values.insert(values.begin(), static_cast<double>(place));
    ranks.send(0, kTileDone, std::move(values));
    place =
        static_cast<std::int64_t>((answer ? std::move(*answer) : ranks.wait_for(tag)).values.at(0));
  }
}

/// Places `first` to `end` by all devices of all ranks: compute(kernels, device, place) on
/// whichever device is free, expect(kernels, device, place) where it is known what follows;
/// add(place, values) in rank 0, in rising place, one at a time. Together; every rank calls it, and
/// `first` counts in rank 0 alone.
template <typename Expect, typename Compute, typename Add>
void share_tiles(const Team4ph& team, std::int64_t first, std::int64_t end,
                 const Progress& progress, const Expect& expect, const Compute& compute,
                 const Add& add) {
  Ranks& ranks = *team.ranks;
  const std::size_t n_own = team.kernels.size();
  std::size_t n_devices = 0;
  for (const auto& of_rank : ranks.gather({static_cast<double>(n_own)}))
    n_devices += static_cast<std::size_t>(of_rank.at(0));
  TileQueue queue(first, end, n_devices);
  std::atomic<bool> stop{false};
  const bool serves = ranks.leads() && n_devices > n_own;
  on_every_device(n_own + (serves ? 1 : 0), stop, [&](std::size_t device) {
    struct WakeOthers {  // whatever ends this device's work, nobody waits for it
      TileQueue& queue;
      std::atomic<bool>& stop;
      bool finished = false;
      ~WakeOthers() {
        if (!finished) stop = true;
        queue.wake();
      }
    } wake{queue, stop};
    if (device == n_own) {
      serve_tiles(queue, ranks, n_devices - n_own, stop, progress, add);
    } else if (!ranks.leads()) {
      ScatteringKernels4ph& kernels = *team.kernels[device];
      ask_for_tiles(
          ranks, device, stop, progress,
          [&](std::int64_t place) { expect(kernels, device, place); },
          [&](std::int64_t place) { return compute(kernels, device, place); });
    } else {
      ScatteringKernels4ph& kernels = *team.kernels[device];
      std::int64_t place = queue.take(stop);
      while (place >= 0 && !stop) {
        const auto next = queue.try_take();
        const bool known = next && *next >= 0;
        if (known) expect(kernels, device, *next);
        queue.finish(place, compute(kernels, device, place));
        queue.hand_over(add);
        place = known ? *next : queue.take(stop);
      }
    }
    wake.finished = true;
  });
}

/// The places of `plan` from `first_place` on, dearest tile first: expect(kernels, first Q, last Q)
/// where it is known what follows, compute(kernels, first Q, last Q) and add(place, values) as
/// share_tiles. Loads the problem on every device that gets work.
template <typename Expect, typename Compute, typename Add>
void on_every_tile(const Problem4ph& problem, const TilePlan4ph& plan, const Team4ph& team,
                   std::int64_t first_place, const Progress& progress, const Expect& expect,
                   const Compute& compute, const Add& add) {
  ProblemDigest order;
  order.add(plan.tile);
  team.ranks->require_same(order.value(), "the order of four-phonon tiles");
  std::vector<char> loaded(team.kernels.size(), 0);
  const auto load_once = [&](ScatteringKernels4ph& kernels, std::size_t device) {
    if (!loaded[device]) kernels.load(problem);
    loaded[device] = 1;
  };
  share_tiles(
      team, first_place, plan.size(), progress,
      [&](ScatteringKernels4ph& kernels, std::size_t device, std::int64_t place) {
        load_once(kernels, device);
        expect(kernels, plan.first_total(place), plan.last_total(place));
      },
      [&](ScatteringKernels4ph& kernels, std::size_t device, std::int64_t place) {
        load_once(kernels, device);
        return compute(kernels, plan.first_total(place), plan.last_total(place));
      },
      add);
}

}  // namespace quasi::thermal
