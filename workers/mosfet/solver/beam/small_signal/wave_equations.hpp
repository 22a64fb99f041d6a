#pragma once

#include "workers/mosfet/kernels/wave/wave_noise_kernels.hpp"
#include "workers/mosfet/kernels/wave/wave_problem.hpp"
#include "workers/mosfet/solver/beam/small_signal/field_response.hpp"

namespace quasi::mosfet {

/// Returns true if the equations of a device have tables. Devices with roughness, with impurities
/// or with blocking of scattering have none.
bool has_wave_tables(const BeamDevice& device);

/// Makes the tables of the linear equations of a steady state (docs/theory/mosfet.md 17.8). Levels
/// and wave functions follow the potential by first-order perturbation theory with all states of
/// their column.
/// @throws NotConverged if a column has no states or Gummel's matrix is singular
WaveProblem make_wave_problem(const FieldResponse& response);

/// Returns what the noise of a steady state needs beside these tables.
/// @param field_responds  false: the potential is fixed
WaveObservation make_wave_observation(const FieldResponse& response, bool field_responds);

}  // namespace quasi::mosfet
