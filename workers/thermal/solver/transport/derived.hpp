#pragma once

#include <vector>

#include "workers/thermal/solver/transport/coherence.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"
#include "workers/thermal/solver/transport/sweep.hpp"
#include "workers/thermal/solver/transport/wire.hpp"

namespace quasi::thermal {

/// Quantities that follow from rates and modes; their cost is small beside that of the rates.
struct Derived {
  std::vector<double> gruneisen;            ///< [n_rows]
  std::vector<double> mean_gruneisen;       ///< [nT]
  std::vector<Coherence> coherence;         ///< [nT]; empty when not asked for
  std::vector<WireConductivity> wires_rta;  ///< [nT]; empty without nanowires
  std::vector<WireConductivity> wires;      ///< [nT] of converged_wires; empty without them
  Sweep sweep;                              ///< of run_sweep
};

/// Computes everything of Derived but `wires` and `sweep`; the time goes to run.seconds.
Derived derive(const Transport& transport, const SecondOrder& second_order,
               const SparseForceConstants& third_order, ConductivityRun& run);

/// Spectrum of what rows carry: Σ_row value δ(ω − ω_row) with the widths of elastic scattering, at
/// the ticks of the density of states. W ps/(m K rad).
Cumulative spectrum_by_omega(const Transport& transport, const std::vector<Mat3>& by_row);

}  // namespace quasi::thermal
