#pragma once

#include <memory>
#include <vector>

#include "workers/gw/solver/perturbation/state_coupling.hpp"

namespace quasi::gw {

/// Elements V of all perturbations of one wave vector, taken by parts of the bands.
class CouplingParts {
 public:
  virtual ~CouplingParts() = default;
  /// Fills a block of the same device with V_n'n of some n, Ry/Bohr, [n_p][n_bra][kets.size()].
  virtual void of_kets(BandRange kets, CouplingBlock& block) const = 0;
  /// Fills it with V*_n'n of some n', [n_p][n_ket][bras.size()].
  virtual void of_bras(BandRange bras, CouplingBlock& block) const = 0;
};

/// True if every perturbation is a real local potential with the period of the lattice. Its
/// elements between the states of one k-point are Hermitian.
bool are_local(const std::vector<Perturbation>& perturbations);

/// Makes the elements between the states at `bra.k` and those at k. Those of local potentials are
/// calculated part by part on the device of `kernels`, others at once on the processor.
std::unique_ptr<const CouplingParts> coupling_parts(const std::vector<Perturbation>& perturbations,
                                                    const Vec3& k, const WavesAtPoint& bra,
                                                    const IVec3& umklapp, const WavesAtPoint& ket,
                                                    GwKernels& kernels);

}  // namespace quasi::gw
