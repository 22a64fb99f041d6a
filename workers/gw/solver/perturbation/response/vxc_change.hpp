#pragma once

#include <vector>

#include "workers/gw/solver/perturbation/displacement_elements.hpp"

namespace quasi::gw {

/// Returns ∂V_xc of all displacements with one wave vector, in the order of the displacements. It
/// comes from files VXC (docs/theory/gw.md 14.11) or from the density response of a built-in
/// crystal (docs/theory/gw.md 16.2). The list is empty if the crystal has no V_xc.
/// @param potentials  ∂V of the displacements, all with that wave vector
std::vector<Perturbation> vxc_changes(const DisplacedCrystal& displaced,
                                      const std::vector<Perturbation>& potentials,
                                      const MeanField& field, GwKernels& kernels);

/// Sets one matrix of each displacement to ⟨l, k+q|∂V|m, k⟩ of a local perturbation, Ry/Bohr,
/// [l][m]. The states l and m are the outer states of the options, and k is their first k-point.
/// An empty list changes nothing.
/// @param changes   perturbations, one for each displacement
/// @param matrix    member of ElementsAtK that receives the matrix
/// @param elements  elements of each displacement
void add_matrices(const std::vector<Perturbation>& changes, const MeanField& field,
                  const SigmaOptions& options, GwKernels& kernels,
                  std::vector<Cplx> ElementsAtK::*matrix, std::vector<ElementsAtK>& elements);

}  // namespace quasi::gw
