#pragma once

#include <vector>

#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

namespace quasi::gw {

/// Holds the request for first orders of Σ by central differences at one wave vector p.
struct WaveDifferenceRequest {
  const std::vector<Perturbation>& perturbations;  ///< all with the same wave vector p
  const std::vector<double>& energies_ry;          ///< E of Σ_lm(E), [E]
  double step_bohr = 0.0;                          ///< h
};

/// Calculates [Σ_lm(E; h) − Σ_lm(E; −h)]/2h between l at k + p and m at k, for the first k of
/// the options, Ry/Bohr (docs/theory/gw.md 14.5). The atoms of cell R move by
/// h(e^{ip·R} + e^{−ip·R}). W, E and the outer states are those of the crystal at rest. The
/// inner states are the eigenstates of the matrix
///
///   E_n δ + h (∂V_p + ∂V_p†)
///
/// between the bands of Σ at k, k + p, k + 2p and so on, to all orders in h. No first order of a
/// state or an energy enters, so that the result is an independent check.
/// @return [perturbation][E][l][m]; static COHSEX has one energy
std::vector<std::vector<Cplx>> wave_differences(const MeanField& field,
                                                const std::vector<DielectricMatrix>& epsilon,
                                                const SigmaOptions& options,
                                                const WaveDifferenceRequest& wanted,
                                                const DeviceContext& context);

}  // namespace quasi::gw
