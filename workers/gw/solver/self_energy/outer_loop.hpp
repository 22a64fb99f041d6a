#pragma once

#include <functional>
#include <string>
#include <vector>

#include "workers/gw/model/outer_loop_options.hpp"
#include "workers/gw/solver/self_energy/dyson.hpp"
#include "workers/gw/solver/self_energy/quasiparticle.hpp"

namespace quasi::gw {

struct OuterLoopReport {
  std::vector<double> change_ev;  ///< of each turn
  bool converged = false;
};

/// What the loops work on. `field` keeps the mean field's energies in reference_energy_ry and gets
/// those of G.
struct OuterLoopProblem {
  MeanField& field;
  std::vector<DielectricMatrix>& epsilon;
  const SigmaOptions& options;
  const CoulombInteraction& coulomb;
  DeviceTeam& team;
  /// A finished turn leaves the loop's state there and forgets its parts; an interrupted one its
  /// parts.
  Checkpoint& checkpoint;
  std::string scope;  ///< of the names in the checkpoint: tells loops of other problems apart; ""
                      ///< or ends with '/'
  Progress& progress;

  GwKernels& kernels() const { return team.first(); }
};

/// ε⁻¹ made anew from the field.
using Screening = std::function<std::vector<DielectricMatrix>(const MeanField&)>;

/// evGW₀ and evGW: E_l = E_mf − V_xc + Re Σ_ll(E_l) with the same energies in G, to
/// self-consistency. Bands outside the window of outer states move with the nearest one inside.
/// @param vxc_ev   diagonal, [k and spin][l]
/// @param screening  makes ε⁻¹ anew from the field (kEvGw)
/// @return the last turn's quasiparticles; its Σ in `sigma`
/// @throws InvalidInput unless Σ is calculated at every k; NotConverged after max_iterations
std::vector<Quasiparticle> iterate_eigenvalues(
    const OuterLoopProblem& problem, const OuterLoopOptions& loop, const DerivativeRule& rule,
    bool remainder, const std::vector<std::vector<double>>& vxc_ev, const Screening& screening,
    std::vector<SelfEnergyAtK>* sigma, OuterLoopReport* report);

/// QSGW: H = E_mf − V_xc + ΔV_H + X + ½H[Σ(E_l) + Σ(E_m)] between the outer states, diagonalised at
/// every k; its eigenstates and energies enter G, X and the density of the next turn, and with
/// kQsGw ε⁻¹. On return the field holds both. W of new states at q → 0 needs k·p
/// (MeanField::by_velocity): WFNq's states could not follow.
/// @param vxc_ev  matrices [l][m] between the mean field's states
void iterate_states(const OuterLoopProblem& problem, const OuterLoopOptions& loop,
                    const SigmaMatrixOptions& matrix, const std::vector<std::vector<Cplx>>& vxc_ev,
                    const Screening& screening, OuterLoopReport* report);

}  // namespace quasi::gw
