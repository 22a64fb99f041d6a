#pragma once

#include <vector>

#include "workers/mosfet/solver/beam/small_signal/field_response.hpp"

namespace quasi::mosfet {

/// Derivatives of |F|²Ŝ(w,w') of rough interfaces by levels and by the potential, for transposes
/// (docs/theory/mosfet.md 17.9). They are central differences of 1e-4 eV and 1e-4 V. The potential
/// of a column changes the matrix elements of this column alone, so that one difference serves all
/// columns.
class RoughnessSlopes {
 public:
  explicit RoughnessSlopes(const FieldResponse& response);

  /// Derivatives of a function of the matrix elements.
  struct Found {
    std::vector<double> level;      ///< by the levels [n_states][nx], 1/eV
    std::vector<double> potential;  ///< by V at fixed levels [nx][nz], 1/V
  };
  /// Returns these derivatives. @param slopes  derivatives by the matrix elements, in the layout of
  /// BeamCellTables::roughness; empty: smooth interfaces, for which the result is zero
  Found of(const std::vector<double>& slopes) const;

 private:
  const FieldResponse& response_;
  /// ∂(|F|²Ŝ)/∂ε of each subband of the valley [subbands][roughness].
  std::vector<std::vector<double>> by_level_;
  std::vector<double> by_wave_;  ///< ∂ln|F|²/∂V at fixed levels [pairs of levels][nx][nz]
};

}  // namespace quasi::mosfet
