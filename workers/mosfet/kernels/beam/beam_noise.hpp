#pragma once

#include "workers/mosfet/kernels/beam/beam_transport.hpp"

namespace quasi::mosfet {

/// Current of a steady state at fixed levels and the spectral density of its fluctuations at zero
/// frequency, both valleys of every pair.
struct BeamNoise {
  double current = 0;           ///< electrons that enter at the source, 1/(nm fs)
  double spectral_density = 0;  ///< S_I/q² of the source, 1/(nm fs)
};

/// Computes the noise of the first-order scheme with Maxwell statistics at a frozen field
/// (docs/theory/mosfet.md 17.7). Every move of an electron is a Poisson process:
///
///   S_I = 2q² Σ_moves rate (Ψ_from − Ψ_to + δ)²,
///
/// where Ψ is the probability that an electron leaves through the source, and δ is 1 for a move in
/// through the source and −1 for a move out. @throws NotConverged if GMRES does not reach the
/// tolerance
BeamNoise beam_noise(const BeamGeometry& geometry, const BeamScattering& scattering,
                     const BeamInflow& inflow, double tolerance);

}  // namespace quasi::mosfet
