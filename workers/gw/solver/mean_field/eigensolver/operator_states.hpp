#pragma once

#include <utility>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/gw/model/eigensolver_options.hpp"
#include "workers/gw/model/mean_field.hpp"
#include "workers/gw/solver/mean_field/eigensolver/lowest_states.hpp"
#include "workers/gw/solver/screening/long_wave.hpp"

namespace quasi::gw {

/// V(G) where it is not 0, Ry.
using PotentialElements = std::vector<std::pair<IVec3, Cplx>>;

/// Makes the parts of |k+G|² + V(G − G') on the plane waves `g`. Elements of V that connect no two
/// of them are left out.
HamiltonianParts local_parts(const Crystal& crystal, const Vec3& k, const std::vector<IVec3>& g,
                             const PotentialElements& potential);

/// Makes the parts of the Hamiltonian of VSC and VKB at one k of WFN, whose matrix is that of
/// dense_hamiltonian(). @throws InvalidInput if VKB lacks the k-point or a plane wave of it
HamiltonianParts hamiltonian_parts(const Wavefunctions& waves, int k_index, int spin,
                                   const PlaneWaveField& potential, const Projectors& projectors);

/// Makes the parts of that Hamiltonian at any k, whose matrix is that of dense_hamiltonian_at().
HamiltonianParts hamiltonian_parts_at(const Crystal& crystal, const Vec3& k,
                                      const std::vector<IVec3>& g, int spin,
                                      const PlaneWaveField& potential,
                                      const RadialProjectors& projectors);

/// Smallest order of H for which the GPU is used. Below, the launches of its kernels take longer
/// than the work. On an H200 eight k-points of 170 plane waves take ten times as long as on 16
/// cores. At 700 plane waves both take the same time.
inline constexpr std::int64_t kLeastOrderOnGpu = 600;

/// Finds the n_bands lowest eigenstates of H on the plane waves `g`, in the gauge of fix_gauge().
/// If the last band belongs to a multiplet that goes on, its gauge is that of the whole multiplet.
/// If the order of H is below kLeastOrderOnGpu, the processor does the work.
/// @throws InvalidInput   if H has fewer states
/// @throws NotConverged  if a residual stays above `options.residual_ry`
LowestStates operator_states(HamiltonianParts parts, const std::vector<IVec3>& g, int n_bands,
                             const EigensolverOptions& options, HamiltonianKernels& kernels);

/// Logs the largest residual of a list of states if the iterative eigensolver found them.
void log_residual(const EigensolverOptions& options, double largest_residual_ry,
                  Progress& progress);

}  // namespace quasi::gw
