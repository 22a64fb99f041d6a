#include "workers/gw/sigma_stage.hpp"

#include "workers/backend/error.hpp"
#include "workers/gw/solver/epsilon.hpp"

namespace quasi::gw {

bool wants_matrix(const Deck& deck) { return deck.sigma.full_matrix || deck.sigma.outer.kind == OuterLoop::kQsGw0; }

namespace {

/// Quasiparticles of the last turn: E_qp0 = E_qp1 = the energies that reproduce themselves.
void report_states(const MeanField& field, std::vector<Quasiparticle>& list) {
  for (Quasiparticle& qp : list) {
    qp.qp1_ev = field.waves.energy(qp.spin - 1, qp.k_index, qp.band - 1) * kRydberg_ev;
    qp.qp0_ev = qp.qp1_ev;
  }
}

void iterate(const Deck& deck, const ExchangeCorrelation& vxc, const CoulombInteraction& coulomb, GwKernels& kernels, Progress& progress,
             Calculation& run) {
  const OuterLoopOptions& loop = deck.sigma.outer;
  const OuterLoopProblem problem{run.field, run.epsilon, run.plan.sigma, coulomb, kernels, progress};
  if (loop.kind == OuterLoop::kQsGw0) {
    iterate_states(problem, loop, deck.sigma.matrix, vxc.matrix_ev, &run.outer);
    // Parts of Σ between the converged states; their V_xc is no longer that of the file.
    run.sigma = self_energy(run.field, run.epsilon, run.plan.sigma, coulomb, kernels, progress, &run.statistics);
    run.quasiparticles = quasiparticles(run.field, run.sigma, {}, run.plan.sigma, run.plan.derivative, deck.sigma.remainder);
    report_states(run.field, run.quasiparticles);
    return;
  }
  const auto screening = [&](const MeanField& field) {
    std::vector<DielectricMatrix> epsilon;
    for (const Vec3& q : screening_points(field)) epsilon.push_back(dielectric_matrix(field, q, run.plan.epsilon, coulomb, kernels, progress));
    return epsilon;
  };
  run.quasiparticles = iterate_eigenvalues(problem, loop, run.plan.derivative, deck.sigma.remainder, vxc.diagonal_ev(), screening, &run.sigma,
                                           &run.outer);
}

}  // namespace

void solve_further(const Deck& deck, const ExchangeCorrelation& vxc, const CoulombInteraction& coulomb, GwKernels& kernels,
                   Progress& progress, Calculation& run) {
  if (deck.sigma.outer.kind != OuterLoop::kNone) iterate(deck, vxc, coulomb, kernels, progress, run);
  if (!deck.sigma.full_matrix) return;
  run.matrices = self_energy_matrix(run.field, run.epsilon, run.plan.sigma, deck.sigma.matrix, coulomb, kernels, progress, &run.matrix_report);
  if (vxc.empty()) {
    if (deck.sigma.solution == Solution::kDyson) throw InvalidInput("sigma.solution = \"dyson\" needs V_xc: give meanfield.vxc");
    return;
  }
  run.dyson = solve_dyson(run.field, run.matrices, vxc.matrix_ev, run.plan.sigma);
  if (deck.sigma.solution != Solution::kDyson) return;
  for (std::size_t i = 0; i < run.quasiparticles.size(); ++i) {
    Quasiparticle& qp = run.quasiparticles[i];
    const DysonState& state = run.dyson[i];
    if (!state.energy_ev)
      throw NotConverged("the Dyson equation has no solution for band " + std::to_string(qp.band) + " at k-point " + std::to_string(qp.k_index + 1) +
                         " within the energies of the matrix; raise sigma.matrix_margin_ev");
    qp.qp1_ev = state.energy_ev;
    qp.z = state.z;
  }
}

}  // namespace quasi::gw
