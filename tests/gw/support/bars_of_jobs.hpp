#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tests/gw/support/interrupter.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw::test {

/// Runs a deck on CPUs.
inline Calculation run_on_cpus(const Deck& deck, int devices = 1,
                               const std::filesystem::path& checkpoint = {},
                               Progress* progress = nullptr) {
  SilentProgress silent;
  DeviceTeam team(std::vector<Device>(static_cast<std::size_t>(devices), find_device("cpu")));
  return run_calculation(deck,
                         {.team = team,
                          .memory_budget_bytes = std::int64_t{1} << 30,
                          .checkpoint_directory = checkpoint},
                         progress != nullptr ? *progress : silent);
}

/// Expects the same bits of all bars on one and three devices, and from jobs that were interrupted
/// at one of many places and went on with another number of devices.
inline void expect_same_bars_on_any_devices_and_after_interruptions(const Deck& deck) {
  const Calculation whole = run_on_cpus(deck);
  const auto expect_same = [&](const Calculation& other) {
    EXPECT_EQ(whole.pseudoband_errors->half_width_ev, other.pseudoband_errors->half_width_ev);
    EXPECT_EQ(whole.pseudoband_errors->estimate_ev, other.pseudoband_errors->estimate_ev);
    EXPECT_EQ(whole.pseudoband_errors->window_width_ev, other.pseudoband_errors->window_width_ev);
    EXPECT_EQ(whole.pseudoband_errors->gap_ev, other.pseudoband_errors->gap_ev);
  };
  expect_same(run_on_cpus(deck, 3));
  int interruptions = 0;
  for (int after = 2; after < 100; after += 9) {
    const quasi::test::TemporaryDirectory directory;
    Interrupter interrupter(after);
    try {
      run_on_cpus(deck, 1, directory.path(), &interrupter);
      break;
    } catch (const Cancelled&) {
      ++interruptions;
    }
    expect_same(run_on_cpus(deck, 1 + after % 2, directory.path()));
    EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  }
  EXPECT_GE(interruptions, 3);
}

}  // namespace quasi::gw::test
