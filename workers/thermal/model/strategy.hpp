#pragma once

namespace quasi::thermal {

/// How sums over processes are organised; all ways give the same numbers (docs/theory/thermal.md
/// 11).
enum class Strategy {
  kFactorised,  ///< contract, Fourier transform, small products (default)
  kListHost,    ///< process list built on the CPU, evaluated for all modes at once
  kListDevice,  ///< process list built on the device, evaluated for all modes at once
  kModeByMode,  ///< process list of one mode at a time
  kTestAndSum,  ///< no list: every candidate tested and summed in one kernel ("GPU only")
};

}  // namespace quasi::thermal
