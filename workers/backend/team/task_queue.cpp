#include "workers/backend/team/task_queue.hpp"

#include <chrono>
#include <thread>
#include <utility>

namespace quasi {
namespace {

/// Messages between ranks about tasks.
enum TaskTag : int {
  kTaskAsk = 1,   ///< to rank 0: the number of the device that asks for a task
  kTaskDone = 2,  ///< to rank 0: the task and its values
  kTaskNext = 3   ///< + number of the device that asked: its next task, −1 for none
};

constexpr std::chrono::microseconds kPollInterval{50};

void take_in(const Ranks::Message& message, TaskQueue& queue,
             const std::function<void(std::int64_t, const std::vector<double>&)>& add) {
  queue.finish(static_cast<std::int64_t>(message.values.at(0)),
               {message.values.begin() + 1, message.values.end()});
  queue.hand_over(add);
}

void require_peers(Ranks& ranks, const Progress& progress) {
  progress.throw_if_cancelled();
  if (ranks.peer_failed()) throw PeerFailed();
}

}  // namespace

std::int64_t TaskQueue::take(const std::atomic<bool>& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stop || next_ >= end_ || next_ < handed_over_ + ahead_; });
  return stop || next_ >= end_ ? -1 : next_++;
}

std::optional<std::int64_t> TaskQueue::try_take() {
  const std::lock_guard lock(mutex_);
  if (next_ >= end_) return -1;
  if (next_ >= handed_over_ + ahead_) return {};
  return next_++;
}

void TaskQueue::finish(std::int64_t task, std::vector<double> values) {
  const std::lock_guard lock(mutex_);
  finished_[task] = std::move(values);
}

bool TaskQueue::all_handed_over() {
  const std::lock_guard lock(mutex_);
  return handed_over_ >= end_;
}

void TaskQueue::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void serve_tasks(TaskQueue& queue, Ranks& ranks, std::size_t n_remote,
                 const std::atomic<bool>& stop, const Progress& progress,
                 const std::function<void(std::int64_t, const std::vector<double>&)>& add) {
  struct Asking {
    int rank, device;
  };
  std::vector<Asking> asking;
  while (n_remote > 0 && !stop) {
    bool idle = true;
    while (auto message = ranks.receive(kTaskDone)) {
      idle = false;
      take_in(*message, queue, add);
    }
    while (auto message = ranks.receive(kTaskAsk))
      asking.push_back({message->from, static_cast<int>(message->values.at(0))});
    while (!asking.empty()) {
      const auto task = queue.try_take();
      if (!task) break;
      idle = false;
      ranks.send(asking.front().rank, kTaskNext + asking.front().device,
                 {static_cast<double>(*task)});
      asking.erase(asking.begin());
      if (*task < 0) --n_remote;
    }
    require_peers(ranks, progress);
    if (idle) std::this_thread::sleep_for(kPollInterval);
  }
  // A device that was told "no task is left" may still compute its previous task.
  while (!stop && !queue.all_handed_over()) {
    if (auto message = ranks.receive(kTaskDone)) {
      take_in(*message, queue, add);
      continue;
    }
    require_peers(ranks, progress);
    std::this_thread::sleep_for(kPollInterval);
  }
}

void ask_for_tasks(Ranks& ranks, std::size_t device, const std::atomic<bool>& stop,
                   const Progress& progress, const std::function<void(std::int64_t)>& expect,
                   const std::function<std::vector<double>(std::int64_t)>& compute) {
  constexpr int kPolls = 20;  // Rank 0 may delay an answer; the present task begins anyway.
  const int tag = kTaskNext + static_cast<int>(device);
  const auto ask = [&] { ranks.send(0, kTaskAsk, {static_cast<double>(device)}); };
  ask();
  auto task = static_cast<std::int64_t>(ranks.wait_for(tag).values.at(0));
  while (task >= 0 && !stop) {
    progress.throw_if_cancelled();
    ask();
    std::optional<Ranks::Message> answer;
    for (int i = 0; i < kPolls && !(answer = ranks.receive(tag)); ++i)
      std::this_thread::sleep_for(kPollInterval);
    if (answer && answer->values.at(0) >= 0.0) expect(static_cast<std::int64_t>(answer->values[0]));
    std::vector<double> values = compute(task);
    values.insert(values.begin(), static_cast<double>(task));
    ranks.send(0, kTaskDone, std::move(values));
    task =
        static_cast<std::int64_t>((answer ? std::move(*answer) : ranks.wait_for(tag)).values.at(0));
  }
}

}  // namespace quasi
