#pragma once

#include "workers/mosfet/kernels/wave/wave_transpose.hpp"

/// The function objects of this file sum the noise of all moves of electrons, rate Δ_i Δ_j*
/// (docs/theory/mosfet.md 17.9). Sums have two complex numbers: the densities of the source and of
/// the drain as the real and imaginary part of the first, and that of both as the second.
namespace quasi::mosfet {

/// Holds the sums of some moves.
struct WaveMoves {
  WaveValue own, both;

  /// Adds one move.
  /// @param source, drain  Δ of both currents
  QUASI_HD void add(double rate, WaveValue source, WaveValue drain) {
    own += WaveValue{rate * norm(source), rate * norm(drain)};
    both += rate * (source * conj(drain));
  }
};

/// Sums the moves along one line: inflow, outflow, turning and hops to the next node, in units of
/// 2 Σ rate Δ_i Δ_j*, 1/(nm fs) [all lines]. An index stands for one line of
/// [n_states][n_h][n_kappa].
struct WaveLineMoves {
  WaveTables t;
  const double* filling;                   ///< as in WaveObservation
  const double *from_source, *from_drain;  ///< g that enters [n_h]
  const WaveValue* psi;
  WaveMoves* moves;

  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const std::int64_t lines = s.lines(), line = number % lines;
    const auto state = static_cast<int>(number / lines), k = static_cast<int>(line / s.n_kappa);
    const double* area = t.area + state * static_cast<std::int64_t>(s.nx + 1) * lines + line;
    const std::int64_t first = state * static_cast<std::int64_t>(s.nx) * lines + line;
    const auto spread = [&](double g) { return g * (1.0 - g * filling[k]); };
    const auto held = [&](int branch, int i) {
      return spread(t.g[branch * s.cells() + first + i * lines]);
    };
    WaveMoves sum;
    // A move ends at the branch and node `to` and begins at `from`. Node −1 is a contact.
    const auto add = [&](double rate, int from_branch, int from, int to_branch, int to,
                         double through) {
      WaveValue delta[kWaveContacts];
      for (int c = 0; c < kWaveContacts; ++c) {
        if (to >= 0) delta[c] += psi[(2 * c + to_branch) * s.cells() + first + to * lines];
        if (from >= 0) delta[c] -= psi[(2 * c + from_branch) * s.cells() + first + from * lines];
      }
      // The current of the move itself, through the face behind node `face`.
      const int face = from < to ? from : to;
      if (through != 0.0 && face == 0) delta[0].re -= through;
      if (through != 0.0 && face == s.nx - 2) delta[1].re += through;
      sum.add(rate, delta[0], delta[1]);
    };
    const int last = s.nx - 1;
    add(area[0] * spread(from_source[k]), 0, -1, 0, 0, 0.0);
    add(area[0] * held(1, 0), 1, 0, 1, -1, 0.0);
    add(area[s.nx * lines] * spread(from_drain[k]), 1, -1, 1, last, 0.0);
    add(area[s.nx * lines] * held(0, last), 0, last, 0, -1, 0.0);
    for (int i = 0; i < s.nx; ++i) {
      const double closes = area[i * lines] - area[(i + 1) * lines];
      add(closes > 0.0 ? closes * held(0, i) : -closes * held(1, i), 0, i, 1, i, 0.0);
      if (i == last) continue;
      add(area[(i + 1) * lines] * held(0, i), 0, i, 0, i + 1, 1.0);
      add(area[(i + 1) * lines] * held(1, i + 1), 1, i + 1, 1, i, -1.0);
    }
    const double factor = 2.0 * t.current_weight[state * s.n_h + k];
    moves[number] = {factor * sum.own, factor * sum.both};
  }
};

/// Means of this number of products are taken in every cell of H. They are Ψ of the source, Ψ of
/// the drain, (|Ψ_S|², |Ψ_D|²) as real and imaginary part, and Ψ_S Ψ_D*.
constexpr int kMoveMeans = 4;

/// Computes these means with the weights V and V g [kMoveMeans][rows]. An index stands for one
/// row. Electrons leave the points of a cell of H in proportion to V g and arrive in proportion to
/// V.
struct WaveMoveMeans {
  WaveTables t;
  const WaveValue* psi;
  WaveValue *arriving, *leaving;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const std::int64_t cells = s.cells();
    WaveValue in[kMoveMeans], out[kMoveMeans];
    for (int branch = 0; branch < 2; ++branch)
      for (int j = 0; j < s.n_kappa; ++j) {
        const std::int64_t cell = number * s.n_kappa + j;
        const WaveValue a = psi[branch * cells + cell], b = psi[(2 + branch) * cells + cell];
        const WaveValue products[kMoveMeans]{a, b, {norm(a), norm(b)}, a * conj(b)};
        const double volume = t.volume[cell], electrons = volume * t.g[branch * cells + cell];
        for (int n = 0; n < kMoveMeans; ++n) {
          in[n] += volume * products[n];
          out[n] += electrons * products[n];
        }
      }
    const double scale = t.states[number] > 0.0 ? 1.0 / t.states[number] : 0.0;
    for (int n = 0; n < kMoveMeans; ++n) {
      arriving[n * s.rows() + number] = scale * in[n];
      leaving[n * s.rows() + number] = scale * out[n];
    }
  }
};

/// Sums the moves by scattering from the cells of H of one state and position along x, in units of
/// 2 Σ rate Δ_i Δ_j*, 1/(nm fs) [n_states][nx].
struct WaveScatteringMoves {
  WaveTables t;
  double dx_nm;
  const WaveValue* sums;  ///< by WaveMeanSums of `arriving`
  const WaveValue* leaving;
  WaveMoves* moves;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const std::int64_t rows = s.rows(), all = kMoveMeans * rows;
    const auto state = static_cast<int>(number / s.nx);
    WaveMoves sum;
    for (int k = 0; k < s.n_h; ++k) {
      const std::int64_t row = number * s.n_h + k;
      if (!(t.states[row] > 0.0)) continue;
      WaveValue gain[kMoveMeans], left[kMoveMeans];
      for (int n = 0; n < kMoveMeans; ++n) {
        gain[n] = wave_gain(t, sums, all, WaveRow(s, n * rows + row), n * rows + row);
        left[n] = leaving[n * rows + row];
      }
      const double rate = t.loss[row], held = t.electrons[row] / t.states[row];
      const WaveValue crossed{2.0 * (left[0] * conj(gain[0])).re,
                              2.0 * (left[1] * conj(gain[1])).re};
      // The electrons of both valleys at g = 1, times the 2 of a one-sided density.
      const double weight = 4.0 * dx_nm * t.density_weight[state * s.n_h + k] * t.states[row];
      sum.own += weight * (rate * left[2] + held * gain[2] - crossed);
      sum.both += weight * (rate * left[3] + held * gain[3] - left[0] * conj(gain[1]) -
                            conj(left[1]) * gain[0]);
    }
    moves[number] = sum;
  }
};

}  // namespace quasi::mosfet
