#pragma once

#include <complex>
#include <utility>

#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/solver/perturbation/displacement_elements.hpp"

// Makes a small crystal of spinors, and sums of its first orders that do not depend on the basis.
namespace quasi::gw::test {

/// Returns GaAs with one spin–orbit strength for each kind of atoms.
inline EmpiricalCrystal coupled_crystal() {
  EmpiricalCrystal crystal = SmallSilicon::small_crystal();
  crystal.name = "gaas";
  crystal.wavefunction_cutoff_ry = 4.0;
  crystal.k_grid = {2, 1, 1};
  crystal.bands = 22;
  crystal.spin_orbit_ry_bohr2 = {0.0125, 0.0223};
  crystal.by_velocity = true;
  return crystal;
}

/// Holds sums over the states of two multiplets that do not depend on the basis within them.
struct BasisFreeSums {
  double g = 0.0, sigma = 0.0, product = 0.0;
  Cplx trace_g, trace_sigma;  ///< traces of ∂V and ∂Σ between the states of one multiplet

  /// @param n  outer states on either side;  bra, ket  bands of the multiplets from 0
  BasisFreeSums(const ElementsAtK& at, std::size_t n, const std::pair<int, int>& bra,
                const std::pair<int, int>& ket) {
    for (int l = bra.first; l < bra.second; ++l)
      for (int m = ket.first; m < ket.second; ++m) {
        const std::size_t i = static_cast<std::size_t>(l) * n + static_cast<std::size_t>(m);
        g += std::norm(at.mean_field[i]);
        sigma += std::norm(at.sigma_bra[i]);
        product += (std::conj(at.mean_field[i]) * at.sigma_ket[i]).real();
        if (l == m) trace_g += at.mean_field[i];
        if (l == m) trace_sigma += at.sigma(i);
      }
  }
};

}  // namespace quasi::gw::test
