#pragma once

#include <vector>

#include "workers/gw/solver/perturbation/sigma_derivative.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {

/// k + p folded into the zone of the k-points: k + p = k_bra + umklapp.
struct BraPoint {
  Vec3 k{};
  IVec3 umklapp{};
};
BraPoint bra_point(const Vec3& k, const Vec3& p);

/// Calculates V_n'n = ⟨n'|∂V|n⟩ between states at `bra.k` and at `k`, Ry/Bohr, [n_bra][n_ket].
/// @param umklapp  from bra_point(): the plane waves of `bra` are those of k + p less it
std::vector<Cplx> state_coupling(const PotentialDerivative& potential, const Vec3& k,
                                 const WavesAtPoint& bra, const IVec3& umklapp,
                                 const WavesAtPoint& ket);

}  // namespace quasi::gw
