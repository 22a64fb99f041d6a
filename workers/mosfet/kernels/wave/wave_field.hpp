#pragma once

#include "workers/mosfet/kernels/wave/wave_tables.hpp"

namespace quasi::mosfet {

/// A row of the inverse of Gummel's matrix is summed in this number of parts.
constexpr int kInverseParts = 16;

/// Computes δϱ, the change of the electrons of one valley, for every state and position along x,
/// nm⁻² [kWaveColumns][n_states][nx]. An index stands for one number of the result.
///
/// The function objects of this file are the response of the field (docs/theory/mosfet.md 17.8),
/// with the stencil of section 5.5.
struct WaveSheet {
  WaveTables t;
  WaveShifts shifts;
  const WaveValue* mean;  ///< mean of δg over κ and both branches [kWaveColumns][rows]
  WaveValue* sheet;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const auto i = static_cast<int>(number % s.nx),
               state = static_cast<int>(number / s.nx % s.n_states),
               column = static_cast<int>(number / s.nx / s.n_states);
    const std::int64_t first = (static_cast<std::int64_t>(state) * s.nx + i) * s.n_h;
    WaveValue sum;
    for (int k = 0; k < s.n_h; ++k) {
      const std::int64_t row = first + k;
      sum += t.density_weight[state * s.n_h + k] *
             (t.states[row] * mean[column * s.rows() + row] +
              shifts.sum(s, column, state, i, t.electrons_slopes + row, s.rows()));
    }
    sheet[number] = sum;
  }
};

/// Computes δP, the change of the residual of Poisson's equation, V nm [kWaveColumns][nodes]. It
/// is zero on nodes of given potential.
struct WavePoisson {
  WaveTables t;
  WaveInput input;
  const WaveValue* sheet;
  WaveValue* poisson;
  QUASI_HD void operator()(std::int64_t number) const {
    constexpr double kValleys = 2.0;
    const WaveShape& s = t.shape;
    const std::int64_t node = number % s.nodes();
    const auto column = static_cast<int>(number / s.nodes()), i = static_cast<int>(node / s.nz),
               j = static_cast<int>(node % s.nz);
    if (t.fixed[node] != 0) {
      poisson[number] = {};
      return;
    }
    const WaveValue* v = input.potential(s, column, i);
    const double* slope = t.density_slope + node * s.nz;
    WaveValue density;
    for (int m = 0; m < s.nz; ++m) density += slope[m] * v[m];
    for (int state = 0; state < s.n_states; ++state)
      density +=
          (kValleys *
           t.psi_square[(static_cast<std::int64_t>(t.level_of[state]) * s.nx + i) * s.nz + j]) *
          sheet[(static_cast<std::int64_t>(column) * s.n_states + state) * s.nx + i];
    const double* weight = t.stencil + node * 4;
    WaveValue sum = t.charge[i] * density;
    if (j > 0) sum += weight[0] * (v[j] - v[j - 1]);
    if (j + 1 < s.nz) sum += weight[1] * (v[j] - v[j + 1]);
    if (i > 0) sum += weight[2] * (v[j] - v[j - s.nz]);
    if (i + 1 < s.nx) sum += weight[3] * (v[j] - v[j + s.nz]);
    poisson[number] = sum;
  }
};

/// Multiplies δP with the inverse of Gummel's matrix, in parts that WaveResidual adds, V
/// [kInverseParts][kWaveColumns][nodes]. An index stands for a part and a node. The matrix is
/// symmetric, so that neighbouring indices read neighbouring numbers.
struct WaveInverse {
  WaveTables t;
  const WaveValue* poisson;
  WaveValue* parts;
  QUASI_HD void operator()(std::int64_t number) const {
    const std::int64_t nodes = t.shape.nodes(), node = number % nodes, part = number / nodes;
    const std::int64_t first = part * nodes / kInverseParts,
                       last = (part + 1) * nodes / kInverseParts;
    WaveValue sum[kWaveColumns];
    for (std::int64_t m = first; m < last; ++m) {
      const double weight = t.inverse[m * nodes + node];
      for (int c = 0; c < kWaveColumns; ++c) sum[c] += weight * poisson[c * nodes + m];
    }
    for (int c = 0; c < kWaveColumns; ++c) parts[(part * kWaveColumns + c) * nodes + node] = sum[c];
  }
};

/// Lists the two sets of equations whose residual can be computed.
enum class WaveEquations {
  kAll,        ///< transport, Poisson's equation and the neutrality of contacts
  kTransport,  ///< transport alone; the rest of the residual is zero
};

/// Computes the residual of the equations [kWaveColumns][WaveShape::size()]. It has three parts:
/// the means of δg less the means of one solution of all lines, the preconditioned δP in V, and
/// the excess electrons of the contact columns. The excess is given as the shift of E_F in eV.
///
/// With `is_right_side` the input has the drive and no means of δg. The result then has the
/// opposite sign and is the right side for GMRES.
struct WaveResidual {
  WaveTables t;
  WaveInput input;
  WaveShifts shifts;
  WaveEquations equations;
  bool is_right_side;
  const WaveValue *mean, *sheet, *parts;
  WaveValue* out;
  QUASI_HD void operator()(std::int64_t number) const {
    const WaveShape& s = t.shape;
    const auto column = static_cast<int>(number / s.size());
    const std::int64_t at = number % s.size(), node = at - s.rows();
    const double sign = is_right_side ? -1.0 : 1.0;
    if (at < s.rows()) {
      const WaveValue solved = mean[column * s.rows() + at];
      out[number] = is_right_side ? solved : input.x[number] - solved;
    } else if (equations == WaveEquations::kTransport) {
      out[number] = {};
    } else if (node < s.nodes()) {
      WaveValue sum;
      for (int part = 0; part < kInverseParts; ++part)
        sum += parts[(static_cast<std::int64_t>(part) * kWaveColumns + column) * s.nodes() + node];
      out[number] = sign * sum;
    } else {
      out[number] = sign * excess(column, static_cast<int>(node - s.nodes()));
    }
  }

 private:
  QUASI_HD WaveValue excess(int column, int contact) const {
    constexpr double kValleys = 2.0;
    const WaveShape& s = t.shape;
    const int i = contact == 0 ? 0 : s.nx - 1, inward = contact == 0 ? 1 : -1;
    WaveValue sum;
    for (int state = 0; state < s.n_states; ++state) {
      const std::int64_t at = (static_cast<std::int64_t>(column) * s.n_states + state) * s.nx + i;
      const double* slope = t.wanted_slope + (contact * s.n_states + state) *
                                                 static_cast<std::int64_t>(kContactNodes);
      sum += kValleys * sheet[at];
      for (int n = 0; n < kContactNodes; ++n) sum -= slope[n] * shifts.node[at + n * inward];
    }
    sum *= t.excess_scale[contact];
    if (input.driven && column == contact) sum += WaveValue{t.excess_drive[contact], 0.0};
    return sum;
  }
};

}  // namespace quasi::mosfet
