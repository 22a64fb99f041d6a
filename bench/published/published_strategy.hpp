#pragma once

namespace quasi::thermal {

/// The ways to organise the sums over processes that were published with FourPhonon_GPU [guo2025]
/// (docs/theory/thermal.md 11.2). All of them evaluate matrix elements block by block.
enum class PublishedStrategy {
  kListHost,    ///< a list made on the CPU and evaluated for all modes at once
  kListDevice,  ///< a list made on the device and evaluated for all modes at once
  kModeByMode,  ///< a list of one mode at a time
  kTestAndSum,  ///< no list: every candidate is tested and summed in one kernel
};

/// Seconds of the two parts of a strategy.
struct StrategySeconds {
  double enumerate = 0.0;
  double evaluate = 0.0;
};

}  // namespace quasi::thermal
