#pragma once

#include <span>

#include "workers/gw/input/espresso/espresso_save.hpp"

namespace quasi::gw {

/// Returns true if the functional depends on the gradient of the density.
bool uses_gradient(XcFunctional functional);

/// Holds densities at some points, and the derivatives of the energy density e = ρ ε_xc with
/// respect to them. With two spins a point has two densities, ↑ and ↓, and three products of
/// gradients, ↑↑, ↑↓ and ↓↓.
struct XcPoints {
  int n_spins = 1;
  std::span<const double> density;   ///< ρ_s, Bohr⁻³, [point][n_spins]
  std::span<const double> gradient;  ///< ∇ρ_s·∇ρ_t, Bohr⁻⁸, [point][1 or 3], or empty
  std::span<double> by_density;      ///< ∂e/∂ρ_s, Ry; shape of `density`
  std::span<double> by_gradient;  ///< ∂e/∂(∇ρ_s·∇ρ_t), Ry Bohr⁵; shape of `gradient`
};

/// Evaluates a functional by libxc [lehtola2018] and fills by_density and by_gradient. Where the
/// density is negative or small it follows the rules of pw.x (docs/theory/gw.md 1.5).
/// @throws BackendAbsent if libxc is not installed
void evaluate_functional(XcFunctional functional, const XcPoints& points);

}  // namespace quasi::gw
