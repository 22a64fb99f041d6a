#pragma once

#include <vector>

namespace quasi::mosfet {

/// Voltages of the gates and of the drain against the source.
struct BiasPoint {
  double vgs_v = 0;
  double vds_v = 0;
};

/// A voltage that is piecewise linear in time, and constant before the first and after the last
/// corner.
struct Waveform {
  std::vector<double> t_fs, value_v;
  /// Returns the value at a time.
  double at(double t_fs_now) const;
  /// Returns the first corner later than t, or infinity if there is none.
  double next_corner(double t_fs_now) const;
  /// Returns true if the value changes right after t.
  bool moves(double t_fs_now) const;
};

}  // namespace quasi::mosfet
