#pragma once

#include "workers/mosfet/kernels/wave/wave_problem.hpp"

namespace quasi::mosfet {

/// Holds the addresses of the tables of a WaveProblem (docs/theory/mosfet.md 17.8), all on the host
/// or all on one device. Shapes and units are those of the members of WaveProblem.
struct WaveTables {
  WaveShape shape;
  bool third = false;
  int n_branches = 0;
  const double *volume = nullptr, *area = nullptr, *full = nullptr, *speed = nullptr, *g = nullptr,
               *loss = nullptr, *cell_slopes = nullptr;
  const double *states = nullptr, *electrons = nullptr, *states_slopes = nullptr,
               *electrons_slopes = nullptr, *states_factor = nullptr, *density_weight = nullptr,
               *overlap = nullptr, *inverse_full = nullptr;
  const WaveBranch* branches = nullptr;
  const int* level_of = nullptr;
  const double *level_slope = nullptr, *face_slope = nullptr, *overlap_slope = nullptr;
  const char* fixed = nullptr;
  const double *stencil = nullptr, *psi_square = nullptr, *density_slope = nullptr,
               *charge = nullptr, *inverse = nullptr;
  const double *entering = nullptr, *wanted_slope = nullptr, *current_weight = nullptr,
               *current_slope = nullptr, *weights = nullptr;
  double excess_scale[kWaveContacts] = {}, excess_drive[kWaveContacts] = {};
};

/// Holds the address of unknowns [kWaveColumns][WaveShape::size()], and tells whether 1 V at the
/// terminal of each column acts beside them.
struct WaveInput {
  const WaveValue* x = nullptr;
  bool driven = false;

  /// Returns the address of δV of a column of right sides at the nodes of the position i along x
  /// [nz], V.
  QUASI_HD const WaveValue* potential(const WaveShape& s, int column, int i) const {
    return x + column * s.size() + s.rows() + static_cast<std::int64_t>(i) * s.nz;
  }
  /// Returns the voltage of a contact less the unknown shift of its E_F, V. Without neutral inflow
  /// the shift is zero.
  QUASI_HD WaveValue fermi_drop(const WaveShape& s, int column, int contact) const {
    WaveValue drop{driven && column == contact ? 1.0 : 0.0, 0.0};
    if (s.neutral) drop -= x[column * s.size() + s.rows() + s.nodes() + contact];
    return drop;
  }
};

/// Holds the changes of band edges and overlaps that follow from δV to first order.
struct WaveShifts {
  WaveValue* node = nullptr;     ///< δε of nodes, eV [kWaveColumns][n_states][nx]
  WaveValue* face = nullptr;     ///< δε of faces, eV [kWaveColumns][n_states][nx+1]
  WaveValue* overlap = nullptr;  ///< δW, 1/nm [kWaveColumns][pairs][nx]

  /// Returns the change of a quantity of the cells of one state at the position i along x. The
  /// address `slopes` leads to its derivatives per eV by the band edges of the face before, the
  /// node and the face behind. They lie `stride` numbers apart.
  QUASI_HD WaveValue sum(const WaveShape& s, int column, int state, int i, const double* slopes,
                         std::int64_t stride) const {
    const std::int64_t at = static_cast<std::int64_t>(column) * s.n_states + state;
    const WaveValue* faces = face + at * (s.nx + 1) + i;
    return slopes[0] * faces[0] + slopes[stride] * node[at * s.nx + i] +
           slopes[2 * stride] * faces[1];
  }
};

/// Returns Σ_j a_j V_j along z at one position x, for the level of one state.
/// @param table   a [n_levels][nx][nz]
/// @param input   holds V [kWaveColumns][nx][nz]
/// @param number  index in [kWaveColumns][n_states][nx], which names column, state and position
QUASI_HD inline WaveValue wave_sum_along_z(const WaveTables& t, const double* table,
                                           const WaveInput& input, std::int64_t number) {
  const WaveShape& s = t.shape;
  const auto i = static_cast<int>(number % s.nx),
             state = static_cast<int>(number / s.nx % s.n_states),
             column = static_cast<int>(number / s.nx / s.n_states);
  const WaveValue* v = input.potential(s, column, i);
  const double* a = table + (static_cast<std::int64_t>(t.level_of[state]) * s.nx + i) * s.nz;
  WaveValue sum;
  for (int j = 0; j < s.nz; ++j) sum += a[j] * v[j];
  return sum;
}

/// Names one number of a list [columns][kWaveContacts][n_states][n_h].
struct WaveContactRow {
  int k, state, contact, column;

  QUASI_HD WaveContactRow(const WaveShape& s, std::int64_t number)
      : k(static_cast<int>(number % s.n_h)),
        state(static_cast<int>(number / s.n_h % s.n_states)),
        contact(static_cast<int>(number / s.n_h / s.n_states % kWaveContacts)),
        column(static_cast<int>(number / s.n_h / s.n_states / kWaveContacts)) {}
};

/// Computes δε of the nodes to first order in δV, eV [kWaveColumns][n_states][nx]. An index
/// stands for one number of the result.
struct WaveNodeShifts {
  WaveTables t;
  WaveInput input;
  WaveValue* node;
  QUASI_HD void operator()(std::int64_t number) const {
    node[number] = wave_sum_along_z(t, t.level_slope, input, number);
  }
};

/// Computes δε of the faces from δε of the nodes, eV [kWaveColumns][n_states][nx+1]. An index
/// stands for one number of the result.
struct WaveFaceShifts {
  WaveTables t;
  const WaveValue* node;
  WaveValue* face;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const auto n = static_cast<int>(number % (s.nx + 1));
    const std::int64_t column_state = number / (s.nx + 1);
    const double* slope = t.face_slope + (column_state % s.n_states * (s.nx + 1) + n) * kFaceNodes;
    WaveValue sum;
    for (int o = 0; o < kFaceNodes; ++o) {
      const int i = n - kFacesAhead + o;
      if (i >= 0 && i < s.nx) sum += slope[o] * node[column_state * s.nx + i];
    }
    face[number] = sum;
  }
};

/// Computes δW of all pairs of levels to first order in δV, 1/nm [kWaveColumns][pairs][nx]. An
/// index stands for one number of the result.
struct WaveOverlapShifts {
  WaveTables t;
  WaveInput input;
  WaveValue* overlap;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const std::int64_t per_column = s.pairs() * s.nx, at = number % per_column;
    const WaveValue* v =
        input.potential(s, static_cast<int>(number / per_column), static_cast<int>(at % s.nx));
    const double* slope = t.overlap_slope + at * s.nz;
    WaveValue sum;
    for (int j = 0; j < s.nz; ++j) sum += slope[j] * v[j];
    overlap[number] = sum;
  }
};

/// Splits an index of [kWaveColumns][n_states][nx][n_h] into the column of right sides, the state,
/// the position i along x and the cell k of H.
struct WaveRow {
  std::int64_t at;  ///< index in [n_states][nx][n_h]
  int column, state, i, k;
  /// Splits an index. @param number in [kWaveColumns][n_states][nx][n_h]
  QUASI_HD WaveRow(const WaveShape& s, std::int64_t number)
      : at(number % s.rows()),
        column(static_cast<int>(number / s.rows())),
        state(static_cast<int>(at / s.n_h / s.nx)),
        i(static_cast<int>(at / s.n_h % s.nx)),
        k(static_cast<int>(at % s.n_h)) {}
};

/// Computes the changes of 4√(m_x m_y) D and of 4√(m_x m_y) D ḡ in every cell of H, eV
/// [kWaveColumns][rows]. D is the volume of the cell summed over κ and both branches, and ḡ is
/// its mean occupation.
struct WavePartners {
  WaveTables t;
  WaveInput input;
  WaveShifts shifts;
  WaveValue *states, *electrons;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const WaveRow row(s, number);
    const double factor = t.states_factor[row.state];
    states[number] =
        factor * shifts.sum(s, row.column, row.state, row.i, t.states_slopes + row.at, s.rows());
    electrons[number] = factor * (shifts.sum(s, row.column, row.state, row.i,
                                             t.electrons_slopes + row.at, s.rows()) +
                                  t.states[row.at] * input.x[row.column * s.size() + row.at]);
  }
};

/// Computes the changes of the sums over all states that a process may reach from a state, weighted
/// with the overlaps W (ScatteringSums), eV/nm [2][kWaveColumns][rows]. The first half has the
/// partners of the pair of valleys of the state, the second half those of other pairs.
struct WavePartnerSums {
  WaveTables t;
  WaveShifts shifts;
  const WaveValue *states, *electrons;
  WaveValue *of_states, *of_electrons;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const std::int64_t all = kWaveColumns * s.rows();
    const WaveRow row(s, number % all);
    const bool joins_others = number >= all;
    const WaveValue* overlap_change = shifts.overlap + row.column * s.pairs() * s.nx;
    WaveValue lost, gained;
    for (int partner = 0; partner < s.n_states; ++partner) {
      if ((partner / s.subbands != row.state / s.subbands) != joins_others) continue;
      const std::int64_t at = (static_cast<std::int64_t>(partner) * s.nx + row.i) * s.n_h + row.k,
                         moved = row.column * s.rows() + at;
      const std::int64_t pair =
          (static_cast<std::int64_t>(t.level_of[row.state]) * s.n_levels + t.level_of[partner]) *
              s.nx +
          row.i;
      const double overlap = t.overlap[pair], factor = t.states_factor[partner];
      const WaveValue change = overlap_change[pair];
      lost += overlap * states[moved] + (factor * t.states[at]) * change;
      gained += overlap * electrons[moved] + (factor * t.electrons[at]) * change;
    }
    of_states[number] = lost;
    of_electrons[number] = gained;
  }
};

/// Computes the changes δλ of the loss rate and δG of the gain in every cell of H, 1/fs
/// [kWaveColumns][rows]. They are zero in closed cells.
struct WaveRates {
  WaveTables t;
  const WaveValue *of_states, *of_electrons;
  WaveValue *loss, *gain;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const WaveRow row(s, number);
    const std::int64_t all = kWaveColumns * s.rows();
    WaveValue lost, gained;
    for (int n = 0; n < t.n_branches && t.states[row.at] > 0.0; ++n) {
      const WaveBranch branch = t.branches[n];
      const std::int64_t at = branch.other_pair * all + number;
      if (row.k + branch.shift < s.n_h) {
        const double rate = branch.strength * t.inverse_full[row.k + branch.shift];
        lost += rate * of_states[at + branch.shift];
        gained += rate * of_electrons[at + branch.shift];
      }
      if (row.k >= branch.shift) {
        const double rate = branch.strength * t.inverse_full[row.k] * branch.rise;
        lost += rate * of_states[at - branch.shift];
        gained += rate * of_electrons[at - branch.shift];
      }
    }
    loss[number] = lost;
    gain[number] = gained;
  }
};

}  // namespace quasi::mosfet
