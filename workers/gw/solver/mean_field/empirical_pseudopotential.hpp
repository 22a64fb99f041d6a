#pragma once

#include "workers/backend/progress.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/model/empirical_crystal.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/step_times.hpp"

namespace quasi::gw {

/// Diagonalises at the irreducible points of the grid, without `by_velocity` at those of the grid
/// shifted by q₀ too, and sums the density of the occupied bands.
MeanField empirical_mean_field(const EmpiricalCrystal& crystal, GwKernels& kernels,
                               Progress& progress, StepTimes* times = nullptr);

/// Its states between the points of the grid, by the same H. The kernels must outlive what is
/// returned.
/// @param crystal  of the mean field above
StatesAt empirical_states(const EmpiricalCrystal& wanted, const Crystal& crystal,
                          GwKernels& kernels);

}  // namespace quasi::gw
