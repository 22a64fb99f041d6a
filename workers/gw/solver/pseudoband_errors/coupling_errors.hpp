#pragma once

#include <vector>

#include "workers/gw/solver/perturbation/mode_elements.hpp"

namespace quasi::gw {

/// Holds complex numbers that random vectors leave uncertain, and half the width of their 95 %
/// intervals. The jackknife finds both: it repeats a sum without each block of vectors in turn.
/// Real and imaginary parts have intervals of their own.
struct ComplexEstimates {
  std::vector<Cplx> value, half_width;
};

/// Estimates complex numbers from their values with all blocks and without each block. Real and
/// imaginary parts have intervals of their own, by jackknife().
/// @param without  [block][pooled.size()], 3 to 16 blocks
ComplexEstimates jackknife_of(const std::vector<Cplx>& pooled,
                              const std::vector<std::vector<Cplx>>& without);

/// Sets the statistical errors of the first orders in phonon modes. Each mode and coupling is
/// calculated without each block of random vectors, so that the interval of a ratio is that of the
/// ratio. Does nothing if the displacements have no blocks.
/// @param displaced  the displacements of the modes
void add_mode_errors(const DisplacementElements& displaced, const Wavefunctions& waves,
                     ModeElements& phonons);

}  // namespace quasi::gw
