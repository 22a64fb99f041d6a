#include "workers/thermal/solver/transport/derivative/kappa_derivative.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/thermal/kernels/three_phonon/derivative/element_gradient_3ph_cpu.hpp"
#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/physics/wigner.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"
#include "workers/thermal/solver/transport/subspace_conductivity.hpp"

namespace quasi::thermal {
namespace {

/// Parts of the sum over rows that are added in their order, whatever the number of threads.
constexpr std::int64_t kParts = 32;

Vec3 vector_of(const std::vector<double>& values, std::int64_t index) {
  const double* x = &values[static_cast<std::size_t>(index * 3)];
  return {x[0], x[1], x[2]};
}

double contraction(const Mat3& a, const Mat3& b) {
  return dot(a[0], b[0]) + dot(a[1], b[1]) + dot(a[2], b[2]);
}

/// ∂κ by the squared matrix element of a process: the factors that depend on its modes alone, and
/// the derivatives of κ by the rates of rows.
class ProcessFactors {
 public:
  ProcessFactors(const DerivativeTerms& terms, KappaSolution solution, const Mat3& part)
      : t_(terms.transport),
        temperature_k_(terms.result.temperature_k),
        scale_(conductivity_scale(t_, temperature_k_)),
        part_(invariant(part)),
        iterated_(solution == KappaSolution::kIterated),
        by_rate_(static_cast<std::size_t>(t_.n_rows()), 0.0),
        by_diagonal_(by_rate_),
        row_weight_(by_rate_) {
    tabulate_occupations();
    add_subspaces(terms.result.rate_per_ps);
    if (iterated_)
      add_solution(terms.result.solution.f);
    else
      add_relaxation(terms.result.rate_per_ps);
    if (!t_.options.harmonic.average_degenerate) return;
    for (std::vector<double>* by_row : {&by_rate_, &by_diagonal_})
      average_over_subspaces(t_.modes, t_.symmetry.irreducible, 1, by_row->data());
  }

  /// Returns ∂κ/∂|V|² of a process. @param process  its weight is that of |V|² = 1
  double operator()(std::int64_t row, const Process3& process) const {
    const std::int64_t mode = t_.mode_of_row(row);
    const CollisionOccupations3 differences{false, n_.data(), s_.data()};
    double factor = by_rate_[row] * collision_term_3ph(differences, mode, process).gamma_per_ps;
    if (!iterated_) return factor;
    const CollisionOccupations3 symmetric{true, n_.data(), s_.data()};
    const CollisionTerm3 term = collision_term_3ph(symmetric, mode, process);
    const Vec3 seen =
        vector_of(field_, process.second) + term.sign * vector_of(field_, process.partner());
    const double in_scattering = row_weight_[row] * dot(vector_of(field_, mode), part_ * seen);
    return factor + (by_diagonal_[row] + in_scattering) * term.gamma_per_ps;
  }

  /// Returns ∂κ/∂w of a rate on the diagonal of the operator, [n_rows].
  std::vector<double> by_further_rate() const {
    std::vector<double> sum = by_rate_;
    for (std::size_t row = 0; row < sum.size(); ++row) sum[row] += by_diagonal_[row];
    return sum;
  }

 private:
  /// The symmetric part of the weights, averaged over the group as κ is.
  Mat3 invariant(const Mat3& part) const {
    const Mat3 reversed = transpose(part);
    Mat3 mean;
    for (int i = 0; i < 3; ++i) mean[i] = 0.5 * (part[i] + reversed[i]);
    return t_.symmetry.folded ? t_.symmetry.symmetrised(mean) : mean;
  }

  void tabulate_occupations() {
    const double per_kelvin = t_.options.constants().hbar_over_kb_k_ps();
    n_.assign(static_cast<std::size_t>(t_.modes.n_modes()), 0.0);
    s_ = n_;
    for (std::int64_t mode = 0; mode < t_.modes.n_modes(); ++mode) {
      if (!t_.modes.active(mode, t_.options.omega_max_rad_ps)) continue;
      n_[mode] = bose_einstein(t_.modes.omega_rad_ps[mode], temperature_k_, per_kelvin);
      s_[mode] = std::sqrt(n_[mode] * (n_[mode] + 1.0));
    }
    for (std::int64_t row = 0; row < t_.n_rows(); ++row)
      if (t_.conducts(row)) row_weight_[row] = row_scale(row) * s_squared(row);
  }
  double row_scale(std::int64_t row) const {
    return scale_ * t_.symmetry.multiplicity[row / t_.modes.n_branches];
  }
  double s_squared(std::int64_t row) const {
    const double s = s_[static_cast<std::size_t>(t_.mode_of_row(row))];
    return s * s;
  }

  /// κ_Δ = c Σ K Δ⊗Δ, where K depends on the sum of the two rates.
  void add_subspaces(const std::vector<double>& rate_per_ps) {
    for (const SubspacePair& pair : t_.modes.subspace_pairs) {
      const std::int64_t mode = t_.mode_of_row(pair.row), other = t_.mode_of_row(pair.other);
      if (!t_.modes.active(mode, t_.options.omega_max_rad_ps) ||
          !t_.modes.active(other, t_.options.omega_max_rad_ps))
        continue;
      const double slope = wigner_pair_slope(
          t_.modes.omega_rad_ps[mode], t_.modes.omega_rad_ps[other], s_squared(pair.row),
          s_squared(pair.other), rate_per_ps[pair.row] + rate_per_ps[pair.other]);
      const double orders = pair.other == pair.row ? 1.0 : 2.0;
      const double term =
          orders * row_scale(pair.row) * slope * contraction(part_, pair.product_km2_s2);
      by_rate_[pair.row] += term;
      by_rate_[pair.other] += term;
    }
  }

  /// κ = c Σ n(n+1) ω² v⊗v/w.
  void add_relaxation(const std::vector<double>& rate_per_ps) {
    for (std::int64_t row = 0; row < t_.n_rows(); ++row) {
      if (!t_.conducts(row) || !(rate_per_ps[row] > 0.0)) continue;
      const std::int64_t mode = t_.mode_of_row(row);
      const Vec3 f = (t_.modes.omega_rad_ps[mode] / rate_per_ps[row]) *
                     vector_of(t_.modes.velocity_km_s, mode);
      by_rate_[row] -= row_weight_[row] * dot(f, part_ * f);
    }
  }

  /// ∂κ = −c Σ n(n+1) F·∂A F, where A F = w F − (in-scattering of F).
  void add_solution(const std::vector<double>& rows) {
    field_ = spread_over_stars(t_, rows);
    for (std::int64_t row = 0; row < t_.n_rows(); ++row) {
      const Vec3 f = vector_of(rows, row);
      by_diagonal_[row] -= row_weight_[row] * dot(f, part_ * f);
    }
  }

  const Transport& t_;
  double temperature_k_;
  double scale_;
  Mat3 part_;
  bool iterated_;
  std::vector<double> by_rate_;      ///< [n_rows] ∂κ/∂w, w with differences of occupations
  std::vector<double> by_diagonal_;  ///< [n_rows] ∂κ/∂w of the symmetric operator
  std::vector<double> row_weight_;   ///< [n_rows] c·mult·n(n+1); 0 where the row does not conduct
  std::vector<double> n_, s_;        ///< [n_modes]
  std::vector<double> field_;        ///< [n_modes][3] F; empty in relaxation-time approximation
};

void check(const DerivativeTerms& terms, KappaSolution solution) {
  const HarmonicOptions& harmonic = terms.transport.options.harmonic;
  if (solution == KappaSolution::kRelaxationTime) return;
  if (!terms.result.converged)
    throw InvalidInput(
        "the derivative of the iterated κ needs its solution: set convergence = "
        ".true., or ask for that of the relaxation-time approximation");
  if (harmonic.compat || !has_symmetric_width(harmonic.broadening))
    throw InvalidInput(
        "the derivative of the iterated κ needs a symmetric operator: set "
        "broadening = symmetric and compat = none");
}

}  // namespace

std::vector<double> kappa_by_rate(const DerivativeTerms& terms, KappaSolution solution,
                                  const Mat3& part) {
  check(terms, solution);
  return ProcessFactors(terms, solution, part).by_further_rate();
}

std::vector<double> kappa_derivative(const DerivativeTerms& terms, KappaSolution solution,
                                     const Mat3& part) {
  check(terms, solution);
  ThreePhononProblem problem = terms.problem;
  problem.precision = Precision::kDouble;
  const ProcessFinder3phCpu finder(problem);
  const ElementGradient3phCpu gradient(problem);
  const ProcessFactors factor(terms, solution, part);
  const std::vector<double>& omega = finder.omega_rad_ps();
  std::vector<std::vector<double>> sums(kParts);
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t first = 0; first < kParts; ++first) {
    std::vector<double>& sum = sums[static_cast<std::size_t>(first)];
    sum.assign(problem.fc3.tensor.size(), 0.0);
    ElementGradient3phCpu::Arrays arrays;
    for (std::int64_t row = first; row < problem.n_rows(); row += kParts) {
      const std::int64_t mode = problem.mode_of_row(row);
      const auto factor_of = [&](const Found3& found) {
        Process3 process = found.process;
        process.weight_per_ps = finder.rules().prefactor * finder.delta_ps(found) /
                                (omega[mode] * omega[process.partner()] * omega[process.second]);
        return factor(row, process);
      };
      gradient.add(finder, mode, factor_of, arrays, sum);
    }
  }
  std::vector<double> total(problem.fc3.tensor.size(), 0.0);
  for (const std::vector<double>& sum : sums)
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += sum[i];
  return total;
}

}  // namespace quasi::thermal
