#pragma once

#include <vector>

#include "workers/gw/solver/perturbation/displacement_elements.hpp"

namespace quasi::gw {

/// Lists ∂V_xc of all displacements with one wave vector: that of files with VXC, or that of the
/// density of a built-in crystal (docs/theory/gw.md 16.2). The list is empty where the crystal has
/// no V_xc.
/// @param potentials  ∂V of the displacements, of that wave vector
std::vector<Perturbation> vxc_changes(const DisplacedCrystal& displaced,
                                      const std::vector<Perturbation>& potentials,
                                      const MeanField& field, GwKernels& kernels);

/// Adds ⟨l, k+q|·|m, k⟩ of local perturbations between the outer states at the first k of the
/// options to one matrix of all displacements. An empty list adds none.
/// @param changes  one perturbation for each of the elements
void add_matrices(const std::vector<Perturbation>& changes, const MeanField& field,
                  const SigmaOptions& options, GwKernels& kernels,
                  std::vector<Cplx> ElementsAtK::*matrix, std::vector<ElementsAtK>& elements);

}  // namespace quasi::gw
