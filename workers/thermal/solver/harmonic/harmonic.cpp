#include "workers/thermal/solver/harmonic/harmonic.hpp"

#include <cblas.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <numeric>
#include <sstream>

#include "workers/backend/error.hpp"
#include "workers/thermal/solver/harmonic/canonical_vectors.hpp"
#include "workers/thermal/solver/harmonic/reduced_lattice.hpp"

namespace quasi::thermal {
namespace {

using Complex64 = std::complex<double>;

constexpr double kRawGammaWarning_rad_ps = 0.5;
constexpr double kStarWarning = 1e-5;  // share of the largest ω
constexpr double kStarError = 3e-3;

std::string number_text(double value) {
  std::ostringstream out;
  out.precision(4);
  out << value;
  return out.str();
}

/// Finds the first branch of the degenerate set of every branch. Neighbours closer than the
/// tolerance belong to one set.
void find_subspaces(const double* omega, int nb, double tolerance, std::int32_t* subspace) {
  subspace[0] = 0;
  for (int s = 1; s < nb; ++s)
    subspace[s] = omega[s] - omega[s - 1] < tolerance ? subspace[s - 1] : s;
}

void average_velocities(int nb, const std::int32_t* subspace, double* velocity) {
  for (int first = 0; first < nb;) {
    int last = first + 1;
    while (last < nb && subspace[last] == first) ++last;
    for (int g = 0; g < 3; ++g) {
      double sum = 0.0;
      for (int s = first; s < last; ++s) sum += velocity[s * 3 + g];
      for (int s = first; s < last; ++s) velocity[s * 3 + g] = sum / (last - first);
    }
    first = last;
  }
}

Vec3 fractional_of(const QMesh& mesh, std::int64_t point) {
  int c[3];
  mesh.coordinates(point, c);
  return {static_cast<double>(c[0]) / mesh.n[0], static_cast<double>(c[1]) / mesh.n[1],
          static_cast<double>(c[2]) / mesh.n[2]};
}

/// Notes imaginary modes, and refuses them unless the options allow them.
void check_imaginary(const Symmetry& symmetry, const HarmonicOptions& options, Modes& modes) {
  std::int64_t worst_mode = 0;
  std::int64_t n_imaginary = 0;
  for (std::int64_t mode = 0; mode < modes.n_modes(); ++mode) {
    if (modes.omega_rad_ps[mode] >= 0.0) continue;
    ++n_imaginary;
    if (modes.omega_rad_ps[mode] < modes.most_negative_omega_rad_ps) {
      modes.most_negative_omega_rad_ps = modes.omega_rad_ps[mode];
      worst_mode = mode;
    }
  }
  if (n_imaginary == 0) return;
  const Vec3 q = fractional_of(symmetry.mesh, worst_mode / modes.n_branches);
  const std::string found =
      std::to_string(n_imaginary) + " of " + std::to_string(modes.n_modes()) +
      " modes are imaginary, the worst with ω = " + number_text(modes.most_negative_omega_rad_ps) +
      "i rad/ps at q = (" + number_text(q[0]) + ", " + number_text(q[1]) + ", " +
      number_text(q[2]) + ")";
  if (!options.allow_imaginary)
    throw InvalidInput(
        "harmonic modes: " + found +
        "; the structure is not stable with these constants. Relax it, check the supercell "
        "and 'scell', or set allow_imaginary = .true. to leave these modes out");
  modes.warnings.push_back(found + "; they take no part in scattering or in κ");
}

/// Compares frequencies over each star, which the space group makes equal.
void check_stars(const Symmetry& symmetry, const HarmonicOptions& options, Modes& modes) {
  const double largest = *std::max_element(modes.omega_rad_ps.begin(), modes.omega_rad_ps.end());
  for (std::int64_t q = 0; q < modes.n_q; ++q)
    for (int s = 0; s < modes.n_branches; ++s) {
      const std::int64_t star = symmetry.irreducible[symmetry.star_of[q]];
      modes.star_deviation_rad_ps = std::max(
          modes.star_deviation_rad_ps, std::fabs(modes.omega_rad_ps[q * modes.n_branches + s] -
                                                 modes.omega_rad_ps[star * modes.n_branches + s]));
    }
  if (modes.star_deviation_rad_ps > kStarError * largest && !options.allow_inconsistent_position)
    throw InvalidInput(
        options.positions_location + ": frequencies differ by up to " +
        number_text(modes.star_deviation_rad_ps) +
        " rad/ps between wave vectors that the space group " + symmetry.space_group +
        " makes equal (limit " + number_text(kStarError * largest) +
        "); 'positions' and the second-order constants do not belong together (the periodic "
        "image of each atom matters); correct them, or set allow_inconsistent_position = "
        ".true. to run the deck as it is");
  if (modes.star_deviation_rad_ps > kStarWarning * largest)
    modes.warnings.push_back("frequencies differ by up to " +
                             number_text(modes.star_deviation_rad_ps) +
                             " rad/ps over a star of space group " + symmetry.space_group +
                             ", so κ depends on the point that stands for its star: the "
                             "second-order constants do not have the symmetry of 'positions'; "
                             "symmetrise them, or run with symmetry = .false.");
}

void check_modes(const Symmetry& symmetry, const HarmonicOptions& options, Modes& modes) {
  check_stars(symmetry, options, modes);
  check_imaginary(symmetry, options, modes);
  if (modes.largest_raw_omega_gamma_rad_ps > kRawGammaWarning_rad_ps)
    modes.warnings.push_back(
        "the acoustic modes at Γ have |ω| up to " +
        number_text(modes.largest_raw_omega_gamma_rad_ps) +
        " rad/ps before being set to zero: the acoustic sum rule of the second-order "
        "constants is broken (acoustic_sum_rule = .true. imposes it)");
}

/// Solves the wave vectors of a mesh one by one and writes them into `modes`.
class PointSolver {
 public:
  PointSolver(const Crystal& crystal, const SecondOrder& constants, const Symmetry& symmetry,
              const HarmonicOptions& options, Modes& modes)
      : symmetry_(symmetry),
        options_(options),
        builder_(crystal, constants, options),
        canonical_(crystal, options.symmetry_tolerance_nm),
        nb_(crystal.n_branches()),
        modes_(modes) {}

  /// Solves for the modes at q, and at −q by time reversal. @throws NotConverged if the
  /// diagonalisation fails.
  void solve(std::int64_t q) {
    const Vec3 fractional = fractional_of(symmetry_.mesh, q);
    const DynamicalMatrix matrix = builder_.at(fractional, true);
    double* omega = &modes_.omega_rad_ps[q * nb_];
    Complex64* vectors = &modes_.eigenvector[q * nb_ * nb_];
    std::int32_t* subspace = &modes_.subspace[q * nb_];
    diagonalise_hermitian(nb_, matrix.d, omega, vectors);
    for (int s = 0; s < nb_; ++s)
      omega[s] = std::copysign(std::sqrt(std::fabs(omega[s])), omega[s]);
    find_subspaces(omega, nb_, options_.degeneracy_rad_ps, subspace);
    // compat = "fourphonon" keeps the eigenvectors of LAPACK, as FourPhonon does.
    if (!options_.compat) canonical_.choose(fractional, matrix.gradient, subspace, vectors);
    set_velocities(q, matrix);
    const std::int64_t minus = symmetry_.mesh.minus(q);
    if (minus != q) {
      reverse(q, minus);
      project(minus);
    }
    project(q);
  }

 private:
  /// Computes v = e†(∂D/∂q)e / 2ω (docs/theory/thermal.md 3.2).
  void set_velocities(std::int64_t q, const DynamicalMatrix& matrix) {
    const double* omega = &modes_.omega_rad_ps[q * nb_];
    const Complex64* vectors = &modes_.eigenvector[q * nb_ * nb_];
    double* velocity = &modes_.velocity_km_s[q * nb_ * 3];
    for (int s = 0; s < nb_; ++s)
      for (int g = 0; g < 3; ++g)
        velocity[s * 3 + g] = omega[s] > 0.0 ? matrix_element(nb_, vectors + s * nb_,
                                                              matrix.gradient[g], vectors + s * nb_)
                                                       .real() /
                                                   (2.0 * omega[s])
                                             : 0.0;
  }
  /// Applies time reversal: ω(−q) = ω(q), e(−q) = e(q)*, v(−q) = −v(q).
  void reverse(std::int64_t q, std::int64_t minus) {
    std::copy_n(&modes_.omega_rad_ps[q * nb_], nb_, &modes_.omega_rad_ps[minus * nb_]);
    std::copy_n(&modes_.subspace[q * nb_], nb_, &modes_.subspace[minus * nb_]);
    const Complex64* vectors = &modes_.eigenvector[q * nb_ * nb_];
    for (int e = 0; e < nb_ * nb_; ++e)
      modes_.eigenvector[minus * nb_ * nb_ + e] = std::conj(vectors[e]);
    const double* velocity = &modes_.velocity_km_s[q * nb_ * 3];
    for (int e = 0; e < nb_ * 3; ++e) modes_.velocity_km_s[minus * nb_ * 3 + e] = -velocity[e];
  }
  /// Projects velocities on the symmetry of their point and averages them over degenerate sets.
  void project(std::int64_t q) {
    const Mat3 projector = symmetry_.vector_projector(q, options_.compat);
    double* v = &modes_.velocity_km_s[q * nb_ * 3];
    for (int s = 0; s < nb_; ++s) {
      const Vec3 projected = projector * Vec3{v[s * 3], v[s * 3 + 1], v[s * 3 + 2]};
      std::copy(projected.begin(), projected.end(), v + s * 3);
    }
    if (options_.average_degenerate) average_velocities(nb_, &modes_.subspace[q * nb_], v);
  }

  const Symmetry& symmetry_;
  const HarmonicOptions& options_;
  DynamicalMatrixBuilder builder_;
  CanonicalVectors canonical_;
  int nb_;
  Modes& modes_;
};

/// Sets the frequencies and velocities of the three translations at Γ to zero. They vanish by
/// definition, but rounding or a broken sum rule leaves small numbers.
void zero_translations(Modes& modes) {
  std::vector<int> order(static_cast<std::size_t>(modes.n_branches));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::fabs(modes.omega_rad_ps[a]) < std::fabs(modes.omega_rad_ps[b]);
  });
  for (int i = 0; i < 3; ++i) {
    const int s = order[i];
    modes.largest_raw_omega_gamma_rad_ps =
        std::max(modes.largest_raw_omega_gamma_rad_ps, std::fabs(modes.omega_rad_ps[s]));
    modes.omega_rad_ps[s] = 0.0;
    for (int g = 0; g < 3; ++g) modes.velocity_km_s[s * 3 + g] = 0.0;
  }
}

double trace(const Mat3& m) { return m[0][0] + m[1][1] + m[2][2]; }

/// Returns M of `symmetric` widths, averaged over the group, in 1/nm². Where the steps of the mesh
/// are such a basis themselves, M is made of them, without the rounding of a mean over bases.
Mat3 symmetric_metric(const Mat3& steps, const Symmetry& symmetry) {
  const Mat3 own = symmetry.symmetrised(transpose(steps) * steps);
  const Mat3 reduced = symmetry.symmetrised(mesh_metric(steps));
  constexpr double kRounding = 1e-13;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      if (std::fabs(own[i][j] - reduced[i][j]) > kRounding * trace(reduced)) return reduced;
  return own;
}

/// Warns of widths that depend on the choice of the primitive cell.
void check_mesh_basis(const Crystal& crystal, const Symmetry& symmetry,
                      const HarmonicOptions& options, Modes& modes) {
  if (!follows_cell(options.broadening)) return;
  const Mat3 steps = mesh_steps_per_nm(crystal, symmetry.mesh);
  const double excess = std::sqrt(trace(transpose(steps) * steps) / trace(mesh_metric(steps)));
  constexpr double kReduced = 1.0 + 1e-6;
  if (excess <= kReduced) return;
  modes.warnings.push_back(
      "'lattvec' is not reduced: with 'broadening' = adaptive-max or adaptive-rms the widths "
      "depend on the choice of the primitive cell, and here they are on average " +
      number_text(excess) +
      " times those of the reduced cell; use broadening = symmetric, or give reduced lattice "
      "vectors");
}

}  // namespace

Modes solve_harmonic(const Crystal& crystal, const SecondOrder& constants, const Symmetry& symmetry,
                     const HarmonicOptions& options, Progress& progress) {
  // one problem for each thread; bits must not depend on threads of BLAS
  openblas_set_num_threads(1);
  const QMesh& mesh = symmetry.mesh;
  Modes modes;
  modes.n_q = mesh.size();
  modes.n_branches = crystal.n_branches();
  const auto n_modes = static_cast<std::size_t>(modes.n_modes());
  modes.omega_rad_ps.resize(n_modes);
  modes.eigenvector.resize(n_modes * static_cast<std::size_t>(modes.n_branches));
  modes.velocity_km_s.assign(n_modes * 3, 0.0);
  modes.subspace.resize(n_modes);

  PointSolver solver(crystal, constants, symmetry, options, modes);
  std::atomic<bool> failed{false};
  constexpr std::int64_t kChunk = 4096;
  for (std::int64_t start = 0; start < modes.n_q; start += kChunk) {
    progress.report("harmonic", start, modes.n_q);
    const std::int64_t stop = std::min(modes.n_q, start + kChunk);
#pragma omp parallel for schedule(dynamic, 16)
    for (std::int64_t q = start; q < stop; ++q) {
      if (mesh.minus(q) < q || failed) continue;
      try {
        solver.solve(q);
      } catch (const NotConverged&) {
        failed = true;  // exceptions must not leave a parallel region
      }
    }
  }
  if (failed)
    throw NotConverged(
        "diagonalising a dynamical matrix failed; check that all force constants are finite and "
        "have the right units");
  progress.report("harmonic", modes.n_q, modes.n_q);

  zero_translations(modes);
  find_subspaces(modes.omega_rad_ps.data(), modes.n_branches, options.degeneracy_rad_ps,
                 modes.subspace.data());
  check_modes(symmetry, options, modes);
  check_mesh_basis(crystal, symmetry, options, modes);
  set_spreads(crystal, symmetry, options.broadening, modes);
  return modes;
}

Mat3 mesh_steps_per_nm(const Crystal& crystal, const QMesh& mesh) {
  Mat3 steps = crystal.reciprocal_per_nm();
  for (int i = 0; i < 3; ++i) steps[i] = (1.0 / mesh.n[i]) * steps[i];
  return steps;
}

void set_spreads(const Crystal& crystal, const Symmetry& symmetry, Broadening broadening,
                 Modes& modes) {
  const Mat3 steps = mesh_steps_per_nm(crystal, symmetry.mesh);
  Mat3 transform = steps;
  if (!follows_cell(broadening)) {
    // M = L Lᵀ; p = Lᵀ v.
    const Mat3 m = symmetric_metric(steps, symmetry);
    Mat3 l{};
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j <= i; ++j) {
        double sum = m[i][j];
        for (int k = 0; k < j; ++k) sum -= l[i][k] * l[j][k];
        l[i][j] = i == j ? std::sqrt(sum) : sum / l[j][j];
      }
    transform = transpose(l);
  }
  modes.spread_rad_ps.resize(modes.velocity_km_s.size());
  for (std::size_t mode = 0; mode < modes.velocity_km_s.size() / 3; ++mode) {
    const Vec3 v{modes.velocity_km_s[mode * 3], modes.velocity_km_s[mode * 3 + 1],
                 modes.velocity_km_s[mode * 3 + 2]};
    const Vec3 p = transform * v;
    std::copy(p.begin(), p.end(), &modes.spread_rad_ps[mode * 3]);
  }
}

double mean_square_spread(const Modes& modes, double omega_max_rad_ps) {
  double sum = 0.0;
  std::int64_t count = 0;
  for (std::int64_t mode = 0; mode < modes.n_modes(); ++mode) {
    if (!modes.active(mode, omega_max_rad_ps)) continue;
    for (int x = 0; x < 3; ++x) {
      const double p = modes.spread_rad_ps[static_cast<std::size_t>(3 * mode + x)];
      sum += p * p;
    }
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : 0.0;
}

double typical_sigma_rad_ps(const Modes& modes, double scale_broad, double omega_max_rad_ps) {
  return scale_broad * std::sqrt(mean_square_spread(modes, omega_max_rad_ps) / 3.0);
}

}  // namespace quasi::thermal
