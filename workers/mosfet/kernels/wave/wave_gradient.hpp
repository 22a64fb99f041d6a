#pragma once

#include <cmath>

#include "workers/mosfet/kernels/wave/wave_transpose.hpp"

/// The function objects of this file give the derivatives by δV of
///
///   F = Σ w Ψ (rate − iω storage) − Σ Φ δP,
///
/// with the changes of rates, storage and Poisson's residual δP at fixed occupations
/// (docs/theory/mosfet.md 17.9).
namespace quasi::mosfet {

/// Computes the derivatives of F by the band edges of face before, node and face behind, each for
/// the cells of one state and position along x [kWaveContacts][kCellEdges][n_states][nx].
struct WaveEdgeSums {
  WaveTables t;
  const WaveValue* edge;       ///< as in WaveRowSums
  const WaveValue* potential;  ///< by WaveElectronPotential
  WaveValue* sums;
  QUASI_HD void operator()(std::int64_t number) const {
    constexpr double kValleys = 2.0;
    const WaveShape& s = t.shape;
    const std::int64_t nodes = static_cast<std::int64_t>(s.n_states) * s.nx, node = number % nodes,
                       column = number / nodes / kCellEdges, e = number / nodes % kCellEdges;
    const auto state = static_cast<int>(node / s.nx);
    const WaveValue* own = edge + (column * kCellEdges + e) * s.rows() + node * s.n_h;
    const double* slope = t.electrons_slopes + e * s.rows() + node * s.n_h;
    WaveValue sum;
    double stored = 0.0;
    for (int k = 0; k < s.n_h; ++k) {
      sum += own[k];
      stored += t.density_weight[state * s.n_h + k] * slope[k];
    }
    sums[number] = sum - (kValleys * stored) * potential[column * nodes + node];
  }
};

/// Computes the derivatives of F by the band edges of nodes alone, which those of faces follow
/// [kWaveContacts][n_states][nx].
struct WaveNodeGradient {
  WaveTables t;
  const WaveValue* sums;  ///< by WaveEdgeSums
  WaveValue* gradient;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const std::int64_t nodes = static_cast<std::int64_t>(s.n_states) * s.nx;
    const auto i = static_cast<int>(number % s.nx),
               state = static_cast<int>(number / s.nx % s.n_states);
    const WaveValue* before = sums + number / nodes * kCellEdges * nodes + state * s.nx;
    const WaveValue *node = before + nodes, *behind = node + nodes;
    WaveValue sum = node[i];
    for (int o = 0; o < kFaceNodes; ++o) {
      const int face = i + kFacesAhead - o;
      if (face < 0 || face > s.nx) continue;
      const double slope =
          t.face_slope[(static_cast<std::int64_t>(state) * (s.nx + 1) + face) * kFaceNodes + o];
      if (face < s.nx) sum += slope * before[face];
      if (face > 0) sum += slope * behind[face - 1];
    }
    gradient[number] = sum;
  }
};

/// Computes the derivatives of F by the potential at all nodes, those of given potential included
/// [kWaveContacts][nodes]. Φ is zero on nodes of given potential. Poisson's stencil is symmetric.
struct WavePotentialGradient {
  WaveTables t;
  WaveInput input;
  const WaveValue* node;     ///< by WaveNodeGradient
  const WaveValue* overlap;  ///< by WaveTransposedOverlaps
  WaveValue* gradient;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const std::int64_t at = number % s.nodes(), column = number / s.nodes();
    const auto i = static_cast<int>(at / s.nz), j = static_cast<int>(at % s.nz);
    WaveValue sum;
    for (int state = 0; state < s.n_states; ++state)
      sum += t.level_slope[(static_cast<std::int64_t>(t.level_of[state]) * s.nx + i) * s.nz + j] *
             node[(column * s.n_states + state) * s.nx + i];
    for (std::int64_t pair = 0; pair < s.pairs(); ++pair)
      sum += t.overlap_slope[(pair * s.nx + i) * s.nz + j] *
             overlap[(column * s.pairs() + pair) * s.nx + i];
    const WaveValue* phi = input.potential(s, static_cast<int>(column), i);
    WaveValue density, field;
    for (int m = 0; m < s.nz; ++m)
      density += t.density_slope[(static_cast<std::int64_t>(i) * s.nz + m) * s.nz + j] * phi[m];
    const double* weight = t.stencil + at * 4;
    if (j > 0) field += weight[0] * (phi[j] - phi[j - 1]);
    if (j + 1 < s.nz) field += weight[1] * (phi[j] - phi[j + 1]);
    if (i > 0) field += weight[2] * (phi[j] - phi[j - s.nz]);
    if (i + 1 < s.nx) field += weight[3] * (phi[j] - phi[j + s.nz]);
    gradient[number] = sum - t.charge[i] * density - field;
  }
};

/// Computes the residual of the equations of Φ before the preconditioner [kWaveColumns][nodes].
/// It is zero on nodes of given potential and in column 2.
struct WaveFieldResidual {
  WaveTables t;
  double omega_per_fs;
  bool observes;                ///< whether the currents of the terminals drive Φ
  const double* current_slope;  ///< ∂I of the electrons in the terminals' currents
                                ///< [kWaveContacts][nodes]
  const double* charge_slope;   ///< as in WaveObservation
  const WaveValue* gradient;
  WaveValue* residual;
  QUASI_HD void operator()(std::int64_t number) const {
    const std::int64_t nodes = t.shape.nodes();
    if (number >= kWaveContacts * nodes || t.fixed[number % nodes] != 0) {
      residual[number] = {};
      return;
    }
    WaveValue sum = -1.0 * gradient[number];
    if (observes) sum -= WaveValue{current_slope[number], omega_per_fs * charge_slope[number]};
    residual[number] = sum;
  }
};

/// Sums the response of the currents to electrons that enter at a contact, by 1 V there
/// [kWaveContacts][kWaveContacts][n_states][n_h]. The first index is the current and the second one
/// the contact.
struct WaveEntering {
  WaveTables t;
  double dx_nm;
  const WaveValue* psi;
  WaveValue* sums;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const auto [k, state, contact, column] = WaveContactRow(s, number);
    const std::int64_t i = contact == 0 ? 0 : s.nx - 1, lines = s.lines(),
                       line = static_cast<std::int64_t>(k) * s.n_kappa;
    const WaveValue* own =
        psi + (2 * column + contact) * s.cells() + (state * s.nx + i) * lines + line;
    const double* drive = t.entering + (contact * s.n_states + state) * lines + line;
    WaveValue sum;
    for (int j = 0; j < s.n_kappa; ++j) sum += drive[j] * own[j];
    sums[number] = (2.0 * dx_nm * t.density_weight[state * s.n_h + k]) * sum;
  }
};

/// Writes the weights of the unknowns in the norm of GMRES [WaveShape::size()]: `rows` times the
/// root of the electrons of a cell of H for a mean of Ψ, and `nodes` for Φ.
struct WaveTransposedWeights {
  WaveTables t;
  double rows, nodes;
  double* weights;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    if (number >= s.rows()) {
      weights[number] = nodes;
      return;
    }
    const double electrons =
        t.density_weight[number / s.n_h / s.nx * s.n_h + number % s.n_h] * t.electrons[number];
    weights[number] = electrons > 0.0 ? rows * std::sqrt(electrons) : 0.0;
  }
};

}  // namespace quasi::mosfet
