#pragma once

#include <cstdint>
#include <vector>

#include "workers/gw/kernels/hamiltonian/hamiltonian_kernels.hpp"
#include "workers/gw/model/eigensolver_options.hpp"

// The folder workers/gw/solver/mean_field/eigensolver finds states of the Hamiltonian without its
// matrix. Begin here; operator_states.hpp makes the operator of a crystal. The steps on blocks of
// states are in workers/gw/kernels/hamiltonian.
namespace quasi::gw {

/// Lowest eigenstates of an operator, in whole multiplets.
struct LowestStates {
  std::vector<double> energy_ry;     ///< ascending, [n_states]
  std::vector<Cplx> coefficients;    ///< orthonormal, [n_states][n_pw]
  double largest_residual_ry = 0.0;  ///< largest ‖Hψ − Eψ‖
  int iterations = 0;
  std::int64_t applications = 0;  ///< of H to one state
};

/// Returns the number of guard states that a block holds above the wanted ones.
constexpr std::int64_t guard_states(std::int64_t wanted) { return wanted / 8 > 8 ? wanted / 8 : 8; }

/// Finds the `wanted` lowest eigenstates of H, and the further members of the multiplet that the
/// last of them belongs to, by Chebyshev-filtered subspace iteration [zhou2006]. The block holds
/// guard states above the wanted ones and grows while a multiplet fills them. States are locked
/// from below in whole multiplets (|ΔE| < 1e-6 Ry). Bits depend neither on threads nor on the run,
/// only on the kind of device.
/// @throws InvalidInput  if H has fewer states
/// @throws NotConverged  if a residual stays above `options.residual_ry`
LowestStates lowest_states(const HamiltonianOperator& h, HamiltonianKernels& kernels, int wanted,
                           const EigensolverOptions& options);

/// Returns a bound of the largest eigenvalue of H after twelve Lanczos steps from a seeded vector:
/// the largest Ritz value plus the norm of the last residual [zhou2006].
double spectrum_bound_ry(const HamiltonianOperator& h);

}  // namespace quasi::gw
