#pragma once

#include <cmath>

#include "workers/backend/host_device.hpp"

namespace quasi::thermal {

/// Begin here: kind of the width σ of the energy-conserving δ, which follows from the velocities of
/// a process's phonons (docs/theory/thermal.md 4) [li2012]. matrix_element.hpp and
/// scattering_4ph.hpp hold the formulas of three and four phonons.
///
/// Each mode carries a vector p (Modes::spread_rad_ps), which measures the change of its energy
/// over half a cell of the mesh:
/// - kAdaptiveMax, kAdaptiveRms: p_i = b_i·v/N_i along the three reciprocal axes;
/// - all other kinds: p = Lᵀv with L Lᵀ = ⟨R M Rᵀ⟩, M = Σ_i c_i c_iᵀ for the reduced
///   basis c of the lattice b_i/N_i, averaged over the point group. Three phonons take no width
///   from it with kFixed and kTetrahedra.
enum class Broadening {
  kSymmetric,    ///< default: rms over axes, point group and all pairs of the process's phonons
  kAdaptiveMax,  ///< FourPhonon: largest axis, pair of the last two phonons
  kAdaptiveRms,  ///< ShengBTE: rms over axes, pair of the last two phonons
  kFixed,        ///< phono3py: one width for all processes
  kTetrahedra,   ///< phono3py: linear tetrahedra in place of δ_σ, for three phonons
};

/// Returns true if a process has one width in the rows of all its phonons.
constexpr bool has_symmetric_width(Broadening kind) {
  return kind == Broadening::kSymmetric || kind == Broadening::kFixed;
}

/// Returns true if widths depend on the primitive cell that describes the crystal.
constexpr bool follows_cell(Broadening kind) {
  return kind == Broadening::kAdaptiveMax || kind == Broadening::kAdaptiveRms;
}

/// Spread vector p of a mode.
struct Spread {
  double x, y, z;
};
/// Returns the spread vector at a pointer.
QUASI_HD inline Spread spread_at(const double* p) { return {p[0], p[1], p[2]}; }

/// Returns |a − b|² of two spread vectors, for kSymmetric and kAdaptiveRms.
QUASI_HD inline double spread_difference_squared(Spread a, Spread b) {
  const double x = a.x - b.x;
  const double y = a.y - b.y;
  const double z = a.z - b.z;
  return x * x + y * y + z * z;
}

/// Returns max_i (a_i − b_i)² of two spread vectors, for kAdaptiveMax.
QUASI_HD inline double spread_difference_max_squared(Spread a, Spread b) {
  const double x = (a.x - b.x) * (a.x - b.x);
  const double y = (a.y - b.y) * (a.y - b.y);
  const double z = (a.z - b.z) * (a.z - b.z);
  const double xy = x > y ? x : y;
  return xy > z ? xy : z;
}

/// Returns (σ/sb)² of the pair (a, b): max/2 or sum/6 (docs/theory/thermal.md 4).
QUASI_HD inline double pair_width_squared(Broadening kind, Spread a, Spread b) {
  return kind == Broadening::kAdaptiveMax ? spread_difference_max_squared(a, b) * 0.5
                                          : spread_difference_squared(a, b) * (1.0 / 6.0);
}

QUASI_HD inline double spread_difference_squared(const double* a, const double* b) {
  return spread_difference_squared(spread_at(a), spread_at(b));
}
QUASI_HD inline double pair_width_squared(Broadening kind, const double* a, const double* b) {
  return pair_width_squared(kind, spread_at(a), spread_at(b));
}

/// Returns (σ/sb)² of a three-phonon process λ, λ', λ'' (docs/theory/thermal.md 4). For kSymmetric
/// it is the mean over all three pairs, so that the process has one width in the rows of all its
/// phonons. With kFixed it is 1. For the other kinds it is that of the pair (λ', λ''), which is
/// free at given λ.
QUASI_HD inline double width_squared_3ph(Broadening kind, Spread p0, Spread p1, Spread p2) {
  if (kind == Broadening::kFixed) return 1.0;
  if (kind != Broadening::kSymmetric) return pair_width_squared(kind, p1, p2);
  return (spread_difference_squared(p0, p1) + spread_difference_squared(p0, p2) +
          spread_difference_squared(p1, p2)) *
         (1.0 / 18.0);
}

/// Returns δ_σ(x) = exp(−x²/σ²)/(σ√π) in ps, for x and σ in rad/ps. The exponent is not x²/2σ²
/// (docs/theory/thermal.md 4).
QUASI_HD inline double gaussian_delta_ps(double mismatch_rad_ps, double sigma_rad_ps) {
  constexpr double kPerSqrtPi = 0.56418958354775628695;
  const double per_sigma_ps =
      1.0 / sigma_rad_ps;  // one division, which costs as much as ten products on a GPU
  const double x = mismatch_rad_ps * per_sigma_ps;
  return std::exp(-x * x) * (per_sigma_ps * kPerSqrtPi);
}

}  // namespace quasi::thermal
