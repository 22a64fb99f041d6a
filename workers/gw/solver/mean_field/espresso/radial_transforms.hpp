#pragma once

#include <vector>

#include "workers/gw/input/espresso/upf_file.hpp"
#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Returns ∫ f(r) dr on a radial grid by Simpson's rule. With an even number of points the last
/// one is left out, as in Quantum ESPRESSO.
/// @param values  f at the radii
/// @param rab     dr/di at the radii, Bohr (Pseudopotential::rab)
double radial_integral(const std::vector<double>& values, const std::vector<double>& rab);

/// Returns the spherical Bessel function j_l(x) for l from 0 to 3.
double spherical_bessel(int l, double x);

inline constexpr int kMostComponents = 7;  ///< 2l + 1 of the largest l, which is 3

/// Evaluates the real spherical harmonics of the direction of k for l from 0 to 3. For k = 0 the
/// direction is z.
/// @param values  receives Y_lm, [2l + 1]
void real_harmonics(int l, const Vec3& k, double* values);

/// Returns the number of grid points in integrals of potentials and densities. Radii end at the
/// first one beyond 10 Bohr, and the number is odd, as in Quantum ESPRESSO.
std::size_t points_of_integrals(const Pseudopotential& pseudo);

/// Returns ∫ V_loc e^{−iG·r} d³r for each length |G|, Ry Bohr³ (docs/theory/gw.md 1.5).
/// V_loc falls off as −2Z/r, so that its integral diverges at G = 0. There −2Z/r is subtracted,
/// because the charge of the electrons cancels it. At other G the part −2Z erf(r)/r has a closed
/// form, and the rest is integrated on the radial grid.
/// @param lengths  |G|, 1/Bohr
std::vector<double> local_form_factors(const Pseudopotential& pseudo,
                                       const std::vector<double>& lengths);

/// Returns ∫ ρ_core e^{−iG·r} d³r for each length |G|, electrons (docs/theory/gw.md 1.5).
/// @param lengths  |G|, 1/Bohr
std::vector<double> core_form_factors(const Pseudopotential& pseudo,
                                      const std::vector<double>& lengths);

/// Holds one projector in reciprocal space, f(q) = 4π ∫ r² β(r) j_l(qr) dr, as a table of step
/// 0.01/Bohr. Values between its points are cubic interpolations, as in Quantum ESPRESSO.
class RadialTable {
 public:
  /// @param projector  position in pseudo.projectors
  /// @param q_max      largest q, 1/Bohr
  RadialTable(const Pseudopotential& pseudo, std::size_t projector, double q_max);
  /// Returns f(q), Bohr^{3/2}. @param q  1/Bohr, from 0 to q_max
  double at(double q) const;
  int l() const { return l_; }

 private:
  int l_ = 0;
  std::vector<double> values_;  ///< f at the points of the table
};

}  // namespace quasi::gw
