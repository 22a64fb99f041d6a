#pragma once

#include "workers/mosfet/physics/beam/beam_cell.hpp"

namespace quasi::mosfet {

/// Begin here: grid of the beam discretisation with nodes in x and cells in H and κ
/// (docs/theory/mosfet.md 17.1). All columns, pairs and subbands share it. It must not change
/// within an iteration.
struct BeamGrid {
  int nx = 0, n_h = 0, n_kappa = 0;
  double dx_nm = 0, h_min_ev = 0, dh_ev = 0, dkappa = 0;
  double alpha_per_ev = 0;
  BeamShape shape;

  double h_low_ev(int k) const { return h_min_ev + k * dh_ev; }
  double centre_ev(int k) const { return h_min_ev + (k + 0.5) * dh_ev; }
  /// Returns the occupation of a cell for g = 1: e^{(E_F,S − H_k)/kT}.
  double boltzmann(int k) const { return std::exp((shape.fermi_ev - centre_ev(k)) / shape.kt_ev); }
  /// Returns the cell with numbers k in H and j in κ.
  BeamCell cell(int k, int j) const {
    const double low = h_low_ev(k), high = h_low_ev(k + 1), centre = centre_ev(k);
    return {low, high, centre, j * dkappa, (j + 1) * dkappa, shape.integral(low, high, centre)};
  }
};

}  // namespace quasi::mosfet
