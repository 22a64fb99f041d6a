#include "server/service/writer.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "proto/wire/manager/service_manager.hpp"

namespace quasi::server {
namespace {

constexpr std::size_t kQueueLimit = 4'096;
constexpr std::size_t kGroupLimit = 256;
constexpr std::int64_t kCheckpointPages = 1'000;
constexpr std::chrono::seconds kIdle{1};

using Steady = std::chrono::steady_clock;

std::int64_t monotonic_ms(Steady::time_point time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

}  // namespace

Writer::Writer(QueueEngine& engine, Hooks hooks) : engine_(engine), hooks_(std::move(hooks)) {
  // Until its first group a writer is silent since now, not since the machine started.
  if (hooks_.figures != nullptr) hooks_.figures->committed_ms = monotonic_ms(Steady::now());
  thread_ = std::thread([this] { run(); });
}

Writer::~Writer() { close(); }

bool Writer::post(WriteTask task) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || waiting_.size() >= kQueueLimit) return false;
    waiting_.push_back(std::move(task));
    if (hooks_.figures != nullptr) ++hooks_.figures->waiting;
  }
  changed_.notify_one();
  return true;
}

void Writer::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::size_t Writer::depth() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void Writer::count(std::size_t size, std::chrono::steady_clock::time_point begun) {
  if (hooks_.figures == nullptr) return;
  const auto now = std::chrono::steady_clock::now();
  WriterFigures& figures = *hooks_.figures;
  figures.commit_seconds.observe(std::chrono::duration<double>(now - begun).count());
  figures.group_size.observe(static_cast<double>(size));
  figures.waiting -= static_cast<std::int64_t>(size);
  figures.committed_ms = monotonic_ms(now);
}

void Writer::run() {
  std::vector<WriteTask> group;
  auto last_wrote = std::chrono::steady_clock::now();
  // Each turn of the loop tells the service manager that the thread makes progress.
  wire::Watchdog watchdog;
  try {
    const std::chrono::milliseconds idle =
        std::min<std::chrono::milliseconds>(kIdle, watchdog.turn_limit().value_or(kIdle));
    for (;;) {
      watchdog.turned();
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, idle, [&] { return closed_ || !waiting_.empty(); })) {
          lock.unlock();
          if (engine_.wal_pages() > 0) engine_.checkpoint(Database::Checkpoint::kTruncate);
          continue;
        }
        if (waiting_.empty()) break;  // closed and finished
        const auto size = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kGroupLimit));
        group.assign(std::make_move_iterator(waiting_.begin()),
                     std::make_move_iterator(waiting_.begin() + size));
        waiting_.erase(waiting_.begin(), waiting_.begin() + size);
      }
      const std::size_t size = group.size();
      const auto begun = std::chrono::steady_clock::now();
      const GroupOutcome outcome = engine_.run_group(group);
      group.clear();
      count(size, begun);
      if (hooks_.on_commit) hooks_.on_commit(outcome);
      // Tasks that write nothing, such as the timer's, do not count as work. After a second without
      // work the whole write-ahead log is moved into the file, so that acknowledged work is in
      // both.
      const auto now = std::chrono::steady_clock::now();
      if (outcome.wrote) last_wrote = now;
      if (engine_.wal_pages() > kCheckpointPages)
        engine_.checkpoint(Database::Checkpoint::kPassive);
      else if (engine_.wal_pages() > 0 && now - last_wrote >= kIdle)
        engine_.checkpoint(Database::Checkpoint::kTruncate);
    }
    engine_.close();
  } catch (const StorageFatal& error) {
    hooks_.on_fatal(error);
  }
}

}  // namespace quasi::server
