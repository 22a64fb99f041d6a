#pragma once

#include "workers/mosfet/kernels/wave/wave_line.hpp"

/// The function objects of this file are the transposed equations of a small-signal problem
/// (docs/theory/mosfet.md 17.9). A column of right sides belongs to the current of one terminal:
/// column 0 to the source and column 1 to the drain. Column 2 is zero.
///
/// The unknowns are the means of Ψ over κ and both branches, and Φ. Their shape is that of the
/// means of δg and of δV [kWaveColumns][WaveShape::size()]. Sums over cells have the weights
/// w = 2 C_ν Δx e^{(E_F−H)/kT}, the electrons of both valleys for g = 1.
namespace quasi::mosfet {

/// Returns the sign of the electrons' current along x in the current of a terminal.
QUASI_HD inline double wave_sign(int column) { return column == 0 ? -1.0 : 1.0; }
/// Returns the face next to the contact of a terminal, where its current is observed.
QUASI_HD inline int wave_face(const WaveShape& s, int column) { return column == 0 ? 1 : s.nx - 1; }

/// Computes the potential that an electron in each state and position along x sees by Φ,
/// (e/ε0) Δx Δz Σ_j |ψ_j|² Φ_j [kWaveColumns][n_states][nx]. An index stands for one number.
struct WaveElectronPotential {
  WaveTables t;
  WaveInput input;
  WaveValue* potential;
  QUASI_HD void operator()(std::int64_t number) const {
    potential[number] =
        t.charge[number % t.shape.nx] * wave_sum_along_z(t, t.psi_square, input, number);
  }
};

/// Computes the sums over all states that a process may reach from a state, weighted with the
/// overlaps W and the states 4√(m_x m_y) D, of a mean of every cell of H
/// [2][columns][rows], as WavePartnerSums does.
struct WaveMeanSums {
  WaveTables t;
  int columns;
  std::int64_t stride;    ///< numbers from one column of `mean` to the next
  const WaveValue* mean;  ///< [columns][rows]
  WaveValue* sums;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const std::int64_t all = columns * s.rows();
    const WaveRow row(s, number % all);
    const bool joins_others = number >= all;
    WaveValue sum;
    for (int partner = 0; partner < s.n_states; ++partner) {
      if ((partner / s.subbands != row.state / s.subbands) != joins_others) continue;
      const std::int64_t at = (static_cast<std::int64_t>(partner) * s.nx + row.i) * s.n_h + row.k,
                         pair = (static_cast<std::int64_t>(t.level_of[row.state]) * s.n_levels +
                                 t.level_of[partner]) *
                                    s.nx +
                                row.i;
      sum += (t.overlap[pair] * t.states_factor[partner] * t.states[at]) *
             mean[row.column * stride + at];
    }
    sums[number] = sum;
  }
};

/// Returns the gain of a row by all processes, 1/fs times the unit of the mean in WaveMeanSums.
/// @param all  columns times rows of these sums
/// @param number  index of the row in [columns][rows]
QUASI_HD inline WaveValue wave_gain(const WaveTables& t, const WaveValue* sums, std::int64_t all,
                                    const WaveRow& row, std::int64_t number) {
  const WaveShape& s = t.shape;
  WaveValue gain;
  for (int n = 0; n < t.n_branches && t.states[row.at] > 0.0; ++n) {
    const WaveBranch branch = t.branches[n];
    const std::int64_t at = branch.other_pair * all + number;
    if (row.k + branch.shift < s.n_h)
      gain += (branch.strength * t.inverse_full[row.k + branch.shift]) * sums[at + branch.shift];
    if (row.k >= branch.shift)
      gain += (branch.strength * t.inverse_full[row.k] * branch.rise) * sums[at - branch.shift];
  }
  return gain;
}

/// Computes the gain of Ψ in every cell of H, less the drive by Φ, 1/fs [kWaveColumns][rows].
struct WaveTransposedGain {
  WaveTables t;
  double dx_nm;
  const WaveValue *sums, *potential;
  WaveValue* gain;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const WaveRow row(s, number);
    const WaveValue seen =
        potential[(static_cast<std::int64_t>(row.column) * s.n_states + row.state) * s.nx + row.i];
    gain[number] = wave_gain(t, sums, kWaveColumns * s.rows(), row, number) - (1.0 / dx_nm) * seen;
  }
};

/// Solves the transposed transport equations on one line for all columns. Motion is reversible, so
/// that transposed streaming is streaming with both branches exchanged. An index stands for one
/// line of [n_states][n_h][n_kappa].
struct WaveTransposedLines {
  WaveTables t;
  double omega_per_fs;
  bool observes;          ///< whether the currents of the terminals drive Ψ
  const WaveValue* gain;  ///< [kWaveColumns][rows], 1/fs
  WaveValue* work;        ///< [nx][kWaveWork][all lines]
  WaveValue* electrons;   ///< out: V (Ψ⁺ + Ψ⁻) [kWaveColumns][cells]
  WaveValue* psi;         ///< out: Ψ⁺ and Ψ⁻ [kWaveContacts][2][cells]

  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const std::int64_t lines = s.lines(), cells = s.cells(),
                       first = number / lines * s.nx * lines + number % lines;
    eliminate_wave_line(
        t, omega_per_fs, number,
        [&](int state, int i, std::int64_t cell, std::int64_t row) {
          return sides_of(state, i, cell, row);
        },
        work);
    substitute_wave_line(s, work, number, [&](int i, int c, WaveValue plus, WaveValue minus) {
      const std::int64_t cell = first + i * lines;
      electrons[c * cells + cell] = t.volume[cell] * (plus + minus);
      if (c >= kWaveContacts) return;
      psi[2 * c * cells + cell] = minus;
      psi[(2 * c + 1) * cells + cell] = plus;
    });
  }

 private:
  QUASI_HD WaveSides sides_of(int state, int i, std::int64_t cell, std::int64_t row) const {
    const WaveShape& s = t.shape;
    const std::int64_t lines = s.lines();
    WaveSides sides;
    for (int c = 0; c < kWaveColumns; ++c) {
      sides.plus[c] = t.volume[cell] * gain[c * s.rows() + row];
      sides.minus[c] = sides.plus[c];
      const int face = wave_face(s, c);
      if (!observes || c >= kWaveContacts || (i != face - 1 && i != face)) continue;
      const std::int64_t at =
          (static_cast<std::int64_t>(state) * (s.nx + 1) + face) * lines + cell % lines;
      const double rate = wave_sign(c) * t.speed[state] * t.area[at];
      if (i == face)
        sides.plus[c].re -= rate;
      else
        sides.minus[c].re += rate;
    }
    return sides;
  }
};

/// Holds sums over the cells of κ and both branches, for both terminals.
struct WaveRowSums {
  WaveValue* edge;    ///< ∂F by the three band edges of a cell [kWaveContacts][kCellEdges][rows]
  WaveValue* gained;  ///< Σ w V Ψ [kWaveContacts][rows]
  WaveValue* lost;    ///< Σ w V g Ψ [kWaveContacts][rows]
};

/// Computes the sums of WaveRowSums. F is Σ w Ψ (rate − iω storage), with the changes of both
/// by δV. An index stands for one row of [kWaveContacts][rows].
struct WaveRowTranspose {
  WaveTables t;
  double omega_per_fs, dx_nm;
  const WaveValue* psi;
  WaveRowSums out;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const WaveRow row(s, number);
    const std::int64_t cells = s.cells();
    WaveValue edge[kCellEdges], gained, lost;
    for (int branch = 0; branch < 2; ++branch)
      for (int j = 0; j < s.n_kappa; ++j) {
        const std::int64_t cell = row.at * s.n_kappa + j;
        const WaveValue value = psi[(2 * row.column + branch) * cells + cell];
        const double volume = t.volume[cell];
        gained += volume * value;
        lost += (volume * t.g[branch * cells + cell]) * value;
        const double* moved = t.cell_slopes + branch * kCellEdges * cells + cell;
        const double* stored = moved + 2 * kCellEdges * cells;
        for (int e = 0; e < kCellEdges; ++e)
          edge[e] += WaveValue{moved[e * cells], -omega_per_fs * stored[e * cells]} * value;
      }
    const double weight = 2.0 * dx_nm * t.density_weight[row.state * s.n_h + row.k];
    for (int e = 0; e < kCellEdges; ++e)
      out.edge[(row.column * kCellEdges + e) * s.rows() + row.at] = weight * edge[e];
    out.gained[number] = weight * gained;
    out.lost[number] = weight * lost;
  }
};

/// Computes the derivatives of Σ w Ψ V (δG − δλ g) by the sums of WavePartnerSums over
/// electrons and states [2][kWaveContacts][rows].
struct WaveTransposedRates {
  WaveTables t;
  const WaveValue *gained, *lost;
  WaveValue *of_electrons, *of_states;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const std::int64_t all = kWaveContacts * s.rows(), at = number % all;
    const WaveRow row(s, at);
    WaveValue electrons, states;
    for (int n = 0; n < t.n_branches; ++n) {
      const WaveBranch branch = t.branches[n];
      if (branch.other_pair != number / all) continue;
      if (row.k >= branch.shift) {
        const double rate = branch.strength * t.inverse_full[row.k];
        electrons += rate * gained[at - branch.shift];
        states -= rate * lost[at - branch.shift];
      }
      if (row.k + branch.shift < s.n_h) {
        const double rate = branch.strength * t.inverse_full[row.k + branch.shift] * branch.rise;
        electrons += rate * gained[at + branch.shift];
        states -= rate * lost[at + branch.shift];
      }
    }
    of_electrons[number] = electrons;
    of_states[number] = states;
  }
};

/// Adds the derivatives of Σ w Ψ V (δG − δλ g) by the band edges of each cell of H. An index
/// stands for one row of [kWaveContacts][rows].
struct WaveTransposedPartners {
  WaveTables t;
  const WaveValue *of_electrons, *of_states;
  WaveValue* edge;  ///< as in WaveRowSums
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const std::int64_t all = kWaveContacts * s.rows(), rows = s.rows();
    const WaveRow row(s, number);
    WaveValue electrons, states;
    for (int partner = 0; partner < s.n_states; ++partner) {
      const std::int64_t half = partner / s.subbands != row.state / s.subbands ? all : 0,
                         at = half + row.column * rows +
                              (static_cast<std::int64_t>(partner) * s.nx + row.i) * s.n_h + row.k,
                         pair = (static_cast<std::int64_t>(t.level_of[partner]) * s.n_levels +
                                 t.level_of[row.state]) *
                                    s.nx +
                                row.i;
      electrons += t.overlap[pair] * of_electrons[at];
      states += t.overlap[pair] * of_states[at];
    }
    const double factor = t.states_factor[row.state];
    for (int e = 0; e < kCellEdges; ++e)
      edge[(row.column * kCellEdges + e) * rows + row.at] +=
          factor * (t.electrons_slopes[e * rows + row.at] * electrons +
                    t.states_slopes[e * rows + row.at] * states);
  }
};

/// Computes the derivatives of Σ w Ψ V (δG − δλ g) by the overlaps
/// [kWaveContacts][pairs][nx].
struct WaveTransposedOverlaps {
  WaveTables t;
  const WaveValue *of_electrons, *of_states;
  WaveValue* overlap;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const auto i = static_cast<int>(number % s.nx);
    const auto to = static_cast<int>(number / s.nx % s.n_levels),
               from = static_cast<int>(number / s.nx / s.n_levels % s.n_levels),
               column = static_cast<int>(number / s.nx / s.pairs());
    const std::int64_t all = kWaveContacts * s.rows();
    WaveValue sum;
    for (int state = 0; state < s.n_states; ++state) {
      if (t.level_of[state] != from) continue;
      const std::int64_t own = (static_cast<std::int64_t>(state) * s.nx + i) * s.n_h;
      for (int partner = 0; partner < s.n_states; ++partner) {
        if (t.level_of[partner] != to) continue;
        const std::int64_t half = partner / s.subbands != state / s.subbands ? all : 0,
                           at = half + column * s.rows() + own,
                           other = (static_cast<std::int64_t>(partner) * s.nx + i) * s.n_h;
        const double factor = t.states_factor[partner];
        for (int k = 0; k < s.n_h; ++k)
          sum += (factor * t.electrons[other + k]) * of_electrons[at + k] +
                 (factor * t.states[other + k]) * of_states[at + k];
      }
    }
    overlap[number] = sum;
  }
};

}  // namespace quasi::mosfet
