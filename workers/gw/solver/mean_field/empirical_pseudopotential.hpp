#pragma once

#include "workers/backend/progress.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/model/empirical_crystal.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/gw/solver/mean_field/eigensolver/operator_states.hpp"
#include "workers/gw/solver/mean_field/empirical_structure.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/step_times.hpp"

namespace quasi::gw {

/// Finds the lowest states of a built-in crystal (docs/theory/gw.md 11) at the irreducible points
/// of its grid and sums the density of the occupied bands. Without `by_velocity` it finds them at
/// the points of the grid shifted by q₀ too.
MeanField empirical_mean_field(const EmpiricalCrystal& crystal, GwKernels& kernels,
                               Progress& progress, StepTimes* times = nullptr);

/// Returns a function that diagonalises the same Hamiltonian at any k. The kernels must outlive
/// that function.
/// @param crystal  the crystal of empirical_mean_field()
StatesAt empirical_states(const EmpiricalCrystal& wanted, const Crystal& crystal,
                          GwKernels& kernels);

}  // namespace quasi::gw
