#pragma once

#include <string>
#include <vector>

#include "workers/mosfet/model/structure.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Levels and densities of a finished point.
struct JudgedState {
  BiasPoint bias;
  const std::vector<double>& energy_ev;  ///< levels without valley offsets [families][subbands][nx]
  const std::vector<double>& sheet_nm2;  ///< ϱ of one valley [n_valleys][subbands][nx]
  double inflow_scale = 1.0;             ///< largest factor of the inflow of a contact
};

/// Adds two numbers to a point. `density_ratio` is the largest ratio over x of the sheet density to
/// that of equilibrium with the contact of the higher E_F, averaged over the width of the column.
/// It cannot exceed 1 (docs/theory/mosfet.md 11). `top_subband_share` is the largest share of a
/// column's electrons that is in the highest subband of the deck.
void add_judged_numbers(const DeviceModel& model, const Structure& s, const JudgedState& state,
                        PointResult* point);

/// Judgement of a steady point by the laws that every mesh must keep.
struct PointVerdict {
  bool resolved = true;              ///< false: a law is violated
  std::vector<std::string> remarks;  ///< violated laws, and figures close to a limit
};

/// Begin here: judges the numbers of a point with currents. The laws are Landauer's limit, the
/// density of equilibrium and, for the beam scheme, the conservation of current and energy.
PointVerdict judge_point(const RunSettings& run, const PointResult& point);

}  // namespace quasi::mosfet
