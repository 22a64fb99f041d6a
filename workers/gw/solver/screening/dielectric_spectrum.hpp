#pragma once

#include "workers/gw/solver/screening/epsilon.hpp"

namespace quasi::gw {

/// Properties of ε̃⁻¹(0) = v^−½ ε⁻¹(0) v^½ of one q (docs/theory/gw.md 4). v must be
/// positive.
struct DielectricSpectrum {
  double asymmetry = 0.0;  ///< largest departure of an element from that of the adjoint
  /// Smallest and largest eigenvalue of the Hermitian part by Lanczos steps with full
  /// orthogonalisation from a fixed start. Both lie within the spectrum. They are exact to rounding
  /// if the outermost eigenvalues are well separated from the rest.
  double lowest = 0.0, highest = 0.0;
};

/// Calculates these properties from one triangle of the Hermitian part, of real numbers where
/// ε⁻¹(0) is real: a step reads 4 n² bytes there, and else 8 n².
/// @throws NotConverged if LAPACK finds no eigenvalues of the Lanczos matrix
DielectricSpectrum dielectric_spectrum(const DielectricMatrix& m);

}  // namespace quasi::gw
