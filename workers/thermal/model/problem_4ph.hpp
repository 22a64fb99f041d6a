#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "workers/thermal/model/contraction_plan_4ph.hpp"
#include "workers/thermal/model/precision.hpp"
#include "workers/thermal/model/total_order_4ph.hpp"
#include "workers/thermal/physics/q_mesh.hpp"
#include "workers/thermal/physics/scattering_4ph.hpp"

namespace quasi::thermal {

/// A four-phonon problem as arrays on the host (docs/theory/thermal.md 7). The number of a mode is
/// point·n_branches + branch.
struct Problem4ph {
  QMesh mesh;
  int n_branches = 0;
  Rules4ph rules;
  Precision precision = Precision::kDouble;  ///< precision of the matrix elements of `sums`
  std::vector<double> omega_rad_ps;          ///< [n_modes]; 0 for modes that take no part
  std::vector<std::int32_t> set;  ///< [n_modes] first mode of the degenerate set; the mode itself
                                  ///< if sets are not used
  std::vector<double> spread_rad_ps;  ///< [n_modes][3], without sb
  std::vector<double> temperatures_k;
  std::vector<double> occupation;                 ///< [n_temperatures][n_modes]; 0 where ω is 0
  std::vector<std::complex<double>> eigenvector;  ///< [n_modes][n_branches]
  std::vector<std::int16_t> zone;                 ///< [n_q][3]
  std::vector<std::int32_t> point;                ///< [n_points]
  std::vector<std::uint16_t> partner_weight;      ///< [n_points][n_q]
  std::vector<std::int32_t> star;        ///< [n_q], or empty if λ and λ' are not exchangeable
  std::vector<std::int32_t> star_size;   ///< [n_points], or empty
  std::vector<std::int32_t> precedence;  ///< [n_modes] if `star` is not empty
  TotalOrder4ph totals;
  ContractionPlan4ph plan;
  std::vector<double> phase;  ///< [n_q][n_cells]{re, im}
};

/// Rows of the collision operator that are requested.
struct CollisionRequest4ph {
  int temperature = 0;           ///< number in Problem4ph::temperatures_k
  bool symmetric = false;        ///< use symmetric_bose_factor_4ph instead of bose_factor_4ph
  std::int32_t first_point = 0;  ///< indices into Problem4ph::point, [first, last)
  std::int32_t last_point = 0;
  /// [rows] approximate Σ m W|V|² of each row, which sets the unit of the device's integer sums. If
  /// it is too small, a second pass is needed; if it is too large, digits are lost. Rates of either
  /// form at the temperature are suitable.
  std::vector<double> row_size;
};

}  // namespace quasi::thermal
