#pragma once

#include <cmath>

#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// The potential of Stillinger and Weber with its parameters for silicon
/// (docs/theory/thermal.md 15) [stillinger1985]:
///
///   φ₂(r) = A ε (B s⁻ᵖ − 1) exp(1/(s − a)),  s = r/σ
///   φ₃(r_j, r_k) = λ ε exp(γ/(s_j − a) + γ/(s_k − a)) (cos θ + ⅓)²
///
/// Both vanish with all derivatives at s = a.
struct StillingerWeberPotential {
  double epsilon_ev = 2.1678;
  double sigma_angstrom = 2.0951;
  double a = 1.80;
  double big_a = 7.049556277;
  double big_b = 0.6022245584;
  double p = 4.0;
  double lambda = 21.0;
  double gamma = 1.20;

  double cutoff_angstrom() const { return a * sigma_angstrom; }

  /// Returns dφ₂/dr in eV/Å at a distance below the cutoff [stillinger1985].
  double pair_slope(double r_angstrom) const {
    const double s = r_angstrom / sigma_angstrom;
    const double decay = std::exp(1.0 / (s - a));
    const double repulsion = big_b * std::pow(s, -p);
    return big_a * epsilon_ev / sigma_angstrom * decay *
           (-p * repulsion / s - (repulsion - 1.0) / ((s - a) * (s - a)));
  }

  /// Returns −∂φ₃/∂r_j in eV/Å, the force of the angle at the origin on the atom at `r_j`; both
  /// lengths are below the cutoff [stillinger1985].
  Vec3 bend_force(const Vec3& r_j, const Vec3& r_k) const {
    const double length_j = length(r_j), length_k = length(r_k);
    const double x_j = length_j / sigma_angstrom - a, x_k = length_k / sigma_angstrom - a;
    const double cosine = dot(r_j, r_k) / (length_j * length_k);
    const double bend = cosine + 1.0 / 3.0;
    const double energy = lambda * epsilon_ev * std::exp(gamma / x_j + gamma / x_k);
    const Vec3 along = (1.0 / length_j) * r_j, other = (1.0 / length_k) * r_k;
    const double radial = energy * bend * bend * gamma / (sigma_angstrom * x_j * x_j);
    return radial * along - (2.0 * energy * bend / length_j) * (other - cosine * along);
  }
};

}  // namespace quasi::thermal
