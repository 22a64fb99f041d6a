#pragma once

#include <cstdint>
#include <vector>

#include "workers/gw/solver/self_energy/sigma.hpp"

namespace quasi::gw {

/// Σ_lm(E) between the outer states at one k and spin, Ry. The static method has one energy.
struct SigmaMatrixAtK {
  int k_index = 0;
  int spin = 0;
  std::int64_t n = 0;                ///< outer states
  std::vector<double> energy_ry;     ///< [n_e]
  std::vector<Cplx> x_ry;            ///< bare exchange, [l][m]
  std::vector<Cplx> correlation_ry;  ///< SX − X and CH together, [n_e][l][m]

  const Cplx* at(std::size_t e) const {
    return correlation_ry.data() + e * static_cast<std::size_t>(n * n);
  }
};

/// Calculates full matrices by sums over all q of the zone (docs/theory/gw.md 7), because
/// off-diagonal elements need the whole star. Plasmon poles use two products or separable sums. The
/// other methods are contour deformation, and static COHSEX with the band sum. Parts of (k, q,
/// block of inner bands) go to the devices, and into the checkpoint as they are finished. They are
/// added in order.
/// @param report  if given, gets the totals of the kernel's reports
/// @throws InvalidInput for methods without a matrix form: real and imaginary axis, imaginary
/// poles, completed CH.
std::vector<SigmaMatrixAtK> self_energy_matrix(const MeanField& field,
                                               const std::vector<DielectricMatrix>& epsilon,
                                               const SigmaOptions& options,
                                               const SigmaMatrixOptions& matrix,
                                               const StepContext& context,
                                               OffDiagonalReport* report);
/// Calculates full matrices on one device, without a checkpoint.
std::vector<SigmaMatrixAtK> self_energy_matrix(const MeanField& field,
                                               const std::vector<DielectricMatrix>& epsilon,
                                               const SigmaOptions& options,
                                               const SigmaMatrixOptions& matrix,
                                               const DeviceContext& context,
                                               OffDiagonalReport* report);

/// Energies E of Σ_lm(E) at one k and spin, Ry, as the options choose them: those given, those of
/// the outer states, or uniform ones from a margin below the lowest outer state to a margin above
/// the highest. COHSEX has one energy.
std::vector<double> matrix_energies_ry(const MeanField& field, int k_index, int spin,
                                       const SigmaOptions& options,
                                       const SigmaMatrixOptions& matrix);

}  // namespace quasi::gw
