#include "workers/gw/solver/self_energy/dyson.hpp"

#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/interpolation.hpp"

namespace quasi::gw {

HermitianEigen hermitian_eigen(const std::vector<Cplx>& matrix, std::int64_t n) {
  // LAPACK's column-major view of the conjugate is the matrix itself; its columns are our rows.
  HermitianEigen eigen{.values = std::vector<double>(static_cast<std::size_t>(n)),
                       .vectors = matrix};
  for (Cplx& value : eigen.vectors) value = std::conj(value);
  if (LAPACKE_zheevd(LAPACK_COL_MAJOR, 'V', 'L', static_cast<lapack_int>(n),
                     reinterpret_cast<lapack_complex_double*>(eigen.vectors.data()),
                     static_cast<lapack_int>(n), eigen.values.data()) != 0)
    throw NotConverged("LAPACK did not diagonalise the quasiparticle Hamiltonian of " +
                       std::to_string(n) +
                       " outer states; check V_xc and sigma.band_min … band_max");
  return eigen;
}

namespace {

/// H(E) of one k and spin: its constant terms, eV, and Σ_c on a grid of energies.
class DysonProblem {
 public:
  DysonProblem(const MeanField& field, const SigmaMatrixAtK& matrix,
               const std::vector<Cplx>& vxc_ev, int first_band)
      : matrix_(matrix), n_(static_cast<std::size_t>(matrix.n)), fixed_ev_(n_ * n_) {
    for (std::size_t i = 0; i < n_ * n_; ++i)
      fixed_ev_[i] = kRydberg_ev * matrix.x_ry[i] - vxc_ev[i];
    for (std::size_t l = 0; l < n_; ++l)
      fixed_ev_[l * n_ + l] +=
          kRydberg_ev *
          field.reference_energy(matrix.spin, matrix.k_index, first_band + static_cast<int>(l));
    for (const double e : matrix.energy_ry) grid_ev_.push_back(e * kRydberg_ev);
  }
  const std::vector<double>& grid_ev() const { return grid_ev_; }

  HermitianEigen at(double energy_ev) const {
    std::vector<Cplx> h = fixed_ev_;
    const CubicWeights w = cubic_weights(grid_ev_, energy_ev);
    add_hermitian(w.first, w.count, w.value, h);
    return hermitian_eigen(h, matrix_.n);
  }
  /// c† (dΣ/dE) c of branch i.
  double slope(double energy_ev, const HermitianEigen& eigen, std::size_t i) const {
    const CubicWeights w = cubic_weights(grid_ev_, energy_ev);
    std::vector<Cplx> d(n_ * n_);
    add_hermitian(w.first, w.count, w.slope, d);
    Cplx sum;
    for (std::size_t l = 0; l < n_; ++l)
      for (std::size_t m = 0; m < n_; ++m)
        sum += std::conj(eigen.vectors[i * n_ + l]) * d[l * n_ + m] * eigen.vectors[i * n_ + m];
    return sum.real();
  }

 private:
  void add_hermitian(std::size_t first, std::size_t count, const double* weight,
                     std::vector<Cplx>& to) const {
    for (std::size_t j = 0; j < count; ++j) {
      const Cplx* sigma = matrix_.at(first + j);
      for (std::size_t l = 0; l < n_; ++l)
        for (std::size_t m = 0; m < n_; ++m)
          to[l * n_ + m] +=
              0.5 * kRydberg_ev * weight[j] * (sigma[l * n_ + m] + std::conj(sigma[m * n_ + l]));
    }
  }
  const SigmaMatrixAtK& matrix_;
  std::size_t n_;
  std::vector<Cplx> fixed_ev_;
  std::vector<double> grid_ev_;
};

struct BranchRoot {
  Root root;
  HermitianEigen eigen;
};

/// E = λ_i(E) between two energies where λ_i(E) − E changes its sign.
BranchRoot refined(const DysonProblem& problem, std::size_t i, double low, double high) {
  bool low_above = problem.at(low).values[i] > low;
  for (int halving = 0; halving < 45; ++halving) {
    const double middle = 0.5 * (low + high);
    ((problem.at(middle).values[i] > middle) == low_above ? low : high) = middle;
  }
  const double energy = 0.5 * (low + high);
  BranchRoot found{.root = {.energy_ev = energy, .z = 1.0}, .eigen = problem.at(energy)};
  found.root.z = 1.0 / (1.0 - problem.slope(energy, found.eigen, i));
  return found;
}

}  // namespace

std::vector<DysonState> solve_dyson(const MeanField& field,
                                    const std::vector<SigmaMatrixAtK>& matrices,
                                    const std::vector<std::vector<Cplx>>& vxc_ev,
                                    const SigmaOptions& options) {
  std::vector<DysonState> list;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const SigmaMatrixAtK& matrix = matrices[i];
    const int first_band = options.band_min - 1;
    const DysonProblem problem(field, matrix, vxc_ev[i], first_band);
    const auto& grid = problem.grid_ev();
    std::vector<HermitianEigen> at_grid;
    for (const double e : grid) at_grid.push_back(problem.at(e));
    for (const auto& [begin, end] :
         multiplets(field.waves, matrix.spin, matrix.k_index, first_band, options.band_max))
      for (int band = begin; band < end; ++band) {
        const auto branch = static_cast<std::size_t>(band - first_band);
        DysonState state{.k = field.waves.k[static_cast<std::size_t>(matrix.k_index)],
                         .k_index = matrix.k_index,
                         .spin = matrix.spin + 1,
                         .band = band + 1};
        std::optional<BranchRoot> best;
        int roots = 0;
        if (grid.size() == 1) {
          best = {{.energy_ev = at_grid[0].values[branch], .z = 1.0}, at_grid[0]};
          roots = 1;
        }
        for (std::size_t e = 0; e + 1 < grid.size(); ++e) {
          if ((at_grid[e].values[branch] > grid[e]) ==
              (at_grid[e + 1].values[branch] > grid[e + 1]))
            continue;
          BranchRoot found = refined(problem, branch, grid[e], grid[e + 1]);
          ++roots;
          if (found.root.z > 0.0 && found.root.z <= 1.0 && (!best || found.root.z > best->root.z))
            best = std::move(found);
        }
        state.status = roots > 1    ? RootStatus::kMultiple
                       : roots == 1 ? RootStatus::kUnique
                                    : RootStatus::kNone;
        if (best) {
          state.energy_ev = best->root.energy_ev;
          state.z = best->root.z;
          state.own_weight = 0.0;
          for (int n = begin; n < end; ++n)
            state.own_weight +=
                std::norm(best->eigen.vectors[branch * static_cast<std::size_t>(matrix.n) +
                                              static_cast<std::size_t>(n - first_band)]);
        }
        list.push_back(state);
      }
  }
  return list;
}

std::vector<Cplx> quasiparticle_potential(const SigmaMatrixAtK& matrix,
                                          const std::vector<double>& outer_ry) {
  const auto n = static_cast<std::size_t>(matrix.n);
  std::vector<Cplx> potential = matrix.x_ry;
  for (std::size_t l = 0; l < n; ++l) {
    // Row l of the Hermitian part at E_l, added to row and column l by halves.
    CubicWeights w = cubic_weights(matrix.energy_ry, outer_ry[l]);
    const auto same = std::find(matrix.energy_ry.begin(), matrix.energy_ry.end(), outer_ry[l]);
    if (same != matrix.energy_ry.end()) {
      w = {};
      w.first = static_cast<std::size_t>(same - matrix.energy_ry.begin());
      w.count = 1;
      w.value[0] = 1.0;
    }
    for (std::size_t j = 0; j < w.count; ++j) {
      const Cplx* sigma = matrix.at(w.first + j);
      for (std::size_t m = 0; m < n; ++m) {
        const Cplx value = 0.25 * w.value[j] * (sigma[l * n + m] + std::conj(sigma[m * n + l]));
        potential[l * n + m] += value;
        potential[m * n + l] += std::conj(value);
      }
    }
  }
  return potential;
}

}  // namespace quasi::gw
