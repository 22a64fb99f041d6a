#pragma once

#include <complex>
#include <cstdint>

#include "workers/backend/host_device.hpp"

namespace quasi::mosfet {

/// One line of the steady streaming equations: a cell (k, j) of one state at all nodes of x.
/// Arrays are read at node i times their stride.
struct BeamLine {
  const double* volume = nullptr;  ///< V of the nodes, eV
  const double* area = nullptr;    ///< A of the faces i − ½, i = 0 … nx, eV^{3/2}
  std::int64_t stride = 0;         ///< of `volume` and `area`
  const double* loss = nullptr;    ///< λ of the nodes, 1/fs; null: collisionless
  const double* feed = nullptr;    ///< g that enters each cell per time, 1/fs; null: none
  std::int64_t row_stride = 0;     ///< of `loss` and `feed`
  int nx = 0;
  double full = 0;     ///< A of a fully open cell
  double scale = 0;    ///< c_ν/Δx, 1/(fs √eV)
  double source = 0;   ///< g that enters at the source
  double drain = 0;    ///< g that enters at the drain
  double well_g = 0;   ///< g to which wells of a collisionless line relax
  bool third = false;  ///< face values of third order where the cell is fully open
};

/// Solution of a line, written at node i times `stride`.
struct BeamLineSolution {
  double* plus = nullptr;  ///< g of k_x > 0
  double* minus = nullptr;
  std::int64_t stride = 0;
};

/// Rate at which cells that no contact reaches relax in collisionless runs, 1/fs.
constexpr double kBeamWellLoss = 1e-9;

/// Nodes [first, last) of a line that no contact reaches through open faces.
struct BeamWell {
  int first = 0, last = 0;
};
/// Finds the nodes between the first and the last closed face of a line.
QUASI_HD inline BeamWell beam_well(const BeamLine& line) {
  BeamWell well{0, line.nx};
  while (well.first <= line.nx && line.area[well.first * line.stride] > 0.0) ++well.first;
  while (well.last >= 0 && line.area[well.last * line.stride] > 0.0) --well.last;
  return well;
}

/// Coefficients of the two equations of node i (docs/theory/mosfet.md 17.3). The first one couples
/// g⁺ at i−2, i−1, i, i+1 and the second one g⁻ at i−1, i, i+1, i+2.
struct BeamRow {
  double plus_second_before, plus_before, plus, plus_after;
  double minus_before, minus, minus_after, minus_second_after;
  double opens, closes;  ///< turning points: (a'−a)₊ of g⁻ in the first equation, (a−a')₊ of g⁺
};

/// Tells whether upwind parabolas give ĝ⁺ at the face before a node, ĝ⁺ behind it together with ĝ⁻
/// before it, and ĝ⁻ behind it.
struct BeamSmoothness {
  bool before, here, after;
};

/// Returns the coefficients of a node. @param a, after  A of its faces times c_ν/Δx @param decay
/// V λ
QUASI_HD inline BeamRow beam_row(double a, double after, double decay, BeamSmoothness smooth) {
  BeamRow row{};
  row.opens = after > a ? after - a : 0.0;
  row.closes = a > after ? a - after : 0.0;
  row.plus = (smooth.here ? after * (5.0 / 6.0) : after) - (smooth.before ? a / 3.0 : 0.0) +
             row.closes + decay;
  row.plus_before = -(smooth.before ? a * (5.0 / 6.0) : a) - (smooth.here ? after / 6.0 : 0.0);
  row.plus_second_before = smooth.before ? a / 6.0 : 0.0;
  row.plus_after = smooth.here ? after / 3.0 : 0.0;
  row.minus =
      (smooth.here ? a * (5.0 / 6.0) : a) - (smooth.after ? after / 3.0 : 0.0) + row.opens + decay;
  row.minus_before = smooth.here ? a / 3.0 : 0.0;
  row.minus_after = -(smooth.after ? after * (5.0 / 6.0) : after) - (smooth.here ? a / 6.0 : 0.0);
  row.minus_second_after = smooth.after ? after / 6.0 : 0.0;
  return row;
}

/// A node after elimination: g_i = d − P g_{i+1} − q g⁻_{i+2}, with g = (g⁺, g⁻). The values are
/// complex for oscillating g.
template <typename Value>
struct BeamEliminatedNode {
  Value p00, p01, p10, p11, q0, q1, d0, d1;
};
using BeamEliminated = BeamEliminatedNode<double>;

/// Returns a number that is positive for a usable pivot.
QUASI_HD inline double beam_pivot(double determinant) { return determinant; }
inline double beam_pivot(const std::complex<double>& determinant) { return std::norm(determinant); }

/// Eliminates the two nodes before node i from its equations. @param storage  added to the
/// diagonal: iωV for oscillating g, otherwise 0 @param rhs_plus, rhs_minus  right sides @return
/// zeros in a closed cell
template <typename Value>
QUASI_HD inline BeamEliminatedNode<Value> eliminate_beam_row(
    const BeamRow& row, Value storage, Value rhs_plus, Value rhs_minus,
    const BeamEliminatedNode<Value>& second_before, const BeamEliminatedNode<Value>& before) {
  // The node i−2 occurs in the equation of g⁺ alone.
  const double far = row.plus_second_before;
  const Value l00 = row.plus_before - far * second_before.p00, l01 = -far * second_before.p01;
  const double l11 = row.minus_before;
  rhs_plus -= far * second_before.d0 + l00 * before.d0 + l01 * before.d1;
  rhs_minus -= l11 * before.d1;
  const Value m00 = row.plus + storage - l00 * before.p00 - l01 * before.p10;
  const Value m01 = -row.opens - far * second_before.q0 - l00 * before.p01 - l01 * before.p11;
  const Value m10 = -row.closes - l11 * before.p10, m11 = row.minus + storage - l11 * before.p11;
  const Value u01 = -l00 * before.q0 - l01 * before.q1;
  const Value u11 = row.minus_after - l11 * before.q1;
  const Value determinant = m00 * m11 - m01 * m10;
  if (!(beam_pivot(determinant) > 0.0)) return {};
  const Value i00 = m11 / determinant, i01 = -m01 / determinant, i10 = -m10 / determinant,
              i11 = m00 / determinant;
  return {i00 * row.plus_after,
          i00 * u01 + i01 * u11,
          i10 * row.plus_after,
          i10 * u01 + i11 * u11,
          i01 * row.minus_second_after,
          i11 * row.minus_second_after,
          i00 * rhs_plus + i01 * rhs_minus,
          i10 * rhs_plus + i11 * rhs_minus};
}

/// Number of work values per node of solve_beam_line().
constexpr int kBeamLineWork = 6;

/// Substitutes back: replaces the d in `out` by the solution.
QUASI_HD inline void substitute_beam_line(int nx, const double* work, std::int64_t work_stride,
                                          const BeamLineSolution& out) {
  double plus = 0.0, minus = 0.0, second = 0.0;  // at node i+1, and g⁻ at node i+2
  for (int i = nx - 1; i >= 0; --i) {
    const double* w = work + static_cast<std::int64_t>(i) * kBeamLineWork * work_stride;
    const std::int64_t at = i * out.stride;
    const double here_plus =
        out.plus[at] - w[0] * plus - w[work_stride] * minus - w[4 * work_stride] * second;
    const double here_minus = out.minus[at] - w[2 * work_stride] * plus -
                              w[3 * work_stride] * minus - w[5 * work_stride] * second;
    out.plus[at] = here_plus;
    out.minus[at] = here_minus;
    second = minus;
    plus = here_plus;
    minus = here_minus;
  }
}

/// Solves streaming with loss exactly along one line, turning points included, for any number of
/// barriers and wells (docs/theory/mosfet.md 17.5). Block elimination without pivoting: its pivots
/// are positive. @param work  kBeamLineWork values per node, `work_stride` apart
QUASI_HD inline void solve_beam_line(const BeamLine& line, double* work, std::int64_t work_stride,
                                     const BeamLineSolution& out) {
  const BeamWell well = line.loss == nullptr ? beam_well(line) : BeamWell{};
  BeamEliminated second_before{}, before{};
  BeamSmoothness smooth{false, false, false};
  int open_faces = 0;  // number of fully open inner faces in a row that end at face i+3
  const auto count = [&](int n) {
    const bool open = line.third && n > 0 && n < line.nx && line.area[n * line.stride] == line.full;
    open_faces = open ? open_faces + 1 : 0;
  };
  count(1);
  count(2);
  double a = line.scale * line.area[0];
  for (int i = 0; i < line.nx; ++i) {
    count(i + 3);
    smooth = {smooth.here, smooth.after, open_faces >= 4};
    const double volume = line.volume[i * line.stride];
    const double after = line.scale * line.area[(i + 1) * line.stride];
    const bool isolated = i >= well.first && i < well.last;
    const double rate = line.loss != nullptr ? line.loss[i * line.row_stride]
                        : isolated           ? kBeamWellLoss
                                             : 0.0;
    const double fed = (line.feed != nullptr ? line.feed[i * line.row_stride] : 0.0) +
                       (isolated ? kBeamWellLoss * line.well_g : 0.0);
    const BeamRow row = beam_row(a, after, volume * rate, smooth);
    const double rhs_plus = volume * fed + (i == 0 ? a * line.source : 0.0);
    const double rhs_minus = volume * fed + (i + 1 == line.nx ? after * line.drain : 0.0);
    const BeamEliminated now =
        eliminate_beam_row(row, 0.0, rhs_plus, rhs_minus, second_before, before);
    double* w = work + static_cast<std::int64_t>(i) * kBeamLineWork * work_stride;
    w[0] = now.p00;
    w[work_stride] = now.p01;
    w[2 * work_stride] = now.p10;
    w[3 * work_stride] = now.p11;
    w[4 * work_stride] = now.q0;
    w[5 * work_stride] = now.q1;
    out.plus[i * out.stride] = now.d0;
    out.minus[i * out.stride] = now.d1;
    second_before = before;
    before = now;
    a = after;
  }
  substitute_beam_line(line.nx, work, work_stride, out);
}

}  // namespace quasi::mosfet
