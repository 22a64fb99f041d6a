#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/thermal/kernels/four_phonon/sample_4ph.hpp"
#include "workers/thermal/kernels/four_phonon/strategies_4ph.hpp"

namespace quasi::thermal {

/// The strategies over a back end: Device::Array<T> (of a size, or from a host vector; data()),
/// for_each(n, body) and to_host(array), which waits.
template <typename Device>
std::vector<double> run_strategy_4ph(Strategy strategy, const Tables4ph& host,
                                     const Tables4ph& on_device, std::int64_t budget_bytes,
                                     StrategySeconds& seconds) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const int size = SumLayout4ph{host.n_temperatures}.size();
  const std::int64_t places_of_row = kChannels4ph * host.n_modes();
  std::vector<double> total(static_cast<std::size_t>(host.n_rows() * kChannels4ph * size));
  const std::int64_t partial_bytes = places_of_row * (size + 2) * 8;
  const std::int64_t listed_bytes = sizeof(Listed4ph) + sizeof(double);
  const std::int64_t rows_at_once =
      strategy == Strategy::kModeByMode
          ? 1
          : std::max<std::int64_t>(1, budget_bytes / 4 / partial_bytes);
  for (std::int64_t first = 0; first < host.n_rows();) {
    std::int64_t rows = std::min(rows_at_once, host.n_rows() - first);
    typename Device::template Array<double> chunk_total(
        static_cast<std::size_t>(rows * kChannels4ph * size));
    typename Device::template Array<double> partial(
        static_cast<std::size_t>(rows * places_of_row * size));
    if (strategy == Strategy::kTestAndSum) {
      const auto start = Clock::now();
      Device::for_each(rows * places_of_row,
                       SumPlaces4ph{on_device, first, nullptr, nullptr, nullptr, partial.data()});
      Device::for_each(
          rows * kChannels4ph,
          AddChunks4ph{partial.data(), static_cast<int>(host.n_modes()), size, chunk_total.data()});
      const std::vector<double> sums = Device::to_host(chunk_total);
      std::copy(sums.begin(), sums.end(), total.begin() + first * kChannels4ph * size);
      seconds.evaluate += since(start);
      first += rows;
      continue;
    }
    auto start = Clock::now();
    std::vector<std::int64_t> count(static_cast<std::size_t>(rows * places_of_row));
    if (strategy == Strategy::kListHost) {
      count_list_on_host(host, first, rows * places_of_row, count.data());
    } else {
      typename Device::template Array<std::int64_t> counted(count.size());
      Device::for_each(rows * places_of_row, CountList4ph{on_device, first, counted.data()});
      count = Device::to_host(counted);
    }
    // As many rows as have a list that fits.
    std::vector<std::int64_t> begin(1, 0);
    std::int64_t fit = 0;
    for (; fit < rows; ++fit) {
      std::int64_t more = 0;
      for (std::int64_t i = fit * places_of_row; i < (fit + 1) * places_of_row; ++i)
        more += count[static_cast<std::size_t>(i)];
      if ((begin.back() + more) * listed_bytes > budget_bytes / 2) break;
      for (std::int64_t i = fit * places_of_row; i < (fit + 1) * places_of_row; ++i)
        begin.push_back(begin.back() + count[static_cast<std::size_t>(i)]);
    }
    if (fit == 0)
      throw OutOfMemory(
          "the list of four-phonon processes of one mode does not fit half of the budget of " +
          std::to_string(budget_bytes >> 20) +
          " MiB; use strategy = factorised, which keeps no list");
    rows = fit;
    const std::int64_t listed = begin.back();
    typename Device::template Array<std::int64_t> begin_there(begin);
    typename Device::template Array<Listed4ph> list(
        static_cast<std::size_t>(strategy == Strategy::kListHost ? 0 : listed));
    if (strategy == Strategy::kListHost) {
      std::vector<Listed4ph> made(static_cast<std::size_t>(listed));
      fill_list_on_host(host, first, rows * places_of_row, begin.data(), made.data());
      list = typename Device::template Array<Listed4ph>(made);
    } else {
      Device::for_each(rows * places_of_row,
                       FillList4ph{on_device, first, begin_there.data(), list.data()});
      Device::wait();
    }
    seconds.enumerate += since(start);
    start = Clock::now();
    typename Device::template Array<double> squared(static_cast<std::size_t>(listed));
    Device::for_each(listed, EvaluateList4ph{on_device, list.data(), squared.data()});
    Device::for_each(rows * places_of_row,
                     SumPlaces4ph{on_device, first, begin_there.data(), list.data(), squared.data(),
                                  partial.data()});
    Device::for_each(
        rows * kChannels4ph,
        AddChunks4ph{partial.data(), static_cast<int>(host.n_modes()), size, chunk_total.data()});
    const std::vector<double> sums = Device::to_host(chunk_total);
    std::copy_n(sums.begin(), rows * kChannels4ph * size,
                total.begin() + first * kChannels4ph * size);
    seconds.evaluate += since(start);
    first += rows;
  }
  return total;
}

}  // namespace quasi::thermal
