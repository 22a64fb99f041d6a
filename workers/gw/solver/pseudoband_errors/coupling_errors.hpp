#pragma once

#include <vector>

#include "workers/gw/solver/perturbation/mode_elements.hpp"

namespace quasi::gw {

/// Holds estimates of complex numbers that depend on random vectors, and half the width of their
/// 95 % intervals. Real and imaginary parts have intervals of their own.
struct ComplexEstimates {
  std::vector<Cplx> value, half_width;
};

/// Estimates complex numbers and their intervals by the jackknife (docs/theory/gw.md 9.3). It
/// compares the values with all blocks of random vectors with those without one block in turn.
/// @param pooled   values with all blocks
/// @param without  values without one block, [block][pooled.size()], 3 to 16 blocks
ComplexEstimates jackknife_of(const std::vector<Cplx>& pooled,
                              const std::vector<std::vector<Cplx>>& without);

/// Sets the statistical errors of the first orders in phonon modes. Each element, coupling and
/// ratio is calculated again without each block of random vectors, so that correlations of
/// numerator and denominator count. The function does nothing if there are no blocks.
/// @param displaced  elements in the displacements of which the modes are made
void add_mode_errors(const DisplacementElements& displaced, const Wavefunctions& waves,
                     ModeElements& phonons);

}  // namespace quasi::gw
