#pragma once

#include <vector>

#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"
#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Low-field mobility along x from the scattering of the transport problem.
struct Mobility {
  std::vector<double> state_nm2_v_fs;  ///< [n_valleys][subbands][nx]
  std::vector<double> mean_nm2_v_fs;   ///< mean weighted by density [nx]
};
/// One nm²/(V fs) in cm²/(V s).
inline constexpr double kMobilityUnit_cm2_v_s = 10.0;

/// Solves the linear response of the homogeneous Boltzmann equation, column by column
/// (docs/theory/mosfet.md 15.5). Every process is isotropic, so that the first harmonic relaxes at
/// the total rate out of the cell:
///
///   μ = (π/ϱ) Σ_w Δw K s v² (−∂f/∂w)/λ,   with f at the column's Fermi level.
///
/// @param fermi_ev  [nx]
/// @throws InvalidInput if no process scatters the electrons of a cell, because their mobility has
/// no limit
Mobility low_field_mobility(const DeviceModel& model, const TransportProblem& problem,
                            const Subbands& levels, const std::vector<double>& fermi_ev);

/// Computes one point of the mode `mobility`: the middle column of the device between its two
/// gates, its sheet density, effective field (mean of |∂V/∂z| over the electrons) and mobility.
/// V_DS is not used. @throws InvalidInput if the column holds no electrons, NotConverged
PointResult mobility_point(const Deck& deck, const Structure& device, const BiasPoint& bias);

}  // namespace quasi::mosfet
