#pragma once

#include <functional>
#include <string>
#include <vector>

#include "workers/gw/model/outer_loop_options.hpp"
#include "workers/gw/solver/self_energy/dyson.hpp"
#include "workers/gw/solver/self_energy/quasiparticle.hpp"

namespace quasi::gw {

/// Course of a loop.
struct OuterLoopReport {
  std::vector<double> change_ev;  ///< largest change of an energy, by iteration
  bool converged = false;
};

/// Problem of a loop. The loop moves the mean field's energies to `field.reference_energy_ry` and
/// puts the energies of G in their place.
struct OuterLoopProblem {
  MeanField& field;
  std::vector<DielectricMatrix>& epsilon;
  const SigmaOptions& options;
  const CoulombInteraction& coulomb;
  DeviceTeam& team;
  /// Keeps the state of the loop after a finished iteration, and the finished parts of an
  /// interrupted one.
  Checkpoint& checkpoint;
  /// Prefix of names in the checkpoint, which tells loops of other problems apart; empty or ends
  /// with '/'.
  std::string scope;
  Progress& progress;

  GwKernels& kernels() const { return team.first(); }
  StepContext context() const { return {coulomb, team, checkpoint, progress}; }
};

/// Calculates ε⁻¹ of a mean field.
using Screening = std::function<std::vector<DielectricMatrix>(const MeanField&)>;

/// A loop over energies, and how it solves the quasiparticle equation.
struct EigenvalueLoop {
  OuterLoopOptions options;
  DerivativeRule rule;
  bool remainder = false;  ///< add the static remainder
};

/// evGW₀ and evGW (docs/theory/gw.md 8): E_l = E_mf − V_xc + Re Σ_ll(E_l) with the same energies in
/// G, to self-consistency. Bands outside the window of outer states move with the nearest one
/// inside.
/// @param vxc_ev     diagonal, [k and spin][l]
/// @param screening  calculates ε⁻¹ of the changed field (kEvGw)
/// @return the quasiparticles of the last iteration; `sigma` gets its Σ
/// @throws InvalidInput unless Σ is calculated at every k; NotConverged after max_iterations
std::vector<Quasiparticle> iterate_eigenvalues(const OuterLoopProblem& problem,
                                               const EigenvalueLoop& loop,
                                               const std::vector<std::vector<double>>& vxc_ev,
                                               const Screening& screening,
                                               std::vector<SelfEnergyAtK>* sigma,
                                               OuterLoopReport* report);

/// QSGW (docs/theory/gw.md 8): H = E_mf − V_xc + ΔV_H + X + ½H[Σ(E_l) + Σ(E_m)] between the outer
/// states, diagonalised at every k. Its eigenstates and energies enter G, X and the density of the
/// next iteration, and with kQsGw ε⁻¹. On return the field holds both. W of new states at q → 0
/// needs k·p (MeanField::by_velocity), because the states of WFNq do not change with them.
/// @param vxc_ev     matrices [l][m] between the mean field's states, eV, [k and spin]
/// @param screening  calculates ε⁻¹ of the changed field (kQsGw)
/// @throws InvalidInput unless Σ is calculated at every k, without V_xc, and for kQsGw without k·p;
/// NotConverged after max_iterations
void iterate_states(const OuterLoopProblem& problem, const OuterLoopOptions& loop,
                    const SigmaMatrixOptions& matrix, const std::vector<std::vector<Cplx>>& vxc_ev,
                    const Screening& screening, OuterLoopReport* report);

}  // namespace quasi::gw
