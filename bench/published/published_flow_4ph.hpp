#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/published/published_sums_4ph.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/kernels/four_phonon/sample_4ph.hpp"

namespace quasi::thermal {

/// The steps of a published strategy over a back end.
/// @tparam Backend  Array<T> (of a size or of a host vector; data()), for_each(n, body),
///                  to_host(array), which waits, and wait()
template <typename Backend>
class PublishedFlow4ph {
 public:
  /// @param on_device  the tables of `host` where the back end reads them
  PublishedFlow4ph(PublishedStrategy strategy, const Tables4ph& host, const Tables4ph& on_device,
                   std::int64_t budget_bytes)
      : strategy_(strategy),
        host_(host),
        on_device_(on_device),
        budget_bytes_(budget_bytes),
        size_(SumLayout4ph{host.n_temperatures}.size()),
        indices_of_row_(kChannels4ph * host.n_modes()) {}

  std::vector<double> sums(StrategySeconds& seconds) {
    std::vector<double> total(static_cast<std::size_t>(host_.n_rows() * kChannels4ph * size_));
    const std::int64_t partial_bytes = indices_of_row_ * (size_ + 2) * 8;
    const std::int64_t rows_at_once =
        strategy_ == PublishedStrategy::kModeByMode
            ? 1
            : std::max<std::int64_t>(1, budget_bytes_ / 4 / partial_bytes);
    for (std::int64_t first = 0; first < host_.n_rows();) {
      std::int64_t rows = std::min(rows_at_once, host_.n_rows() - first);
      const std::vector<double> part = strategy_ == PublishedStrategy::kTestAndSum
                                           ? test_and_sum(first, rows, seconds)
                                           : list_and_sum(first, rows, seconds);
      std::copy(part.begin(), part.end(), total.begin() + first * kChannels4ph * size_);
      first += rows;
    }
    return total;
  }

 private:
  template <typename T>
  using Array = typename Backend::template Array<T>;
  using Clock = std::chrono::steady_clock;

  static double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  /// Sums of rows from the sums of their indices.
  std::vector<double> add_indices(Array<double>& partial, std::int64_t rows) const {
    Array<double> total(static_cast<std::size_t>(rows * kChannels4ph * size_));
    Backend::for_each(
        rows * kChannels4ph,
        AddChunks4ph{partial.data(), static_cast<int>(host_.n_modes()), size_, total.data()});
    return Backend::to_host(total);
  }

  std::vector<double> test_and_sum(std::int64_t first, std::int64_t rows,
                                   StrategySeconds& seconds) const {
    const auto start = Clock::now();
    Array<double> partial(static_cast<std::size_t>(rows * indices_of_row_ * size_));
    Backend::for_each(rows * indices_of_row_,
                      SumList4ph{on_device_, first, nullptr, nullptr, nullptr, partial.data()});
    std::vector<double> sums = add_indices(partial, rows);
    seconds.evaluate += since(start);
    return sums;
  }

  std::vector<std::int64_t> count(std::int64_t first, std::int64_t rows) const {
    std::vector<std::int64_t> count(static_cast<std::size_t>(rows * indices_of_row_));
    if (strategy_ == PublishedStrategy::kListHost) {
      count_list_on_host(host_, first, rows * indices_of_row_, count.data());
      return count;
    }
    Array<std::int64_t> counted(count.size());
    Backend::for_each(rows * indices_of_row_, CountList4ph{on_device_, first, counted.data()});
    return Backend::to_host(counted);
  }

  /// Where the processes of each index begin, for as many rows as have a list that fits.
  /// @param rows  wanted on entry, fitting on return
  std::vector<std::int64_t> offsets(const std::vector<std::int64_t>& count,
                                    std::int64_t& rows) const {
    const std::int64_t listed_bytes = sizeof(Listed4ph) + sizeof(double);
    std::vector<std::int64_t> begin(1, 0);
    std::int64_t fit = 0;
    for (; fit < rows; ++fit) {
      const auto row = count.begin() + fit * indices_of_row_;
      std::int64_t more = 0;
      for (std::int64_t i = 0; i < indices_of_row_; ++i) more += row[i];
      if ((begin.back() + more) * listed_bytes > budget_bytes_ / 2) break;
      for (std::int64_t i = 0; i < indices_of_row_; ++i) begin.push_back(begin.back() + row[i]);
    }
    if (fit == 0)
      throw OutOfMemory(
          "the list of four-phonon processes of one mode does not fit half of the budget of " +
          std::to_string(budget_bytes_ >> 20) + " MiB; the factorised sums keep no list");
    rows = fit;
    return begin;
  }

  Array<Listed4ph> list(std::int64_t first, std::int64_t rows,
                        const std::vector<std::int64_t>& begin, Array<std::int64_t>& there) const {
    const auto listed = static_cast<std::size_t>(begin.back());
    if (strategy_ == PublishedStrategy::kListHost) {
      std::vector<Listed4ph> made(listed);
      fill_list_on_host(host_, first, rows * indices_of_row_, begin.data(), made.data());
      return Array<Listed4ph>(made);
    }
    Array<Listed4ph> made(listed);
    Backend::for_each(rows * indices_of_row_,
                      FillList4ph{on_device_, first, there.data(), made.data()});
    Backend::wait();
    return made;
  }

  std::vector<double> list_and_sum(std::int64_t first, std::int64_t& rows,
                                   StrategySeconds& seconds) const {
    auto start = Clock::now();
    const std::vector<std::int64_t> begin = offsets(count(first, rows), rows);
    Array<std::int64_t> begin_there(begin);
    Array<Listed4ph> processes = list(first, rows, begin, begin_there);
    seconds.enumerate += since(start);
    start = Clock::now();
    Array<double> squared(static_cast<std::size_t>(begin.back()));
    Array<double> partial(static_cast<std::size_t>(rows * indices_of_row_ * size_));
    Backend::for_each(begin.back(), EvaluateList4ph{on_device_, processes.data(), squared.data()});
    Backend::for_each(rows * indices_of_row_,
                      SumList4ph{on_device_, first, begin_there.data(), processes.data(),
                                 squared.data(), partial.data()});
    std::vector<double> sums = add_indices(partial, rows);
    seconds.evaluate += since(start);
    return sums;
  }

  PublishedStrategy strategy_;
  const Tables4ph& host_;
  const Tables4ph& on_device_;
  std::int64_t budget_bytes_;
  int size_;                     ///< of SumLayout4ph
  std::int64_t indices_of_row_;  ///< (channel, λ') of a row
};

}  // namespace quasi::thermal
