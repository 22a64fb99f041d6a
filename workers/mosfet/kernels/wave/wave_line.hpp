#pragma once

#include "workers/mosfet/kernels/beam/beam_line.hpp"
#include "workers/mosfet/kernels/wave/wave_tables.hpp"

namespace quasi::mosfet {

/// The elimination of a line stores kWaveWork numbers of every node: six coefficients that all
/// columns of right sides share, and two right sides of each column.
constexpr int kWaveCoefficients = 6, kWaveWork = kWaveCoefficients + 2 * kWaveColumns;
/// The currents through both contacts follow from four values of the occupation g of a line.
/// They are g⁺ (towards the drain) at nodes 0 and nx − 2, and g⁻ (towards the source) at
/// nodes 1 and nx − 1.
constexpr int kWaveEnds = 4;

/// Holds the coefficients P and q of a node after elimination, g_i = d − P g_{i+1} − q
/// g⁻_{i+2}.
struct WaveNode {
  WaveValue p00, p01, p10, p11, q0, q1;
};
/// Holds the right sides d⁺ and d⁻ of a node after elimination, for each column.
struct WaveSides {
  WaveValue plus[kWaveColumns], minus[kWaveColumns];
};

/// Eliminates one node from the complex equations of a line, by the steps of eliminate_beam_row().
/// The constructor computes the coefficients, which serve all right sides.
struct WaveElimination {
  double far, l11;
  WaveValue l00, l01, i00, i01, i10, i11;
  bool is_open;

  /// Computes the coefficients of the node i.
  /// @param row  real coefficients of the node
  /// @param storage  ω times the volume of the cell, the imaginary part of the diagonal
  /// @param second  node i − 2 after elimination
  /// @param before  node i − 1 after elimination
  /// @param now  out: node i after elimination; zero if the cell is closed
  QUASI_HD WaveElimination(const BeamRow& row, double storage, const WaveNode& second,
                           const WaveNode& before, WaveNode* now)
      : far(row.plus_second_before), l11(row.minus_before), is_open(false) {
    *now = {};
    l00 = WaveValue{row.plus_before, 0.0} - far * second.p00;
    l01 = -far * second.p01;
    const WaveValue m00 = WaveValue{row.plus, storage} - l00 * before.p00 - l01 * before.p10;
    const WaveValue m01 =
        WaveValue{-row.opens, 0.0} - far * second.q0 - l00 * before.p01 - l01 * before.p11;
    const WaveValue m10 = WaveValue{-row.closes, 0.0} - l11 * before.p10;
    const WaveValue m11 = WaveValue{row.minus, storage} - l11 * before.p11;
    const WaveValue u01 = -1.0 * (l00 * before.q0 + l01 * before.q1);
    const WaveValue u11 = WaveValue{row.minus_after, 0.0} - l11 * before.q1;
    const WaveValue determinant = m00 * m11 - m01 * m10;
    const double size = norm(determinant);
    if (!(size > 0.0)) return;
    is_open = true;
    const WaveValue inverse = (1.0 / size) * conj(determinant);
    i00 = m11 * inverse;
    i01 = -1.0 * (m01 * inverse);
    i10 = -1.0 * (m10 * inverse);
    i11 = m00 * inverse;
    *now = {row.plus_after * i00,  i00 * u01 + i01 * u11,        row.plus_after * i10,
            i10 * u01 + i11 * u11, row.minus_second_after * i01, row.minus_second_after * i11};
  }

  /// Eliminates the node i from one right side.
  /// @param second_plus  d⁺ of the node i − 2
  /// @param before_plus  d⁺ of the node i − 1
  /// @param before_minus  d⁻ of the node i − 1
  /// @param plus, minus  in: the right side of g⁺ and g⁻; out: d⁺ and d⁻, zero if the cell
  /// is closed
  QUASI_HD void reduce(WaveValue second_plus, WaveValue before_plus, WaveValue before_minus,
                       WaveValue* plus, WaveValue* minus) const {
    if (!is_open) {
      *plus = *minus = {};
      return;
    }
    const WaveValue a = *plus - (far * second_plus + l00 * before_plus + l01 * before_minus);
    const WaveValue b = *minus - l11 * before_minus;
    *plus = i00 * a + i01 * b;
    *minus = i10 * a + i11 * b;
  }
};

/// Stores an eliminated node of a line in the array `work` [nx][kWaveWork][all lines].
QUASI_HD inline void store_wave_node(const WaveNode& node, const WaveSides& sides, std::int64_t all,
                                     WaveValue* w) {
  w[0] = node.p00;
  w[all] = node.p01;
  w[2 * all] = node.p10;
  w[3 * all] = node.p11;
  w[4 * all] = node.q0;
  w[5 * all] = node.q1;
  for (int c = 0; c < kWaveColumns; ++c) {
    w[(kWaveCoefficients + 2 * c) * all] = sides.plus[c];
    w[(kWaveCoefficients + 2 * c + 1) * all] = sides.minus[c];
  }
}

/// Substitutes back along a line that is eliminated, from the last node to the first one.
/// @param keep  keep(i, column, plus, minus) takes the solution g⁺ and g⁻ of a node and column
template <typename Keep>
QUASI_HD void substitute_wave_line(const WaveShape& s, const WaveValue* work, std::int64_t number,
                                   const Keep& keep) {
  const std::int64_t all = s.n_states * s.lines();
  WaveSides next{};
  WaveValue second_minus[kWaveColumns];
  for (int i = s.nx - 1; i >= 0; --i) {
    const WaveValue* w = work + static_cast<std::int64_t>(i) * kWaveWork * all + number;
    const WaveNode node{w[0], w[all], w[2 * all], w[3 * all], w[4 * all], w[5 * all]};
    for (int c = 0; c < kWaveColumns; ++c) {
      const WaveValue plus = w[(kWaveCoefficients + 2 * c) * all] - node.p00 * next.plus[c] -
                             node.p01 * next.minus[c] - node.q0 * second_minus[c];
      const WaveValue minus = w[(kWaveCoefficients + 2 * c + 1) * all] - node.p10 * next.plus[c] -
                              node.p11 * next.minus[c] - node.q1 * second_minus[c];
      keep(i, c, plus, minus);
      second_minus[c] = next.minus[c];
      next.plus[c] = plus;
      next.minus[c] = minus;
    }
  }
}

/// Eliminates the line with this number in [n_states][n_h][n_kappa] for all columns of right sides.
/// @param work  [nx][kWaveWork][all lines]
/// @param sides_of  sides_of(state, i, cell, row) returns the right sides of a cell at node i
template <typename Sides>
QUASI_HD void eliminate_wave_line(const WaveTables& t, double omega_per_fs, std::int64_t number,
                                  const Sides& sides_of, WaveValue* work) {
  const WaveShape& s = t.shape;
  const std::int64_t lines = s.lines(), all = s.n_states * lines;
  const auto state = static_cast<int>(number / lines);
  const std::int64_t line = number % lines;
  const double* area = t.area + state * static_cast<std::int64_t>(s.nx + 1) * lines + line;
  const double full = t.full[line], scale = t.speed[state];
  BeamWell well;
  if (t.loss == nullptr) well = beam_well({.area = area, .stride = lines, .nx = s.nx});
  WaveNode second{}, before{};
  WaveSides second_sides{}, before_sides{};
  BeamSmoothness smooth{false, false, false};
  int open_faces = 0;  // number of fully open inner faces in a row that end at face i+3
  const auto count = [&](int n) {
    const bool open = t.third && n > 0 && n < s.nx && area[n * lines] == full;
    open_faces = open ? open_faces + 1 : 0;
  };
  count(1);
  count(2);
  for (int i = 0; i < s.nx; ++i) {
    count(i + 3);
    smooth = {smooth.here, smooth.after, open_faces >= 4};
    const std::int64_t column = static_cast<std::int64_t>(state) * s.nx + i,
                       cell = column * lines + line, row = column * s.n_h + line / s.n_kappa;
    const double volume = t.volume[cell];
    const double rate = t.loss != nullptr                  ? t.loss[row]
                        : i >= well.first && i < well.last ? kBeamWellLoss
                                                           : 0.0;
    WaveNode now;
    const WaveElimination step(
        beam_row(scale * area[i * lines], scale * area[(i + 1) * lines], volume * rate, smooth),
        omega_per_fs * volume, second, before, &now);
    WaveSides sides = sides_of(state, i, cell, row);
    for (int c = 0; c < kWaveColumns; ++c)
      step.reduce(second_sides.plus[c], before_sides.plus[c], before_sides.minus[c], &sides.plus[c],
                  &sides.minus[c]);
    store_wave_node(now, sides, all,
                    work + static_cast<std::int64_t>(i) * kWaveWork * all + number);
    second = before;
    second_sides = before_sides;
    before = now;
    before_sides = sides;
  }
}

/// Solves (iωV + T) δg = q + V (δG − δλ g) on one line for all columns of right sides. q
/// follows from the shifts of the band edges and from the electrons that enter
/// (docs/theory/mosfet.md 17.8). An index stands for one line of [n_states][n_h][n_kappa].
struct WaveLines {
  WaveTables t;
  double omega_per_fs;
  WaveInput input;
  WaveShifts shifts;
  const WaveValue *loss, *gain;  ///< δλ and δG, 1/fs [kWaveColumns][rows]
  WaveValue* work;               ///< [nx][kWaveWork][all lines]
  WaveValue* electrons;          ///< out: V (δg⁺ + δg⁻) [kWaveColumns][cells]
  WaveValue* ends;               ///< out: δg [kWaveColumns][kWaveEnds][all lines]; may be null

  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const std::int64_t lines = s.lines(), all = s.n_states * lines, cells = s.cells(),
                       first = number / lines * s.nx * lines + number % lines;
    eliminate_wave_line(
        t, omega_per_fs, number,
        [&](int state, int i, std::int64_t cell, std::int64_t row) {
          return sides_of(number, state, i, cell, row);
        },
        work);
    substitute_wave_line(s, work, number, [&](int i, int c, WaveValue plus, WaveValue minus) {
      const std::int64_t cell = first + i * lines;
      electrons[c * cells + cell] = t.volume[cell] * (plus + minus);
      if (ends == nullptr) return;
      WaveValue* end = ends + c * kWaveEnds * all + number;
      if (i == 0) end[0] = plus;
      if (i == 1) end[all] = minus;
      if (i == s.nx - 2) end[2 * all] = plus;
      if (i == s.nx - 1) end[3 * all] = minus;
    });
  }

 private:
  QUASI_HD WaveSides sides_of(std::int64_t number, int state, int i, std::int64_t cell,
                              std::int64_t row) const {
    const WaveShape& s = t.shape;
    const std::int64_t cells = s.cells(), all = s.n_states * s.lines();
    const double volume = t.volume[cell], plus = t.g[cell], minus = t.g[cells + cell];
    const double* slope = t.cell_slopes + cell;
    WaveSides sides;
    for (int c = 0; c < kWaveColumns; ++c) {
      const auto follow = [&](int first) {
        const WaveValue moved =
            shifts.sum(s, c, state, i, slope + first * kCellEdges * cells, cells);
        const WaveValue stored =
            shifts.sum(s, c, state, i, slope + (first + 2) * kCellEdges * cells, cells);
        // −iω times the storage
        return WaveValue{moved.re + omega_per_fs * stored.im, moved.im - omega_per_fs * stored.re};
      };
      const WaveValue gained = gain[c * s.rows() + row], lost = loss[c * s.rows() + row];
      sides.plus[c] = follow(0) + volume * (gained - plus * lost);
      sides.minus[c] = follow(1) + volume * (gained - minus * lost);
      if (i == 0) sides.plus[c] += t.entering[number] * input.fermi_drop(s, c, 0);
      if (i == s.nx - 1) sides.minus[c] += t.entering[all + number] * input.fermi_drop(s, c, 1);
    }
    return sides;
  }
};

/// Computes the means of δg over κ and both branches [kWaveColumns][rows] from the V (δg⁺ +
/// δg⁻) of WaveLines. They are zero in closed cells.
struct WaveMeans {
  WaveTables t;
  const WaveValue* electrons;
  WaveValue* mean;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const std::int64_t row = number % s.rows();
    const WaveValue* own = electrons + number / s.rows() * s.cells() + row * s.n_kappa;
    WaveValue sum;
    for (int j = 0; j < s.n_kappa; ++j) sum += own[j];
    mean[number] = t.states[row] > 0.0 ? (1.0 / t.states[row]) * sum : WaveValue{};
  }
};

/// Computes the change δI of the electrons through the faces next to the contacts, in both
/// valleys, for every state and cell of H, 1/(nm fs) [kWaveColumns][kWaveContacts][n_states][n_h].
/// The values of g at these faces are taken to first order along x.
struct WaveCurrents {
  WaveTables t;
  WaveShifts shifts;
  const WaveValue* ends;
  WaveValue* current;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const auto [k, state, contact, column] = WaveContactRow(s, number);
    const int face = contact == 0 ? 1 : s.nx - 1;
    const std::int64_t all = s.n_states * s.lines(),
                       first = state * s.lines() + static_cast<std::int64_t>(k) * s.n_kappa;
    const double* area = t.area +
                         (static_cast<std::int64_t>(state) * (s.nx + 1) + face) * s.lines() +
                         static_cast<std::int64_t>(k) * s.n_kappa;
    const WaveValue* plus = ends + (column * kWaveEnds + 2 * contact) * all + first;
    const WaveValue* minus = plus + all;
    WaveValue sum;
    for (int j = 0; j < s.n_kappa; ++j) sum += area[j] * (plus[j] - minus[j]);
    current[number] = t.current_weight[state * s.n_h + k] * sum;
    // The change of the areas is a sum over all cells of H, added once.
    if (k != 0) return;
    const std::int64_t at = static_cast<std::int64_t>(column) * s.n_states + state;
    current[number] +=
        t.current_slope[contact * s.n_states + state] * shifts.face[at * (s.nx + 1) + face];
  }
};

}  // namespace quasi::mosfet
