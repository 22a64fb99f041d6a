#pragma once

#include "workers/backend/progress.hpp"
#include "workers/gw/input/state_file.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/model/mean_field_options.hpp"
#include "workers/gw/solver/mean_field/eigensolver/dense_memory.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/step_times.hpp"

namespace quasi::gw {

/// Parts of a mean field that the later steps of a job need.
struct MeanFieldDemand {
  int bands = 0;  ///< if WFN has fewer bands, more are made from VSC and VKB; 0: those of WFN
  bool screening = true;     ///< ε⁻¹ is calculated, so that q → 0 is needed
  bool hamiltonian = false;  ///< the states are those of H, which is kept (MeanField::hamiltonian)
  bool molecule = false;     ///< the interaction is truncated to a box or a sphere
  bool shifts = false;       ///< MeanField::shifted_states is needed
  StateStorage states;       ///< memory for the states of WFN, and for those of WFNq
  MemoryRoom room = {};      ///< for dense diagonalisations
};

/// Returns the work of the dense diagonalisations of a mean field that is loaded. If WFN may have
/// held all states, they are counted as if they were made.
DenseStatesWork dense_work_of(const MeanFieldOptions& source, const MeanFieldDemand& demand,
                              const Wavefunctions& waves);

/// Reads the files of a mean field, or diagonalises the built-in crystal.
/// @throws InvalidInput if files do not fit each other or lack a needed part
/// @throws OutOfMemory  if a dense diagonalisation exceeds `demand.room`
MeanField load_mean_field(const MeanFieldOptions& source, const MeanFieldDemand& demand,
                          GwKernels& kernels, Progress& progress, StepTimes* times = nullptr);

}  // namespace quasi::gw
