#pragma once

namespace quasi::thermal {

/// Organisation of sums over processes. All strategies give equal numbers (docs/theory/thermal.md
/// 11.2).
enum class Strategy {
  kFactorised,  ///< contract, Fourier transform, small products (default)
  kListHost,    ///< process list built on the CPU, evaluated for all modes at once
  kListDevice,  ///< process list built on the device, evaluated for all modes at once
  kModeByMode,  ///< process list of one mode at a time
  kTestAndSum,  ///< no list: one kernel tests and sums every candidate ("GPU only")
};

}  // namespace quasi::thermal
