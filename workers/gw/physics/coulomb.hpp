#pragma once

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Prefactor of the bare Coulomb interaction in reciprocal space, Ry Bohr³, times the volume: v(k)
/// = 8π/k², because e² = 2 (docs/theory/gw.md 5).
inline constexpr double kEightPi = 8.0 * kPi;

/// Returns v of a crystal that is periodic in all directions. @param k2_ry  |k|² > 0
inline double coulomb_3d(double k2_ry) { return kEightPi / k2_ry; }

/// Returns v for a slab: 1/r is cut at |z| > z_c = L_z/2, and z is not periodic [ismailbeigi2006].
/// @param k_parallel_per_bohr  in-plane length of k
inline double coulomb_slab(double k_parallel_per_bohr, double k_z_per_bohr,
                           double half_length_bohr) {
  const double k2 = k_parallel_per_bohr * k_parallel_per_bohr + k_z_per_bohr * k_z_per_bohr;
  const double phase = k_z_per_bohr * half_length_bohr;
  // The limit k_∥ → 0 is taken first. The term k_z/k_∥ sin(k_z z_c) vanishes on a grid where k_z
  // z_c is a multiple of π.
  const double ratio =
      k_parallel_per_bohr > 1e-12 ? k_z_per_bohr / k_parallel_per_bohr * std::sin(phase) : 0.0;
  return coulomb_3d(k2) *
         (1.0 + std::exp(-k_parallel_per_bohr * half_length_bohr) * (ratio - std::cos(phase)));
}

/// Returns v for a sphere: 1/r is cut at r > R [rozzi2006]. It is 4πR² at k = 0.
inline double coulomb_sphere(double k2_ry, double radius_bohr) {
  const double k = std::sqrt(k2_ry);
  const double x = k * radius_bohr;
  // 1 − cos x = 2 sin²(x/2) keeps its digits at small x.
  if (x < 1e-8) return 4.0 * kPi * radius_bohr * radius_bohr;
  const double half = std::sin(0.5 * x);
  return coulomb_3d(k2_ry) * 2.0 * half * half;
}

}  // namespace quasi::gw
