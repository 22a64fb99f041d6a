#include "workers/thermal/solver/transport/iterative_bte.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>

#include "workers/backend/error.hpp"
#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"

namespace quasi::thermal {
namespace {

constexpr int kGmresRestart = 40;

/// The linear problem of the solvers (docs/theory/thermal.md 8). It has two spaces of fields:
/// - Fields on rows (irreducible points) are the default. They are symmetric under each point's
///   full co-group and equal within degenerate subspaces.
/// - Fields on the whole mesh serve `compat`. FourPhonon's σ breaks the symmetry, so its F differs
///   over a star. A point gq gets the processes of its representative, with every point replaced by
///   its image under g. F is projected by the operations that fix the point without adding a
///   reciprocal vector, which differ over a star too.
class BteProblem {
 public:
  BteProblem(const Transport& transport, double temperature_k, const CollisionOperator& collision)
      : t_(transport),
        temperature_k_(temperature_k),
        collision_(collision),
        whole_mesh_(transport.options.harmonic.compat) {
    const int nb = t_.modes.n_branches;
    if (whole_mesh_)
      for (std::int64_t q = 0; q < t_.modes.n_q; ++q)
        point_.push_back(static_cast<std::int32_t>(q));
    else
      point_ = t_.symmetry.irreducible;
    const std::size_t size = point_.size() * static_cast<std::size_t>(nb);
    weight_.assign(size, 0.0);
    diagonal_.assign(size, 0.0);
    source_.assign(size * 3, 0.0);
    for (std::size_t i = 0; i < point_.size(); ++i) {
      projector_.push_back(t_.symmetry.vector_projector(point_[i], t_.options.harmonic.compat));
      const std::int64_t star = t_.symmetry.star_of[point_[i]];
      for (int s = 0; s < nb; ++s) {
        const std::int64_t row = star * nb + s;
        const std::size_t at = i * static_cast<std::size_t>(nb) + static_cast<std::size_t>(s);
        if (!t_.conducts(row) || !(collision_.diagonal_per_ps[row] > 0.0)) continue;
        const std::int64_t mode = static_cast<std::int64_t>(point_[i]) * nb + s;
        const double omega = t_.modes.omega_rad_ps[mode];
        const double n =
            bose_einstein(omega, temperature_k_, t_.options.constants().hbar_over_kb_k_ps());
        weight_[at] = (whole_mesh_ ? 1 : t_.symmetry.multiplicity[star]) * n * (n + 1.0);
        diagonal_[at] = collision_.diagonal_per_ps[row];
        for (int d = 0; d < 3; ++d)
          source_[at * 3 + d] = omega * t_.modes.velocity_km_s[mode * 3 + d];
      }
    }
    project(source_);
  }

  const std::vector<double>& source() const { return source_; }
  double temperature_k() const { return temperature_k_; }

  /// Returns A F on the modes that conduct, and zero elsewhere.
  std::vector<double> apply(const std::vector<double>& f) const {
    std::vector<double> result = whole_mesh_ ? in_scattering_by_images(f)
                                             : collision_.in_scattering(spread_over_stars(t_, f));
    for (std::size_t i = 0; i < weight_.size(); ++i)
      for (std::size_t at = 3 * i; at < 3 * i + 3; ++at)
        result[at] = weight_[i] > 0.0 ? diagonal_[i] * f[at] - result[at] : 0.0;
    project(result);
    return result;
  }
  std::vector<double> divide_by_diagonal(const std::vector<double>& x) const {
    std::vector<double> result(x.size(), 0.0);
    for (std::size_t i = 0; i < weight_.size(); ++i)
      if (weight_[i] > 0.0)
        for (std::size_t at = 3 * i; at < 3 * i + 3; ++at) result[at] = x[at] / diagonal_[i];
    return result;
  }
  /// Returns Σ mult n(n+1) x·y, the inner product in which the symmetric operator is symmetric.
  double inner(const std::vector<double>& x, const std::vector<double>& y) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < weight_.size(); ++i)
      sum += weight_[i] *
             (x[3 * i] * y[3 * i] + x[3 * i + 1] * y[3 * i + 1] + x[3 * i + 2] * y[3 * i + 2]);
    return sum;
  }
  /// Returns the field on rows: the mean over each star, rotated to the representative.
  std::vector<double> rows(const std::vector<double>& f) const {
    if (!whole_mesh_) return f;
    const int nb = t_.modes.n_branches;
    std::vector<double> mean(static_cast<std::size_t>(t_.n_rows() * 3), 0.0);
    for (std::int64_t q = 0; q < t_.modes.n_q; ++q) {
      const std::int64_t star = t_.symmetry.star_of[q];
      const Mat3 back = transpose(rotation_to(q));
      for (int s = 0; s < nb; ++s) {
        const double* from = &f[static_cast<std::size_t>((q * nb + s) * 3)];
        const Vec3 x = back * Vec3{from[0], from[1], from[2]};
        for (int d = 0; d < 3; ++d)
          mean[static_cast<std::size_t>((star * nb + s) * 3 + d)] +=
              x[d] / t_.symmetry.multiplicity[star];
      }
    }
    return mean;
  }
  Mat3 kappa(const std::vector<double>& f) const {
    return total(mode_conductivity(t_, temperature_k_, rows(f)));
  }

 private:
  const Mat3& rotation_to(std::int64_t q) const {
    return t_.symmetry.operations[static_cast<std::size_t>(t_.symmetry.operation_to[q])].cartesian;
  }

  /// Computes in-scattering on the whole mesh. For every operation g, the rows get the field at the
  /// images.
  std::vector<double> in_scattering_by_images(const std::vector<double>& f) const {
    const int nb = t_.modes.n_branches;
    std::vector<std::vector<std::int32_t>> reached(t_.symmetry.operations.size());
    for (std::int64_t q = 0; q < t_.modes.n_q; ++q)
      reached[static_cast<std::size_t>(t_.symmetry.operation_to[q])].push_back(
          static_cast<std::int32_t>(q));
    std::vector<double> result(f.size(), 0.0);
    std::vector<double> seen(f.size());
    for (std::size_t op = 0; op < reached.size(); ++op) {
      if (reached[op].empty()) continue;
      for (std::int64_t q = 0; q < t_.modes.n_q; ++q) {
        const std::int64_t image = t_.symmetry.image(q, static_cast<std::int64_t>(op));
        std::copy_n(&f[static_cast<std::size_t>(image * nb * 3)], nb * 3,
                    &seen[static_cast<std::size_t>(q * nb * 3)]);
      }
      const std::vector<double> out = collision_.in_scattering(seen);
      for (const std::int32_t q : reached[op])
        std::copy_n(&out[static_cast<std::size_t>(t_.symmetry.star_of[q]) * nb * 3], nb * 3,
                    &result[static_cast<std::size_t>(q) * nb * 3]);
    }
    return result;
  }

  void project(std::vector<double>& f) const {
    const auto nb = static_cast<std::size_t>(t_.modes.n_branches);
    for (std::size_t i = 0; i < point_.size() * nb; ++i) {
      const Vec3 x = projector_[i / nb] * Vec3{f[3 * i], f[3 * i + 1], f[3 * i + 2]};
      std::copy(x.begin(), x.end(), f.begin() + static_cast<std::ptrdiff_t>(3 * i));
    }
    if (t_.options.harmonic.average_degenerate)
      average_over_subspaces(t_.modes, point_, 3, f.data());
  }

  const Transport& t_;
  double temperature_k_;
  const CollisionOperator& collision_;
  bool whole_mesh_;
  std::vector<std::int32_t> point_;  ///< point of every nb values
  std::vector<Mat3> projector_;
  std::vector<double> weight_;
  std::vector<double> diagonal_;
  std::vector<double> source_;
};

std::vector<double> plus(std::vector<double> x, double factor, const std::vector<double>& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += factor * y[i];
  return x;
}

void not_finite(double value, double temperature_k) {
  if (!std::isfinite(value))
    throw NotConverged("the collision operator at " + std::to_string(temperature_k) +
                       " K gave a number that is not finite; check the numbers and the units of "
                       "the force constants");
}

[[noreturn]] void give_up(const char* method, int iterations, double residual, double tolerance,
                          double temperature_k) {
  std::ostringstream out;
  out << method << " at " << temperature_k << " K did not converge: after " << iterations
      << " iterations the residual is " << residual << ", eps = " << tolerance
      << "; raise 'maxiter' or choose another 'solver'";
  throw NotConverged(out.str());
}

/// Returns the largest singular value of a 3×3 matrix, from the eigenvalues of AᵀA.
double spectral_norm(const Mat3& a) {
  const Mat3 m = transpose(a) * a;
  const double p1 = m[0][1] * m[0][1] + m[0][2] * m[0][2] + m[1][2] * m[1][2];
  const double mean = (m[0][0] + m[1][1] + m[2][2]) / 3.0;
  const double p2 = (m[0][0] - mean) * (m[0][0] - mean) + (m[1][1] - mean) * (m[1][1] - mean) +
                    (m[2][2] - mean) * (m[2][2] - mean) + 2.0 * p1;
  if (p2 <= 0.0) return std::sqrt(std::max(mean, 0.0));
  const double p = std::sqrt(p2 / 6.0);
  Mat3 b = m;
  for (int i = 0; i < 3; ++i) b[i][i] -= mean;
  const double r = std::clamp(determinant(b) / (2.0 * p * p * p), -1.0, 1.0);
  return std::sqrt(std::max(mean + 2.0 * p * std::cos(std::acos(r) / 3.0), 0.0));
}

double relative_change(const Mat3& now, const Mat3& before) {
  Mat3 difference = now;
  for (int i = 0; i < 3; ++i) difference[i] = difference[i] - before[i];
  const double scale = spectral_norm(before);
  return scale > 0.0 ? spectral_norm(difference) / scale : 0.0;
}

/// Reports how far an iteration has come on the way of its residual from 1 to the tolerance, on a
/// logarithmic scale. @param largest  largest share so far, in thousandths
void report_residual(double residual, const IterationOptions& options, Progress& progress,
                     std::int64_t* largest) {
  constexpr double kWhole = 1000.0;
  const double way = std::log(std::max(residual, 1e-300)) / std::log(options.convergence_tolerance);
  if (options.convergence_tolerance < 1.0)
    *largest = std::max(*largest, static_cast<std::int64_t>(kWhole * std::clamp(way, 0.0, 1.0)));
  progress.metric("residual", residual);
  progress.report("iterate", *largest, static_cast<std::int64_t>(kWhole));
}

/// Preconditioned conjugate gradients [hestenes1952, fugallo2013]; the residual is √(⟨r, r/w⟩/⟨b,
/// b/w⟩). It starts at F = 0, and its first direction is the relaxation-time field. Every F is then
/// the best of its Krylov space, and ⟨b, F⟩ = 2⟨b, F⟩ − ⟨F, AF⟩ is the variational functional. The
/// error of κ is the square of the residual, from below.
IterativeSolution conjugate_gradients(const BteProblem& problem, const IterationOptions& options,
                                      Progress& progress) {
  IterativeSolution result;
  const std::vector<double>& b = problem.source();
  std::vector<double> z = problem.divide_by_diagonal(b);
  result.kappa_history_w_per_mk.push_back(problem.kappa(z));
  result.f.assign(b.size(), 0.0);
  std::vector<double> r = b;
  std::vector<double> p = z;
  double rz = problem.inner(r, z);
  const double scale = problem.inner(b, problem.divide_by_diagonal(b));
  if (!(scale > 0.0)) return result;  // no mode conducts
  result.residual = std::sqrt(std::max(rz, 0.0) / scale);
  std::int64_t largest = 0;
  while (result.residual > options.convergence_tolerance) {
    if (result.iterations >= options.max_iterations)
      give_up("conjugate gradients", result.iterations, result.residual,
              options.convergence_tolerance, problem.temperature_k());
    const std::vector<double> ap = problem.apply(p);
    const double curvature = problem.inner(p, ap);
    not_finite(curvature, problem.temperature_k());
    if (!(curvature > 0.0))
      throw NotConverged(
          "the collision operator at " + std::to_string(problem.temperature_k()) +
          " K is not positive definite: the mesh 'ngrid' is too coarse for its widths, or force "
          "constants are not symmetric under permutation (see validate); use a finer 'ngrid', else "
          "solver = gmres");
    const double alpha = rz / curvature;
    result.f = plus(std::move(result.f), alpha, p);
    r = plus(std::move(r), -alpha, ap);
    z = problem.divide_by_diagonal(r);
    const double rz_next = problem.inner(r, z);
    p = plus(z, rz_next / rz, p);
    rz = rz_next;
    ++result.iterations;
    result.residual = std::sqrt(std::max(rz, 0.0) / scale);
    result.kappa_history_w_per_mk.push_back(problem.kappa(result.f));
    report_residual(result.residual, options, progress, &largest);
  }
  return result;
}

/// Restarted GMRES [saad1986] on (A/w) F = ωv/w, in the inner product Σ mult n(n+1) F·G.
IterativeSolution gmres(const BteProblem& problem, const IterationOptions& options,
                        Progress& progress) {
  IterativeSolution result;
  const std::vector<double> b = problem.divide_by_diagonal(problem.source());
  result.f = b;
  result.kappa_history_w_per_mk.push_back(problem.kappa(result.f));
  const double scale = std::sqrt(problem.inner(b, b));
  if (!(scale > 0.0)) return result;
  std::int64_t largest = 0;
  for (;;) {
    std::vector<double> r = plus(b, -1.0, problem.divide_by_diagonal(problem.apply(result.f)));
    double norm = std::sqrt(problem.inner(r, r));
    not_finite(norm, problem.temperature_k());
    result.residual = norm / scale;
    if (result.residual <= options.convergence_tolerance) return result;
    if (result.iterations >= options.max_iterations)
      give_up("GMRES", result.iterations, result.residual, options.convergence_tolerance,
              problem.temperature_k());
    for (double& x : r) x /= norm;
    std::vector<std::vector<double>> basis{r};
    std::vector<std::vector<double>> h;  // columns of the triangular factor
    std::vector<double> g{norm};
    std::vector<std::pair<double, double>> rotations;
    for (int k = 0; k < kGmresRestart && result.iterations < options.max_iterations; ++k) {
      std::vector<double> w = problem.divide_by_diagonal(problem.apply(basis.back()));
      std::vector<double> column;
      for (const auto& v : basis) {
        column.push_back(problem.inner(w, v));
        w = plus(std::move(w), -column.back(), v);
      }
      const double next = std::sqrt(problem.inner(w, w));
      not_finite(next, problem.temperature_k());
      for (std::size_t i = 0; i < rotations.size(); ++i) {
        const auto [c, s] = rotations[i];
        const double x = column[i];
        column[i] = c * x + s * column[i + 1];
        column[i + 1] = -s * x + c * column[i + 1];
      }
      const double radius = std::hypot(column.back(), next);
      rotations.emplace_back(column.back() / radius, next / radius);
      column.back() = radius;
      g.push_back(-rotations.back().second * g.back());
      g[g.size() - 2] *= rotations.back().first;
      h.push_back(std::move(column));
      ++result.iterations;
      result.residual = std::fabs(g.back()) / scale;
      report_residual(result.residual, options, progress, &largest);
      if (result.residual <= 0.5 * options.convergence_tolerance || next == 0.0) break;
      for (double& x : w) x /= next;
      basis.push_back(std::move(w));
    }
    std::vector<double> y(h.size());
    for (std::size_t i = h.size(); i-- > 0;) {
      y[i] = g[i];
      for (std::size_t j = i + 1; j < h.size(); ++j) y[i] -= h[j][i] * y[j];
      y[i] /= h[i][i];
    }
    for (std::size_t i = 0; i < y.size(); ++i) result.f = plus(std::move(result.f), y[i], basis[i]);
    result.kappa_history_w_per_mk.push_back(problem.kappa(result.f));
  }
}

/// Iterates F ← (ω v + in-scattering)/w until κ changes by less than eps, as ShengBTE and
/// FourPhonon do [omini1995, li2014].
IterativeSolution fixed_point(const BteProblem& problem, const IterationOptions& options,
                              Progress& progress) {
  IterativeSolution result;
  const std::vector<double>& b = problem.source();
  result.f = problem.divide_by_diagonal(b);
  Mat3 before = problem.kappa(result.f);
  result.kappa_history_w_per_mk.push_back(before);
  std::int64_t largest = 0;
  for (;;) {
    if (result.iterations >= options.max_iterations)
      give_up("the fixed-point iteration", result.iterations, result.residual,
              options.convergence_tolerance, problem.temperature_k());
    result.f = plus(std::move(result.f), 1.0,
                    problem.divide_by_diagonal(plus(b, -1.0, problem.apply(result.f))));
    const Mat3 now = problem.kappa(result.f);
    ++result.iterations;
    result.residual = relative_change(now, before);
    not_finite(result.residual, problem.temperature_k());
    result.kappa_history_w_per_mk.push_back(now);
    report_residual(result.residual, options, progress, &largest);
    before = now;
    if (result.residual < options.convergence_tolerance) return result;
  }
}

}  // namespace

std::vector<double> spread_over_stars(const Transport& t, const std::vector<double>& rows) {
  const int nb = t.modes.n_branches;
  std::vector<double> field(static_cast<std::size_t>(t.modes.n_modes() * 3));
#pragma omp parallel for schedule(static)
  for (std::int64_t q = 0; q < t.modes.n_q; ++q) {
    const Mat3& rotation =
        t.symmetry.operations[static_cast<std::size_t>(t.symmetry.operation_to[q])].cartesian;
    const double* from = &rows[static_cast<std::size_t>(t.symmetry.star_of[q]) * nb * 3];
    for (int s = 0; s < nb; ++s) {
      const Vec3 f = rotation * Vec3{from[s * 3], from[s * 3 + 1], from[s * 3 + 2]};
      std::copy(f.begin(), f.end(), &field[static_cast<std::size_t>((q * nb + s) * 3)]);
    }
  }
  return field;
}

IterativeSolution solve_bte(const Transport& transport, double temperature_k,
                            const CollisionOperator& collision, Progress& progress) {
  const BteProblem problem(transport, temperature_k, collision);
  const auto iterate = [&] {
    switch (transport.options.iteration.solver) {
      case Solver::kConjugateGradients:
        if (!collision.symmetric)
          throw InvalidInput(
              "solver = cg needs a symmetric collision operator; use solver = gmres");
        return conjugate_gradients(problem, transport.options.iteration, progress);
      case Solver::kGmres:
        return gmres(problem, transport.options.iteration, progress);
      case Solver::kFixedPoint:
        return fixed_point(problem, transport.options.iteration, progress);
    }
    throw InvalidInput("unknown solver");
  };
  IterativeSolution solution = iterate();
  solution.f = problem.rows(solution.f);
  return solution;
}

}  // namespace quasi::thermal
