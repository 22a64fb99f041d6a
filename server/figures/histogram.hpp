#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

/// Begin here: server/figures holds counters and histograms, and writes them as Prometheus text. It
/// knows nothing of jobs, of calls or of the database.
namespace quasi::server {

/// The values of a histogram at one moment.
struct HistogramView {
  std::span<const double> bounds;        ///< upper bounds of the buckets, rising
  std::array<std::uint64_t, 17> counts;  ///< of each bucket; the one after the last has no bound
  double sum = 0;
};

/// Counts values in buckets. Thread-safe; no call waits for another one.
class Histogram {
 public:
  static constexpr std::size_t kMostBounds = 16;
  /// @param bounds  at most 16 rising upper bounds, which must outlive the histogram
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds) {}

  void observe(double value) {
    std::size_t bucket = 0;
    while (bucket < bounds_.size() && value > bounds_[bucket]) ++bucket;
    counts_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }
  HistogramView view() const {
    HistogramView view{.bounds = bounds_, .counts = {}, .sum = sum_.load()};
    for (std::size_t i = 0; i < counts_.size(); ++i) view.counts[i] = counts_[i].load();
    return view;
  }

 private:
  std::span<const double> bounds_;
  std::array<std::atomic<std::uint64_t>, kMostBounds + 1> counts_{};
  std::atomic<double> sum_{0};
};

/// Bounds for the duration of calls and of commits, in seconds.
inline constexpr double kShortSeconds[] = {0.0001, 0.0003, 0.001, 0.003, 0.01, 0.025,
                                           0.05,   0.1,    0.3,   1,     3,    10};
/// Bounds for the time that jobs wait and run, in seconds.
inline constexpr double kJobSeconds[] = {0.1, 1,    5,    15,    60,    300,
                                         900, 3600, 7200, 21600, 43200, 86400};
/// Bounds for the number of writes in one commit.
inline constexpr double kGroupSizes[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};

/// Figures of the thread that writes to the database.
struct WriterFigures {
  Histogram commit_seconds{kShortSeconds};
  Histogram group_size{kGroupSizes};
  std::atomic<std::int64_t> waiting{0};       ///< writes in the queue
  std::atomic<std::int64_t> committed_ms{0};  ///< end of the newest group, monotonic clock
};

/// Figures of the streams that carry files.
struct FileFigures {
  std::atomic<std::int64_t> sent_bytes{0};
  std::atomic<std::int64_t> received_bytes{0};
};

}  // namespace quasi::server
