#pragma once

#include <vector>

#include "workers/mosfet/solver/beam/small_signal/field_response.hpp"

namespace quasi::mosfet {

/// Computes derivatives of the matrix elements |F|²Ŝ(w,w') of rough interfaces by levels and by
/// the potential, for transposes (docs/theory/mosfet.md 17.9). They are central differences of 1e-4
/// eV and 1e-4 V. The potential of a column changes the matrix elements of this column alone, so
/// that one difference serves all columns.
class RoughnessSlopes {
 public:
  /// Computes the derivatives of the matrix elements. `response` must outlive the object.
  explicit RoughnessSlopes(const FieldResponse& response);

  /// Holds the derivatives of a function of the matrix elements. Their units are those of the
  /// function times the units below.
  struct Found {
    std::vector<double> level;      ///< derivatives by the levels [n_states][nx], 1/eV
    std::vector<double> potential;  ///< derivatives by V at fixed levels [nx][nz], 1/V
  };
  /// Returns the derivatives of a function by levels and by the potential.
  /// @param slopes  its derivatives by the matrix elements, in the layout of
  /// BeamCellTables::roughness; empty for smooth interfaces, for which the result is zero
  Found of(const std::vector<double>& slopes) const;

 private:
  const FieldResponse& response_;
  /// ∂(|F|²Ŝ)/∂ε of each subband of the valley [subbands][roughness].
  std::vector<std::vector<double>> by_level_;
  std::vector<double> by_wave_;  ///< ∂ln|F|²/∂V at fixed levels [pairs of levels][nx][nz]
};

}  // namespace quasi::mosfet
