#pragma once

#include "workers/gw/input/espresso/espresso_save.hpp"
#include "workers/gw/model/mean_field.hpp"

// The folder workers/gw/solver/mean_field/espresso makes the data of the files VXC, VSC and VKB
// from a folder PREFIX.save (docs/theory/gw.md 1.5). Begin with file_or_save.hpp, which the other
// steps call, and with this header for the potentials.
namespace quasi::gw {

/// Density whose V_xc is calculated.
enum class XcDensity {
  kValence,   ///< V_xc that Σ of the valence electrons replaces; the rule of pw2bgw.x
  kWithCore,  ///< V_xc that acted on the states, with the core charge of the pseudopotentials
};

/// Returns V_xc, Ry. The potential and the gradients are evaluated on the FFT grid of the density.
/// The divergence of a gradient functional is taken in reciprocal space, below ecutrho.
PlaneWaveField exchange_correlation_of_save(const EspressoSave& save, XcDensity of);

/// Returns the local part of the self-consistent potential, V_loc + V_H + V_xc, Ry.
PlaneWaveField local_potential_of_save(const EspressoSave& save);

/// Returns the projectors of all atoms on the plane waves of every k-point. The atoms of one
/// species follow each other in the order of the file.
Projectors projectors_of_save(const EspressoSave& save);

}  // namespace quasi::gw
