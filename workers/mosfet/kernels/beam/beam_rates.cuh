#pragma once

#include <cstdint>
#include <vector>

#include "workers/mosfet/kernels/beam/beam_scattering.hpp"
#include "workers/mosfet/physics/beam/beam_cell.hpp"

namespace quasi::mosfet::cuda {

/// One end of a link as its state sees it. See docs/theory/mosfet.md 17.4 for the equations.
struct BeamEnd {
  int partner = 0;  ///< state at the other end
  int shift = 0;    ///< cells of H from the low to the high end
  int overlap = 0;  ///< index of the two levels in the overlap matrix
  int process = 0;
  int rough = -1;       ///< index of the two states in the table of roughness; −1: overlap
  double strength = 0;  ///< c_μ Z N_μ b_h/ħ²
  double rise = 1;      ///< e^{(H_h−H_k)/kT}
};

/// The links of a problem as lists of ends, state by state: low ends first.
struct BeamEndLists {
  std::vector<BeamEnd> ends;
  std::vector<int> first_low, first_high;  ///< see BeamTables

  BeamEndLists(const std::vector<BeamLink>& links, int n_states, int subbands) {
    for (int state = 0; state < n_states; ++state)
      for (const bool low : {true, false}) {
        (low ? first_low : first_high).push_back(static_cast<int>(ends.size()));
        for (const BeamLink& link : links)
          if ((low ? link.low : link.high) == state)
            ends.push_back({low ? link.high : link.low, link.shift, link.overlap, link.process,
                            link.rough ? link.low * subbands + link.high % subbands : -1,
                            link.strength, link.rise});
      }
    first_low.push_back(static_cast<int>(ends.size()));
  }
};

/// Tables of a transport problem on the device (BeamGeometry, BeamScattering). A row is a cell of H
/// of one state and column.
struct BeamTables {
  int n_states = 0, nx = 0, nk = 0, nj = 0;
  double alpha_per_ev = 0, dx_nm = 0, dh_ev = 0;
  BeamShape shape;
  const double* h_edge = nullptr;          ///< [nk+1], eV
  const double* h_centre = nullptr;        ///< [nk], eV
  const double* h_full = nullptr;          ///< Ω_k [nk], eV
  const double* h_inverse = nullptr;       ///< 1/Ω_k [nk], 1/eV
  const double* boltzmann = nullptr;       ///< e^{(E_F,S − H_k)/kT} [nk]
  const double* kappa_edge = nullptr;      ///< [nj+1], √eV
  const double* nodes = nullptr;           ///< ε of the nodes [n_states][nx]
  const double* faces = nullptr;           ///< ε of the faces [n_states][nx+1]
  const double* overlap = nullptr;         ///< [pairs of levels][nx]
  const double* density_factor = nullptr;  ///< C_ν, c_ν and 4√(m_x m_y) [n_states]
  const double* speed_factor = nullptr;
  const double* states_factor = nullptr;
  const double* inflow_source = nullptr;  ///< [nk]
  const double* inflow_drain = nullptr;
  const double* filling = nullptr;     ///< f̄ [rows]; null: no blocking
  const double* roughness = nullptr;   ///< as BeamCellTables has it; null: smooth interfaces
  const double* relaxation = nullptr;  ///< rate of relaxation to ḡ [rows], 1/fs; null: none
  const BeamEnd* ends = nullptr;
  const int* first_low = nullptr;   ///< first low end of a state, then its high ends [n_states+1]
  const int* first_high = nullptr;  ///< [n_states]
  bool third = false, scatters = false;

  double* volume = nullptr;  ///< [n_states][nx][nk][nj]
  double* area = nullptr;    ///< [n_states][nx+1][nk][nj]
  double* states = nullptr;  ///< D [rows]
  double* loss = nullptr;    ///< [rows]
  double* source = nullptr;  ///< gain that depends on the filling alone [rows]; null: no blocking

  QUASI_HD std::int64_t lines() const { return static_cast<std::int64_t>(nk) * nj; }
  QUASI_HD std::int64_t rows() const { return static_cast<std::int64_t>(n_states) * nx * nk; }
  QUASI_HD std::int64_t row(int state, int i, int k) const {
    return (static_cast<std::int64_t>(state) * nx + i) * nk + k;
  }
  QUASI_HD BeamCell cell(int k, int j) const {
    return {h_edge[k], h_edge[k + 1], h_centre[k], kappa_edge[j], kappa_edge[j + 1], h_full[k]};
  }
  /// Returns A of a fully open cell, with the bits of beam_area().
  QUASI_HD double full(int k, int j) const {
    return h_full[k] * (kappa_edge[j + 1] - kappa_edge[j]);
  }
};

/// A row and its three numbers.
struct BeamRowNumber {
  std::int64_t at;
  int state, i, k;
  QUASI_HD BeamRowNumber(const BeamTables& t, std::int64_t number)
      : at(number),
        state(static_cast<int>(number / (static_cast<std::int64_t>(t.nx) * t.nk))),
        i(static_cast<int>(number / t.nk % t.nx)),
        k(static_cast<int>(number % t.nk)) {}
};

/// Returns the matrix element of a link in column i, that of the steps of rough interfaces or the
/// overlap. @param k  cell of H of the low end
QUASI_HD inline double beam_coupling(const BeamTables& t, const BeamEnd& end, int i, int k) {
  if (end.rough < 0) return t.overlap[static_cast<std::int64_t>(end.overlap) * t.nx + i];
  return t.roughness[(static_cast<std::int64_t>(end.rough) * t.nx + i) * t.nk + k];
}

/// Calls action(end, is_low, partner, rate) for every end of a row, in a fixed order. `partner` is
/// the row at the other end. With `weight` = 4√(m_x m_y) D the rate is the one per electron of the
/// own row without blocking (BeamScattering). Further factors of the partner may be multiplied into
/// `weight`.
template <typename Action>
QUASI_HD inline void for_each_end(const BeamTables& t, const BeamRowNumber& own,
                                  const double* weight, const Action& action) {
  const int first = t.first_low[own.state], middle = t.first_high[own.state],
            last = t.first_low[own.state + 1];
  for (int n = first; n < last; ++n) {
    const BeamEnd end = t.ends[n];
    const bool is_low = n < middle;
    const int other = is_low ? own.k + end.shift : own.k - end.shift;
    if (other < 0 || other >= t.nk) continue;
    const std::int64_t partner = t.row(end.partner, own.i, other);
    const double coupling = beam_coupling(t, end, own.i, is_low ? own.k : other);
    const double rate =
        end.strength * coupling * t.h_inverse[is_low ? other : own.k] * weight[partner];
    action(end, is_low, partner, is_low ? rate : rate * end.rise);
  }
}

/// Returns the factor of f of the own row in Newton's linearisation of blocking around the filling
/// of the partner; see BeamScattering::factor_of_low().
QUASI_HD inline double beam_blocking(const BeamEnd& end, bool is_low, double filling) {
  return is_low ? 1.0 + (end.rise - 1.0) * filling : 1.0 - (1.0 - 1.0 / end.rise) * filling;
}

/// Computes λ of a row, with the rate of its relaxation, and its gain that depends on the filling
/// alone. @param weight  4√(m_x m_y)
/// D
QUASI_HD inline void beam_loss_of_row(const BeamTables& t, const double* weight,
                                      std::int64_t number) {
  const BeamRowNumber own(t, number);
  double loss = t.relaxation != nullptr ? t.relaxation[number] : 0.0, source = 0.0;
  const double filled = t.filling != nullptr ? t.filling[number] : 0.0;
  for_each_end(t, own, weight,
               [&](const BeamEnd& end, bool is_low, std::int64_t partner, double rate) {
                 const double other = t.filling != nullptr ? t.filling[partner] : 0.0;
                 loss += rate * beam_blocking(end, is_low, other);
                 const double quadratic = is_low ? end.rise - 1.0 : 1.0 / end.rise - 1.0;
                 source += rate * quadratic * filled * other;
               });
  const bool open = t.states[number] > 0.0;
  t.loss[number] = open ? loss : 0.0;
  if (t.source != nullptr) t.source[number] = open ? source / t.boltzmann[own.k] : 0.0;
}

/// Returns the gain of a row by its links and by relaxation. @param weight  4√(m_x m_y) D ḡ
/// @param mean  ḡ
QUASI_HD inline double beam_gain_of_row(const BeamTables& t, const double* weight,
                                        const double* mean, std::int64_t number) {
  if (!(t.states[number] > 0.0)) return 0.0;
  const double filled = t.filling != nullptr ? t.filling[number] : 0.0;
  double gain = t.relaxation != nullptr ? t.relaxation[number] * mean[number] : 0.0;
  for_each_end(t, BeamRowNumber(t, number), weight,
               [&](const BeamEnd& end, bool is_low, std::int64_t, double rate) {
                 gain += rate * beam_blocking(end, !is_low, filled);
               });
  return gain;
}

/// Returns the power that the links of a process above a row give to the phonons, one valley,
/// eV/(nm² fs). @param weight  4√(m_x m_y) D
QUASI_HD inline double beam_power_of_row(const BeamTables& t, const double* weight,
                                         const double* mean, int process, std::int64_t number) {
  const BeamRowNumber own(t, number);
  if (!(t.states[number] > 0.0)) return 0.0;
  const double f_low = t.filling != nullptr ? mean[number] * t.boltzmann[own.k] : 0.0;
  double power = 0.0;
  for_each_end(t, own, weight,
               [&](const BeamEnd& end, bool is_low, std::int64_t partner, double rate) {
                 if (!is_low || end.process != process) return;
                 const double f_high =
                     t.filling != nullptr ? mean[partner] * t.boltzmann[own.k + end.shift] : 0.0;
                 power += rate * end.shift * t.dh_ev *
                          (mean[partner] * (1.0 - f_low) - mean[number] * (1.0 - f_high));
               });
  return power * t.density_factor[own.state] * t.states[number] * t.boltzmann[own.k];
}

}  // namespace quasi::mosfet::cuda
