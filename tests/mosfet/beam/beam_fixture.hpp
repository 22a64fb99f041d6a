#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "workers/mosfet/kernels/beam/beam_transport.hpp"
#include "workers/mosfet/physics/working_units.hpp"

/// A barrier of E_b between flat contacts with a fall of V_DS at the drain, for tests of the beam
/// scheme at fixed levels.
namespace quasi::test {

inline constexpr double kKt_ev = 0.025851999786435;
inline constexpr double kAlpha_per_ev = 0.5;
inline constexpr double kLength_nm = 30.0;

inline double profile_ev(double x_nm, double barrier_ev, double vds_v) {
  return barrier_ev * 0.5 * (std::tanh((x_nm - 10.0) / 2.0) - std::tanh((x_nm - 20.0) / 2.0)) -
         vds_v * 0.5 * (1.0 + std::tanh((x_nm - 19.0) / 3.0));
}

/// Choices of a test.
struct BeamOptions {
  double barrier_ev = 0.3, vds_v = 0.0, dx_nm = 1.0;
  double dh_ev = 0.0125;
  int n_kappa = 12;
  bool scatters = true, fermi = false;
  mosfet::BeamOrder order = mosfet::BeamOrder::kThird;
  double shift_ev = 0.0;  ///< shift of all energies and Fermi levels; the grid stays
  bool mirrored = false;  ///< source and drain exchanged
  double fermi_level_ev = 0.0;
};

/// A device of one valley and one subband in the form of the solver.
struct TestBeam {
  explicit TestBeam(const BeamOptions& o)
      : levels(levels_of(o)),
        geometry(mosfet::make_beam_geometry(grid_of(o, levels), levels)),
        scattering(geometry, levels, processes_of(o), overlap_of(levels), {0},
                   {.filling = filling_of(o, geometry)}),
        inflow(mosfet::make_beam_inflow(geometry.grid, drain_fermi(o))),
        problem(geometry, scattering, inflow, o.order) {
    if (o.mirrored) {
      inflow = {mosfet::make_beam_inflow(geometry.grid, -o.vds_v + o.fermi_level_ev).drain,
                mosfet::make_beam_inflow(geometry.grid, o.fermi_level_ev).drain};
    }
  }

  static double drain_fermi(const BeamOptions& o) {
    return o.fermi_level_ev + o.shift_ev - o.vds_v;
  }
  static mosfet::BeamLevels levels_of(const BeamOptions& o) {
    mosfet::BeamLevels levels{.valleys = {{0.19, 0.19, 0.98, 0.0}}, .subbands = 1};
    levels.nx = static_cast<int>(std::lround(kLength_nm / o.dx_nm)) + 1;
    for (int i = 0; i < levels.nx; ++i) {
      const double x = i * o.dx_nm;
      levels.edge_ev.push_back(o.shift_ev +
                               profile_ev(o.mirrored ? kLength_nm - x : x, o.barrier_ev, o.vds_v));
    }
    return levels;
  }
  static mosfet::BeamGrid grid_of(const BeamOptions& o, mosfet::BeamLevels levels) {
    for (double& edge : levels.edge_ev) edge -= o.shift_ev;
    mosfet::BeamShape shape{.kt_ev = kKt_ev, .fermi_ev = o.fermi_level_ev, .fermi = o.fermi};
    mosfet::BeamGrid grid = mosfet::make_beam_grid({.dh_ev = o.dh_ev, .n_kappa = o.n_kappa}, levels,
                                                   o.dx_nm, kAlpha_per_ev, shape);
    grid.shape.fermi_ev += o.shift_ev;
    return grid;
  }
  static std::vector<mosfet::ScatteringProcess> processes_of(const BeamOptions& o) {
    if (!o.scatters) return {};
    const double unit = 2.0 * units::kPi * 0.19 * mosfet::kElectronMass_ev_fs2_nm2;
    return {{.kind = mosfet::ProcessKind::kElastic, .coupling = 0.5 * 5e-3 / unit},
            {.kind = mosfet::ProcessKind::kG,
             .coupling = 1e-2 / unit,
             .occupation = 1.0 / std::expm1(0.0612 / kKt_ev),
             .energy_ev = 0.0612}};
  }
  /// The filling in the source's equilibrium, around which blocking is linearised.
  static std::vector<double> filling_of(const BeamOptions& o,
                                        const mosfet::BeamGeometry& geometry) {
    if (!o.fermi || !o.scatters) return {};
    const mosfet::BeamGrid& grid = geometry.grid;
    std::vector<double> filling(static_cast<std::size_t>(grid.nx) * grid.n_h);
    for (std::size_t cell = 0; cell < filling.size(); ++cell)
      filling[cell] = mosfet::fermi_function(
          (o.fermi_level_ev - grid.centre_ev(static_cast<int>(cell % grid.n_h))) / kKt_ev);
    return filling;
  }
  static std::vector<double> overlap_of(const mosfet::BeamLevels& levels) {
    return std::vector<double>(static_cast<std::size_t>(levels.nx), 1.0);
  }

  mosfet::BeamLevels levels;
  mosfet::BeamGeometry geometry;
  mosfet::BeamScattering scattering;
  mosfet::BeamInflow inflow;
  mosfet::BeamOperator problem;
};

inline std::vector<double> random_values(std::size_t count, double low, double high,
                                         unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  std::vector<double> values(count);
  for (double& value : values) value = uniform(random);
  return values;
}

inline double largest(const std::vector<double>& values) {
  double found = 0.0;
  for (const double value : values) found = std::max(found, std::fabs(value));
  return found;
}

}  // namespace quasi::test
