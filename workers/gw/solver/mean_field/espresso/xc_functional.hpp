#pragma once

#include <span>

#include "workers/gw/input/espresso/espresso_save.hpp"

namespace quasi::gw {

/// True if the functional depends on the gradient of the density.
bool uses_gradient(XcFunctional functional);

/// Densities at some points, and the derivatives of the energy density ρ ε_xc by them. With two
/// spins a point has the numbers of ↑ and ↓, and the products ↑↑, ↑↓ and ↓↓.
struct XcPoints {
  int n_spins = 1;
  std::span<const double> density;   ///< Bohr⁻³, [point][n_spins]
  std::span<const double> gradient;  ///< ∇ρ·∇ρ, Bohr⁻⁸, [point][1 or 3]; empty: local
  std::span<double> by_density;      ///< Ry, as `density`
  std::span<double> by_gradient;     ///< Ry Bohr⁵, as `gradient`
};

/// Evaluates a functional by libxc, which is loaded at the first call. Small densities follow the
/// rules of docs/theory/gw.md 1.5.
/// @throws BackendAbsent if libxc is not installed
void evaluate_functional(XcFunctional functional, const XcPoints& points);

}  // namespace quasi::gw
