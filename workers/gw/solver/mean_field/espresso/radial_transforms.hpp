#pragma once

#include <vector>

#include "workers/gw/input/espresso/upf_file.hpp"
#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Integrates values on a radial grid by Simpson's rule. A last point that makes their number even
/// is left out, as in Quantum ESPRESSO.
double radial_integral(const std::vector<double>& values, const std::vector<double>& rab);

/// Returns the spherical Bessel function j_l(x) for l from 0 to 3.
double spherical_bessel(int l, double x);

inline constexpr int kMostComponents = 7;  ///< 2l + 1 of the largest l

/// Evaluates the real spherical harmonics of a direction for l up to 3. At k = 0 it is z.
/// @param values  [2l + 1]
void real_harmonics(int l, const Vec3& k, double* values);

/// The part of the grid that integrals of potentials and densities use: radii up to 10 Bohr, and an
/// odd number of them.
std::size_t points_of_integrals(const Pseudopotential& pseudo);

/// Returns ∫ V_loc e^{−iG·r} d³r for lengths |G| in 1/Bohr, Ry Bohr³ (docs/theory/gw.md
/// 1.5). V_loc falls off as −2Z/r, whose integral diverges at G = 0. There it is left out,
/// because the charge of the electrons cancels it. At other G the long-range part −2Z erf(r)/r is
/// taken from its closed form, and the short-range rest from the radial grid.
std::vector<double> local_form_factors(const Pseudopotential& pseudo,
                                       const std::vector<double>& lengths);

/// Returns ∫ ρ_core e^{−iG·r} d³r, electrons.
std::vector<double> core_form_factors(const Pseudopotential& pseudo,
                                      const std::vector<double>& lengths);

/// A projector in reciprocal space, 4π ∫ r² β(r) j_l(qr) dr, between points of a table of step
/// 0.01/Bohr by cubic interpolation, as in Quantum ESPRESSO.
class RadialTable {
 public:
  /// @param q_max  largest length, 1/Bohr
  RadialTable(const Pseudopotential& pseudo, std::size_t projector, double q_max);
  double at(double q) const;
  int l() const { return l_; }

 private:
  int l_ = 0;
  std::vector<double> values_;
};

}  // namespace quasi::gw
