#include "workers/thermal/solver/harmonic/dipole_sum.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

namespace quasi::thermal {
namespace {

using Complex64 = std::complex<double>;

// Limit of KεK/4α. The limit of FourPhonon, 14, leaves errors of 1e-5 in ω².
constexpr double kCut = 32.0;
constexpr double kCutFourPhonon = 14.0;

Vec3 apply_transposed(const Mat3& born, const Vec3& k) { return transpose(born) * k; }  // k·Z

double square(double x) { return x * x; }

/// Rows of the supercell of the constants, in lattice coordinates.
IntMat3 supercell_of(const SecondOrder& constants) {
  if (!constants.images.empty()) return constants.image_lattice;
  const Index3& n = constants.supercell;
  return {Index3{n[0], 0, 0}, Index3{0, n[1], 0}, Index3{0, 0, n[2]}};
}

/// Returns all fractional q, modulo 1, for which S·q is an integer vector.
std::vector<Vec3> commensurate_points(const IntMat3& s) {
  // q = S⁻¹m for integer m. The columns of det(S)·S⁻¹ generate all points as multiples of 1/det(S).
  IntMat3 adjugate{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      const int a = (j + 1) % 3, b = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
      adjugate[i][j] = s[a][c] * s[b][d] - s[a][d] * s[b][c];
    }
  const int det =
      std::abs(s[0][0] * adjugate[0][0] + s[0][1] * adjugate[1][0] + s[0][2] * adjugate[2][0]);
  std::set<Index3> seen{{0, 0, 0}};
  std::vector<Index3> open{{0, 0, 0}};
  while (!open.empty()) {
    const Index3 point = open.back();
    open.pop_back();
    for (int generator = 0; generator < 3; ++generator) {
      Index3 next{};
      for (int d = 0; d < 3; ++d) next[d] = ((point[d] + adjugate[d][generator]) % det + det) % det;
      if (seen.insert(next).second) open.push_back(next);
    }
  }
  std::vector<Vec3> points;
  for (const Index3& n : seen)
    points.push_back({static_cast<double>(n[0]) / det, static_cast<double>(n[1]) / det,
                      static_cast<double>(n[2]) / det});
  return points;
}

}  // namespace

DipoleDamping ewald_damping(const Crystal& crystal, const HarmonicOptions& options) {
  const double root_alpha =
      2.0 * units::kPi * options.constants.bohr_nm / length(crystal.lattice_nm[0]);
  return {root_alpha * root_alpha, options.compat ? kCutFourPhonon : kCut};
}

DipoleDamping gonze_lee_damping(const Crystal& crystal, const HarmonicOptions& options) {
  const double volume = crystal.volume_nm3() / std::pow(options.constants.bohr_nm, 3);
  if (!options.phonopy_damping) return {square(2.0 * units::kPi / std::cbrt(volume)), kCut};
  // phonopy: 300 vectors G in a sphere of radius G_c, without 2π, and exp(−GεG/4Λ²) = 1e-10 there.
  constexpr double kVectors = 300.0;
  const double cut = -std::log(1e-10);
  const double radius = std::cbrt(3.0 * kVectors / (4.0 * units::kPi * volume));
  const Mat3& e = crystal.epsilon;
  const double mean_epsilon = (e[0][0] + e[1][1] + e[2][2]) / 3.0;
  return {square(2.0 * units::kPi * radius) * mean_epsilon / (4.0 * cut), cut};
}

DipoleDamping whole_damping(const Crystal& crystal) {
  double nearest_nm = std::numeric_limits<double>::infinity();
  for (int atom = 0; atom < crystal.n_atoms(); ++atom)
    for (int other = 0; other <= atom; ++other) {
      Vec3 d = crystal.position[atom] - crystal.position[other];
      for (double& x : d) x -= std::round(x);
      for (int i = -1; i <= 1; ++i)
        for (int j = -1; j <= 1; ++j)
          for (int k = -1; k <= 1; ++k) {
            const double apart =
                length(crystal.cartesian_nm(d) + crystal.lattice_vector_nm({i, j, k}));
            if (apart > 1e-6) nearest_nm = std::min(nearest_nm, apart);
          }
    }
  // The rest in real space is of the order of erfc(√α ρ) with ρ² = d·ε⁻¹d ≥ d²/tr ε.
  const Mat3& e = crystal.epsilon;
  const double nearest_bohr = nearest_nm / kCodata2018.bohr_nm;
  const double trace = e[0][0] + e[1][1] + e[2][2];
  const bool isotropic = std::fabs(e[0][0] - e[1][1]) + std::fabs(e[0][0] - e[2][2]) < 1e-6 * trace;
  const double largest = isotropic ? trace / 3.0 : trace;
  return {kCut * largest / square(nearest_bohr), kCut};
}

DipoleSum::DipoleSum(const Crystal& crystal, const PhysicalConstants& constants,
                     const DipoleDamping& damping)
    : crystal_(crystal), constants_(constants), damping_(damping) {
  const double bohr = constants.bohr_nm;
  reciprocal_per_bohr_ = crystal.reciprocal_per_nm();
  for (Vec3& row : reciprocal_per_bohr_) row = bohr * row;
  unit_ = 8.0 * units::kPi * std::pow(bohr, 3) / crystal.volume_nm3() * constants.rydberg_rad_ps *
          constants.rydberg_rad_ps / constants.amu_rydberg_mass;
  const int n_atoms = crystal.n_atoms();
  diagonal_.assign(static_cast<std::size_t>(n_atoms * 9), 0.0);
  for_each_vector({0, 0, 0}, [&](const Vec3& k, double, double weight) {
    for (int atom = 0; atom < n_atoms; ++atom) {
      Vec3 field{};
      for (int other = 0; other < n_atoms; ++other) {
        const Vec3 r = (1.0 / bohr) *
                       crystal_.cartesian_nm(crystal_.position[atom] - crystal_.position[other]);
        field = field + std::cos(dot(k, r)) * apply_transposed(crystal_.born[other], k);
      }
      const Vec3 kz = apply_transposed(crystal_.born[atom], k);
      for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) diagonal_[atom * 9 + a * 3 + b] += weight * kz[a] * field[b];
    }
  });
}

/// Calls visit(K, KεK, exp(−KεK/4α)/KεK) for every K = q + G that is not zero, in 1/bohr.
template <typename Visit>
void DipoleSum::for_each_vector(const Vec3& q, const Visit& visit) const {
  const auto& [alpha, cut] = damping_;
  // KεK < 4α·cut bounds |K_fractional,i| by the metric's inverse diagonal.
  const Mat3 to_cartesian = transpose(reciprocal_per_bohr_);
  const Mat3 metric_inverse = inverse(transpose(to_cartesian) * crystal_.epsilon * to_cartesian);
  int range[3];
  for (int d = 0; d < 3; ++d)
    range[d] =
        static_cast<int>(std::sqrt(4.0 * alpha * cut * metric_inverse[d][d]) + std::fabs(q[d])) + 1;
  for (int i = -range[0]; i <= range[0]; ++i)
    for (int j = -range[1]; j <= range[1]; ++j)
      for (int l = -range[2]; l <= range[2]; ++l) {
        const Vec3 k = to_cartesian * Vec3{q[0] + i, q[1] + j, q[2] + l};
        const double kek = dot(k, crystal_.epsilon * k);
        if (kek < 1e-12 || kek / (4.0 * alpha) >= cut) continue;
        visit(k, kek, std::exp(-kek / (4.0 * alpha)) / kek);
      }
}

/// Sums of products of one vector for each K, before the masses. With P_κα = (K·Z_κ)_α e^{iK·r_κ}
/// the matrix is Σ w P P†, and its gradient Σ w (Q P† + P Q†) with Q of `derivative`.
struct DipoleSum::Terms {
  int nb;
  std::vector<Complex64> p, q[3];  ///< [nb] of one K
  std::vector<Complex64> d, gradient[3];

  Terms(int n_branches, bool with_gradient) : nb(n_branches) {
    const auto size = static_cast<std::size_t>(nb);
    p.resize(size);
    d.assign(size * size, 0.0);
    for (int g = 0; g < 3 && with_gradient; ++g) {
      q[g].resize(size);
      gradient[g].assign(size * size, 0.0);
    }
  }
  /// Sets P of one atom, and Q if it is wanted.
  /// @param slope  εK (1/4α + 1/KεK), half the logarithmic derivative of the weight
  void set(int atom, const Vec3& k, const Mat3& born, const Vec3& r, const Vec3& slope) {
    const Complex64 phase = std::polar(1.0, dot(k, r));
    const Vec3 kz = apply_transposed(born, k);
    for (int a = 0; a < 3; ++a) {
      const auto at = static_cast<std::size_t>(3 * atom + a);
      p[at] = kz[a] * phase;
      for (int g = 0; g < 3 && !q[g].empty(); ++g)
        q[g][at] = Complex64(born[g][a] - kz[a] * slope[g], kz[a] * r[g]) * phase;
    }
  }
  void accumulate(double weight) {
    for (std::size_t i = 0, at = 0; i < p.size(); ++i) {
      const Complex64 left = weight * p[i];
      for (std::size_t j = 0; j < p.size(); ++j, ++at) d[at] += times_conjugate(left, p[j]);
    }
    for (int g = 0; g < 3 && !q[g].empty(); ++g)
      for (std::size_t i = 0, at = 0; i < p.size(); ++i) {
        const Complex64 left = weight * p[i], slope = weight * q[g][i];
        for (std::size_t j = 0; j < p.size(); ++j, ++at)
          gradient[g][at] += times_conjugate(slope, p[j]) + times_conjugate(left, q[g][j]);
      }
  }
  static Complex64 times_conjugate(const Complex64& a, const Complex64& b) {
    return {a.real() * b.real() + a.imag() * b.imag(), a.imag() * b.real() - a.real() * b.imag()};
  }
};

void DipoleSum::add(const Vec3& q, bool with_gradient, DynamicalMatrix& out) const {
  const double bohr = constants_.bohr_nm;
  const int n_atoms = crystal_.n_atoms();
  const int nb = crystal_.n_branches();
  Terms terms(nb, with_gradient);
  std::vector<Vec3> r;
  for (const Vec3& position : crystal_.position)
    r.push_back((1.0 / bohr) * crystal_.cartesian_nm(position));
  for_each_vector(q, [&](const Vec3& k, double kek, double weight) {
    const Vec3 slope = (0.25 / damping_.alpha_per_bohr2 + 1.0 / kek) * (crystal_.epsilon * k);
    for (int atom = 0; atom < n_atoms; ++atom)
      terms.set(atom, k, crystal_.born[atom], r[atom], slope);
    terms.accumulate(weight);
  });
  for (int atom = 0; atom < n_atoms; ++atom)
    for (int other = 0; other < n_atoms; ++other) {
      const double scale = unit_ / std::sqrt(crystal_.mass_amu[atom] * crystal_.mass_amu[other]);
      for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) {
          const auto at = static_cast<std::size_t>((3 * atom + a) * nb + 3 * other + b);
          out.d[at] += scale * terms.d[at];
          if (atom == other) out.d[at] -= scale * diagonal_[atom * 9 + a * 3 + b];
          for (int g = 0; g < 3 && with_gradient; ++g)
            out.gradient[g][at] += bohr * scale * terms.gradient[g][at];
        }
    }
}

SecondOrder without_dipoles(const Crystal& crystal, SecondOrder constants,
                            const DipoleSum& dipoles) {
  const std::vector<Vec3> points = commensurate_points(supercell_of(constants));
  const int nb = crystal.n_branches();
  std::vector<DynamicalMatrix> matrices(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    matrices[i].d.assign(static_cast<std::size_t>(nb * nb), 0.0);
    dipoles.add(points[i], false, matrices[i]);
  }
  const auto subtract = [&](int atom, int other, const Index3& cell, double* block) {
    const double scale = std::sqrt(crystal.mass_amu[atom] * crystal.mass_amu[other]) /
                         static_cast<double>(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double turns = points[i][0] * cell[0] + points[i][1] * cell[1] + points[i][2] * cell[2];
      const double angle = 2.0 * units::kPi * (turns - std::round(turns));
      const double c = scale * std::cos(angle), s = scale * std::sin(angle);
      for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) {
          const Complex64& d =
              matrices[i].d[static_cast<std::size_t>((3 * atom + a) * nb + 3 * other + b)];
          block[a * 3 + b] -= c * d.real() - s * d.imag();
        }
    }
  };
  for (SecondOrder::Image& image : constants.images)
    subtract(image.atom, image.other, image.cell, image.value.data());
  if (!constants.images.empty()) return constants;
  const Index3& n = constants.supercell;
  double* block = constants.value.data();
  for (int atom = 0; atom < constants.n_atoms; ++atom)
    for (int other = 0; other < constants.n_atoms; ++other)
      for (int k = 0; k < n[2]; ++k)
        for (int j = 0; j < n[1]; ++j)
          for (int i = 0; i < n[0]; ++i, block += 9) subtract(atom, other, {i, j, k}, block);
  return constants;
}

}  // namespace quasi::thermal
