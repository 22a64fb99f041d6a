#pragma once

#include "workers/gw/input/espresso/espresso_save.hpp"
#include "workers/gw/model/mean_field.hpp"

// The folder workers/gw/solver/mean_field/espresso makes the data of the files VXC, VSC and VKB
// from a folder PREFIX.save (docs/theory/gw.md 1.5). Begin with file_or_save.hpp, which other
// folders call. This header makes the potentials and the projectors.
namespace quasi::gw {

/// Selects the density from which V_xc is calculated.
enum class XcDensity {
  kValence,   ///< density of the valence electrons; its V_xc is the one that Σ replaces
  kWithCore,  ///< with the core charge of the pseudopotentials; its V_xc acts on the states
};

/// Calculates V_xc(G) by libxc on the FFT grid of the density (docs/theory/gw.md 1.5). Gradients
/// and divergences are taken in reciprocal space, below ecutrho.
/// @return Ry, [spin][G] on the plane waves of the density
/// @throws InvalidInput if a file of the folder is missing or damaged
/// @throws BackendAbsent if libxc is not installed
PlaneWaveField exchange_correlation_of_save(const EspressoSave& save, XcDensity of);

/// Calculates the local part of the self-consistent potential, V_loc + V_H + V_xc with
/// XcDensity::kWithCore.
/// @return Ry, [spin][G] on the plane waves of the density. The errors are those of
/// exchange_correlation_of_save().
PlaneWaveField local_potential_of_save(const EspressoSave& save);

/// Makes the projectors β(k + G) of all atoms on the plane waves of every k-point
/// (docs/theory/gw.md 1.5). Atoms are in the order of the species, and within one species in the
/// order of the file. @throws InvalidInput if a file of the folder is missing or damaged
Projectors projectors_of_save(const EspressoSave& save);

}  // namespace quasi::gw
