#pragma once

#include <vector>

#include "workers/gw/solver/perturbation/sigma_derivative.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {

/// Holds k + p folded into the zone of the k-points: k + p = k_bra + umklapp, all reduced.
struct BraPoint {
  Vec3 k{};
  IVec3 umklapp{};
};
/// Returns k + p folded into the zone, whose coordinates lie in [0, 1). @param k, p  reduced
BraPoint bra_point(const Vec3& k, const Vec3& p);

/// Calculates V_n'n = ⟨n'|∂V|n⟩ of one perturbation between states at `bra.k` and at `k`,
/// Ry/Bohr, [n_bra][n_ket]. The states have one component, or two.
/// @param k  reduced, of the ket
/// @param umklapp  from bra_point(): the plane waves of `bra` less it are those of k + p
std::vector<Cplx> state_coupling(const Perturbation& perturbation, const Vec3& k,
                                 const WavesAtPoint& bra, const IVec3& umklapp,
                                 const WavesAtPoint& ket);

}  // namespace quasi::gw
