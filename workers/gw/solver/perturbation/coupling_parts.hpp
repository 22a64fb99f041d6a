#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "workers/gw/solver/perturbation/state_coupling.hpp"

namespace quasi::gw {

/// Provides the elements V_n'n = ⟨n'|∂V|n⟩ of all perturbations of one wave vector, for parts
/// of the bands.
class CouplingParts {
 public:
  virtual ~CouplingParts() = default;
  /// Fills a block with V_n'n for a range of n and all n', Ry/Bohr, [n_p][n_bra][kets.size()]. The
  /// block is on the device of the elements.
  virtual void of_kets(BandRange kets, CouplingBlock& block) const = 0;
  /// Fills a block with V*_n'n for a range of n' and all n, Ry/Bohr, [n_p][n_ket][bras.size()]. The
  /// block is on the device of the elements.
  virtual void of_bras(BandRange bras, CouplingBlock& block) const = 0;
};

/// Makes the perturbation ∂V(r) = Σ_G ∂V(G) e^{i(q+G)·r} of a local potential.
/// @param name      name for messages and tables
/// @param q         wave vector, reduced
/// @param elements  ∂V(G), Ry/Bohr
Perturbation local_perturbation(const std::string& name, const Vec3& q,
                                const PotentialElements& elements);

/// Returns a hash of the elements of a potential, for Perturbation::digest.
std::uint64_t digest_of(const PotentialElements& elements);

/// Returns true if every perturbation is a real local potential with the period of the lattice. Its
/// elements between the states of one k-point are Hermitian.
bool are_local(const std::vector<Perturbation>& perturbations);

/// Makes the elements between the states n' at `bra.k` and the states n at k. Elements of local
/// potentials are calculated part by part on the device of `kernels`. Other elements are calculated
/// at once on the processor.
/// @param k  reduced, of the ket
/// @param umklapp  from bra_point() (state_coupling.hpp)
std::unique_ptr<const CouplingParts> coupling_parts(const std::vector<Perturbation>& perturbations,
                                                    const Vec3& k, const WavesAtPoint& bra,
                                                    const IVec3& umklapp, const WavesAtPoint& ket,
                                                    GwKernels& kernels);

}  // namespace quasi::gw
