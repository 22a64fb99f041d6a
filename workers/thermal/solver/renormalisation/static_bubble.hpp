#pragma once

#include <complex>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/thermal/kernels/renormalisation/static_bubble_kernels.hpp"
#include "workers/thermal/model/harmonic_options.hpp"
#include "workers/thermal/model/lattice_model.hpp"
#include "workers/thermal/solver/renormalisation/self_consistent_phonons.hpp"

namespace quasi::thermal {

/// Static bubble of the third order at one temperature.
struct StaticBubble {
  /// D^B(q) on the mesh, [n_q][3κ+α][3κ'+β] in (rad/ps)², with the phases of lattice vectors.
  std::vector<std::complex<double>> matrix;
  /// D^B in real space. A pair with several nearest images has an entry for each, with an
  /// equal share. The list has one order for all temperatures.
  std::vector<PairCorrection> correction;
};

/// Computes the phonons of `model.second_order` on a mesh and arranges the third order for a
/// device.
/// @throws InvalidInput if the model has no third order, or if a mode has ω² ≤ 0.
StaticBubbleProblem make_static_bubble_problem(const LatticeModel& model, const QMesh& mesh,
                                               const HarmonicOptions& harmonic,
                                               double temperature_k);

/// Computes the real part of the three-phonon self-energy at zero frequency
/// (docs/theory/thermal.md 14.1), with the phonons of `model.second_order`:
///   D^B_xx'(q) = −ħ/(4 N_s) Σ'_{q'ss'} U*_{x,s,s'} U_{x',s,s'}/(ωω')
///                 [(1 + n + n')/(ω + ω') + (n − n')/(ω' − ω)].
/// @param symmetry       group and folding of the mesh that samples the phonons
/// @param temperature_k  ≥ 0
/// @param device         sums over pairs of phonons
/// @throws what make_static_bubble_problem throws, and OutOfMemory of the device.
StaticBubble static_bubble(const LatticeModel& model, const Symmetry& symmetry,
                           const HarmonicOptions& harmonic, double temperature_k,
                           const Device& device);

}  // namespace quasi::thermal
