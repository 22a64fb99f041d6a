#pragma once

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/progress.hpp"
#include "workers/gw/solver/device_team.hpp"
#include "workers/gw/solver/screening/coulomb/coulomb_interaction.hpp"

namespace quasi::gw {

/// The objects that every long step of a job shares. They outlive the context.
struct StepContext {
  const CoulombInteraction& coulomb;
  DeviceTeam& team;
  Checkpoint& checkpoint;  ///< keeps finished pieces of the steps
  Progress& progress;
};

/// The objects that a step on one device shares. They outlive the context.
struct DeviceContext {
  const CoulombInteraction& coulomb;
  GwKernels& kernels;
  Progress& progress;
};

}  // namespace quasi::gw
