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

/// A four-phonon problem as arrays on the host. A mode's number is point·n_branches + branch.
struct Problem4ph {
  QMesh mesh;
  int n_branches = 0;
  Rules4ph rules;
  Precision precision = Precision::kDouble;  ///< of the matrix elements of `sums`
  std::vector<double> omega_rad_ps;          ///< [n_modes]; 0 for modes that take no part
  std::vector<std::int32_t> set;  ///< [n_modes] first mode of the degenerate set; of itself where
                                  ///< sets play no part
  std::vector<double> spread_rad_ps;  ///< [n_modes][3], without sb
  std::vector<double> temperatures_k;
  std::vector<double> occupation;                 ///< [n_temperatures][n_modes]; 0 where ω is 0
  std::vector<std::complex<double>> eigenvector;  ///< [n_modes][n_branches]
  std::vector<std::int16_t> zone;                 ///< [n_q][3]
  std::vector<std::int32_t> point;                ///< [n_points]
  std::vector<std::uint16_t> partner_weight;      ///< [n_points][n_q]
  std::vector<std::int32_t> star;        ///< [n_q], or empty: λ and λ' are not exchangeable
  std::vector<std::int32_t> star_size;   ///< [n_points], or empty
  std::vector<std::int32_t> precedence;  ///< [n_modes] as long as `star` is not empty
  double precedence_slack_rad_ps =
      0.0;  ///< by how much a mode may be slower than one that precedes it
  TotalOrder4ph totals;
  ContractionPlan4ph plan;
  std::vector<double> phase;  ///< [n_q][n_cells]{re, im}
};

/// Which rows of the collision operator are wanted.
struct CollisionRequest4ph {
  int temperature = 0;           ///< number in Problem4ph::temperatures_k
  bool symmetric = false;        ///< symmetric_bose_factor_4ph instead of bose_factor_4ph
  std::int32_t first_point = 0;  ///< numbers in Problem4ph::point, [first, last)
  std::int32_t last_point = 0;
  /// [rows] about Σ m W|V|² of each row: fixes the unit in which the device counts. Too low a guess
  /// costs a second pass, too high a one digits: rates of either form at the temperature serve.
  std::vector<double> row_size;
};

}  // namespace quasi::thermal
