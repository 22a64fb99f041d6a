#include "workers/mosfet/solver/transport/refine.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/mosfet/input/mesh_rule.hpp"
#include "workers/mosfet/kernels/electrostatics/subbands.hpp"

namespace quasi::mosfet {
namespace {

constexpr int kFewestW = 32, kFewestAngles = 8;
constexpr double kStartTolerance = 5e-3, kStartFloor_a_m = 1.0, kStartEnd_fs = 500.0;

/// Position of one fine node on a coarse grid: between `at` and at+1.
struct GridPosition {
  int at = 0;
  double share = 0;
};

GridPosition position_on_grid(double position, int count) {
  const int at = std::clamp(static_cast<int>(std::floor(position)), 0, count - 2);
  return {at, position - at};
}

// The ends continue with the slope of the last cell. Undershoots have no logarithm and are
// interpolated linearly.
double log_linear(double a, double b, double share) {
  if (a > 0.0 && b > 0.0) return std::exp((1.0 - share) * std::log(a) + share * std::log(b));
  return (1.0 - share) * a + share * b;
}

}  // namespace

std::optional<Deck> coarser_deck(const Deck& deck) {
  if (deck.mesh.nw < 2 * kFewestW || deck.mesh.nphi < 2 * kFewestAngles) return {};
  Deck coarse = deck;
  coarse.mesh.nw = std::max(kFewestW, deck.mesh.nw / 4);
  coarse.mesh.nphi = std::max(kFewestAngles, deck.mesh.nphi / 8 * 4);
  coarse.mesh.snap = false;
  coarse.mesh.nx = (deck.mesh.nx - 1) / 2 + 1;
  try {
    apply_mesh_rule(&coarse, "coarse mesh");
  } catch (const InvalidInput&) {
    coarse.mesh.nx = deck.mesh.nx;  // the gate edges need every node
  }
  coarse.run.coarse_start = false;
  // A start need not be steadier than the difference between the two meshes.
  coarse.run.steady_tol = std::max(deck.run.steady_tol, kStartTolerance);
  coarse.run.steady_floor_a_per_m = std::max(deck.run.steady_floor_a_per_m, kStartFloor_a_m);
  coarse.run.t_end_fs = std::min(deck.run.t_end_fs, kStartEnd_fs);
  return coarse;
}

PointState refine_state(const TransportProblem& coarse, const PointState& from, double coarse_scale,
                        const TransportProblem& fine, double fine_scale) {
  const Structure &c = coarse.structure, &f = fine.structure;
  const double ratio = coarse_scale / fine_scale;
  PointState state;
  state.potential_v.resize(static_cast<std::size_t>(f.nx) * f.nz);
  for (int i = 0; i < f.nx; ++i)
    for (int j = 0; j < f.nz; ++j) {
      const GridPosition x = position_on_grid(f.x_nm[i] / c.dx_nm, c.nx),
                         z = position_on_grid(f.z_nm[j] / c.dz_nm, c.nz);
      const auto v = [&](int a, int b) {
        return from.potential_v[static_cast<std::size_t>(a) * c.nz + b];
      };
      state.potential_v[static_cast<std::size_t>(i) * f.nz + j] =
          (1.0 - x.share) * ((1.0 - z.share) * v(x.at, z.at) + z.share * v(x.at, z.at + 1)) +
          x.share * ((1.0 - z.share) * v(x.at + 1, z.at) + z.share * v(x.at + 1, z.at + 1));
    }
  Subbands levels = solve_subbands(f, state.potential_v);
  state.energy_ev = std::move(levels.energy_ev);
  state.psi = std::move(levels.psi);

  state.pdf.resize(static_cast<std::size_t>(fine.pdf_size()));
  const auto row_of = [&](int cell, int i, int l) {
    return &from.pdf[((static_cast<std::size_t>(cell) * c.nx + i) * coarse.nw + l) * coarse.angles];
  };
  const auto sheet_of = [&](int cell, int i) {
    double sum = 0.0;
    for (int l = 0; l < coarse.nw; ++l)
      for (int m = 0; m < coarse.angles; ++m) sum += coarse.weight[m] * row_of(cell, i, l)[m];
    return sum * coarse.dw_ev * ratio;
  };
#pragma omp parallel for schedule(static)
  for (int task = 0; task < fine.n_states() * f.nx; ++task) {
    const int cell = task / f.nx, i = task % f.nx;
    const GridPosition x = position_on_grid(f.x_nm[i] / c.dx_nm, c.nx);
    double* out = &state.pdf[static_cast<std::size_t>(task) * fine.nw * fine.angles];
    double sum = 0.0;
    for (int l = 0; l < fine.nw; ++l) {
      const GridPosition w = position_on_grid(fine.grid().w(l) / coarse.dw_ev - 0.5, coarse.nw);
      const auto occupied = [&](int at, int m) {  // up to a constant: Φ/(1+2αw)
        return ((1.0 - x.share) * row_of(cell, x.at, at)[m] +
                x.share * row_of(cell, x.at + 1, at)[m]) /
               coarse.grid().kane(at);
      };
      const auto value_at_angle = [&](int m) {
        return log_linear(occupied(w.at, m), occupied(w.at + 1, m), w.share);
      };
      for (int m = 0; m < fine.angles; ++m) {
        // The last interval of a full circle ends at angle 0.
        const double position = m * fine.dphi / coarse.dphi;
        const int low = static_cast<int>(position);
        const double share = position - low;
        double value = value_at_angle(low % coarse.angles);
        if (share > 0.0) value += share * (value_at_angle((low + 1) % coarse.angles) - value);
        value *= fine.grid().kane(l);
        out[static_cast<std::size_t>(l) * fine.angles + m] = value;
        sum += fine.weight[m] * value;
      }
    }
    const double sheet =
        (1.0 - x.share) * sheet_of(cell, x.at) + x.share * sheet_of(cell, x.at + 1);
    const double factor = sum != 0.0 ? sheet / (sum * fine.dw_ev) : 0.0;
    for (std::int64_t k = 0; k < static_cast<std::int64_t>(fine.nw) * fine.angles; ++k)
      out[k] *= factor;
  }
  return state;
}

}  // namespace quasi::mosfet
