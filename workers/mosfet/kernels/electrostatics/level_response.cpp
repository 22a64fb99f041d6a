#include "workers/mosfet/kernels/electrostatics/level_response.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workers/mosfet/physics/chord.hpp"
#include "workers/mosfet/physics/tridiagonal.hpp"

namespace quasi::mosfet {
namespace {

// Levels closer than the first gap have a limited quotient in column_response(). At the second one
// rounding spoils the Green's function.
constexpr double kLimitedGap_ev = 1e-3, kSmallestGap_ev = 1e-6;

// Returns true if neither limit matters. `cap` is that of response_quotient().
bool levels_are_apart(const Tridiagonal& t, const std::vector<double>& energy,
                      const std::vector<double>& sheet, double cap) {
  const std::size_t count = energy.size();
  for (std::size_t p = 0; p + 1 < count; ++p) {
    const double gap = energy[p + 1] - energy[p];
    if (!(gap > kSmallestGap_ev) || std::fabs(sheet[p] - sheet[p + 1]) > cap * gap) return false;
  }
  return sturm_count(t, energy.back() + kLimitedGap_ev) <= static_cast<int>(count);
}

/// Green's function of one level, with the room for its elimination.
class LevelGreen {
 public:
  explicit LevelGreen(int n)
      : n_(n), g_(static_cast<std::size_t>(n) * n), diagonal_(n), above_(n), second_(n), sum_(n) {}

  /// Computes Σ_{q ≠ p} φ_qφ_qᵀ/(ε_q − ε) for a state φ with Σφ² = 1 and its level. @return [n][n]
  const double* solve(const Tridiagonal& t, double level_ev, const double* phi) {
    const int removed = static_cast<int>(
        std::max_element(phi, phi + n_,
                         [](double a, double b) { return std::fabs(a) < std::fabs(b); }) -
        phi);
    for (int k = 0; k < n_; ++k) {
      diagonal_[k] = k == removed ? 1.0 : t.diagonal[k] - level_ev;
      above_[k] = k + 1 < n_ && k != removed && k + 1 != removed ? t.off[k] : 0.0;
      second_[k] = 0.0;
      for (int j = 0; j < n_; ++j)
        row(k)[j] = k == removed ? 0.0 : (k == j ? 1.0 : 0.0) - phi[k] * phi[j];
    }
    eliminate(t, removed);
    project(phi);
    return g_.data();
  }

 private:
  double* row(int k) { return &g_[static_cast<std::size_t>(k) * n_]; }

  // Gaussian elimination with row exchanges. Pivots of T − ε vanish where ψ of an antisymmetric
  // state has its node.
  void eliminate(const Tridiagonal& t, int removed) {
    for (int k = 0; k + 1 < n_; ++k) {
      double below = k != removed && k + 1 != removed ? t.off[k] : 0.0;
      if (below == 0.0) continue;
      if (std::fabs(below) > std::fabs(diagonal_[k])) {
        std::swap(below, diagonal_[k]);
        std::swap(above_[k], diagonal_[k + 1]);
        std::swap(second_[k], above_[k + 1]);
        std::swap_ranges(row(k), row(k) + n_, row(k + 1));
      }
      const double factor = below / diagonal_[k];
      diagonal_[k + 1] -= factor * above_[k];
      above_[k + 1] -= factor * second_[k];
      const double* from = row(k);
      double* to = row(k + 1);
      for (int j = 0; j < n_; ++j) to[j] -= factor * from[j];
    }
    for (int k = n_ - 1; k >= 0; --k) {
      double* here = row(k);
      const double inverse = 1.0 / guarded_pivot(diagonal_[k], t.scale_ev);
      const double next = k + 1 < n_ ? above_[k] : 0.0, far = k + 2 < n_ ? second_[k] : 0.0;
      const double *after = next != 0.0 ? row(k + 1) : here, *last = far != 0.0 ? row(k + 2) : here;
      for (int j = 0; j < n_; ++j) here[j] = inverse * (here[j] - next * after[j] - far * last[j]);
    }
  }

  // Takes φ out of every column.
  void project(const double* phi) {
    std::fill(sum_.begin(), sum_.end(), 0.0);
    for (int k = 0; k < n_; ++k)
      for (int j = 0; j < n_; ++j) sum_[j] += phi[k] * row(k)[j];
    for (int k = 0; k < n_; ++k)
      for (int j = 0; j < n_; ++j) row(k)[j] -= phi[k] * sum_[j];
  }

  int n_;
  std::vector<double> g_, diagonal_, above_, second_, sum_;
};

// Adds the sums of one quantity [n_valleys][subbands] over the valleys of a family.
std::vector<double> of_family(const Structure& s, int family, const double* values) {
  std::vector<double> sum(static_cast<std::size_t>(s.subbands), 0.0);
  for (int v = 0; v < s.n_valleys(); ++v)
    for (int p = 0; p < s.subbands && s.family_of[static_cast<std::size_t>(v)] == family; ++p)
      sum[static_cast<std::size_t>(p)] += values[v * s.subbands + p];
  return sum;
}

}  // namespace

bool level_response(const Structure& s, const double* potential_v, const ColumnLevels& levels,
                    const double* sheet_nm2, const double* diagonal_nm2_ev, double* response) {
  const int n = s.interior();
  const double cap =
      response_cap(*std::max_element(sheet_nm2, sheet_nm2 + s.n_valleys() * s.subbands));
  std::vector<double> diagonal(static_cast<std::size_t>(n)), phi(diagonal.size());
  LevelGreen green(n);
  std::fill(response, response + static_cast<std::size_t>(s.nz) * s.nz, 0.0);
  for (int family = 0; family < s.n_families(); ++family) {
    const Structure::Family& f = s.families[static_cast<std::size_t>(family)];
    for (int k = 0; k < n; ++k) diagonal[k] = f.base_ev[k] - potential_v[k + 1];
    const Tridiagonal t{diagonal.data(), f.off_ev.data(), n,
                        gershgorin_bound(diagonal.data(), f.off_ev.data(), n)};
    const std::vector<double> sheet = of_family(s, family, sheet_nm2),
                              slope = of_family(s, family, diagonal_nm2_ev);
    const std::vector<double>& energy = levels.energies[static_cast<std::size_t>(family)];
    if (!levels_are_apart(t, energy, sheet, cap)) return false;
    for (int p = 0; p < s.subbands; ++p) {
      if (sheet[p] == 0.0 && slope[p] == 0.0) continue;
      const double* psi = levels.psi[static_cast<std::size_t>(family)][static_cast<std::size_t>(p)];
      for (int k = 0; k < n; ++k) phi[k] = psi[k] * std::sqrt(s.dz_nm);
      const double* g = green.solve(t, energy[p], phi.data());
      const double others = 4.0 * sheet[p] / (s.dz_nm * s.dz_nm),
                   own = 2.0 * slope[p] / (s.dz_nm * s.dz_nm);
      for (int j = 0; j < n; ++j) {
        double* to = response + static_cast<std::size_t>(j + 1) * s.nz + 1;
        for (int k = 0; k < n; ++k) {
          const double product = phi[j] * phi[k];
          to[k] += product * (others * g[static_cast<std::size_t>(j) * n + k] + own * product);
        }
      }
    }
  }
  // Elimination from one side leaves rounding that is not symmetric.
  for (int j = 1; j < s.nz - 1; ++j)
    for (int k = 1; k < j; ++k) response[j * s.nz + k] = response[k * s.nz + j];
  return true;
}

}  // namespace quasi::mosfet
