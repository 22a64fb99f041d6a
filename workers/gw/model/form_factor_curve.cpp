#include "workers/gw/model/form_factor_curve.hpp"

#include <cmath>

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {
namespace {

constexpr double kSquaredNodes[] = {0, 3, 4, 8, 11, 12};
/// Lengths whose squares differ by less are those of one shell.
constexpr double kSameShell = 1e-6;

/// Returns the Fermi energy in Ry of the 32 valence electrons of a cubic cell, as free ones.
double free_fermi_energy_ry(double lattice_bohr) {
  return std::pow(3.0 * kPi * kPi * 32.0, 2.0 / 3.0) / (lattice_bohr * lattice_bohr);
}

}  // namespace

FormFactorCurve::FormFactorCurve(const FormFactors& factors, bool first_atom) {
  for (std::size_t i = 0; i < kNodes; ++i) length_[i] = std::sqrt(kSquaredNodes[i]);
  value_ry_[0] = -2.0 / 3.0 * free_fermi_energy_ry(factors.lattice_bohr);
  for (std::size_t shell = 0; shell < 4; ++shell)
    value_ry_[shell + 1] =
        factors.symmetric_ry[shell] + (first_atom ? -1.0 : 1.0) * factors.antisymmetric_ry[shell];
  // Slopes at both ends stay 0: v_a is even in K, and joins the 0 beyond |K|² = 12.
  for (std::size_t i = 1; i + 1 < kNodes; ++i) {
    const double before = length_[i] - length_[i - 1], after = length_[i + 1] - length_[i],
                 rise_before = (value_ry_[i] - value_ry_[i - 1]) / before,
                 rise_after = (value_ry_[i + 1] - value_ry_[i]) / after;
    if (rise_before * rise_after <= 0.0) continue;
    const double weight_before = 2.0 * after + before, weight_after = after + 2.0 * before;
    slope_ry_[i] =
        (weight_before + weight_after) / (weight_before / rise_before + weight_after / rise_after);
  }
}

double FormFactorCurve::at(double squared) const {
  for (std::size_t i = 0; i < kNodes; ++i)
    if (std::abs(squared - kSquaredNodes[i]) <= kSameShell) return value_ry_[i];
  if (squared >= kSquaredNodes[kNodes - 1]) return 0.0;
  const double length = std::sqrt(squared);
  std::size_t i = 0;
  while (length > length_[i + 1]) ++i;
  const double step = length_[i + 1] - length_[i], t = (length - length_[i]) / step, u = 1.0 - t;
  return u * u * ((1.0 + 2.0 * t) * value_ry_[i] + t * step * slope_ry_[i]) +
         t * t * ((1.0 + 2.0 * u) * value_ry_[i + 1] - u * step * slope_ry_[i + 1]);
}

}  // namespace quasi::gw
