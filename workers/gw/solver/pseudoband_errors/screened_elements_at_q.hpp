#pragma once

#include <complex>
#include <optional>
#include <vector>

#include "workers/gw/kernels/pole_sums/changes/screened_elements.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {

/// Returns what the poles of one q need beside ε̃⁻¹, so that a device can make them. Empty
/// where W is not Hermitian, where a group of symmetries averages ε̃⁻¹ at q → 0, and with
/// other poles than those of Hybertsen and Louie: changes then come from whole matrices in host
/// memory.
/// @param at  its ε⁻¹ may be empty
std::optional<ScreenedElements> screened_elements_at(const MeanField& field, const ScreeningAtQ& at,
                                                     const SigmaOptions& options,
                                                     const CoulombInteraction& coulomb);

/// Sets the head, and the average over all directions of q → 0 where k·p gives it
/// (docs/theory/gw.md 4.1), from the first rows of ε̃⁻¹.
/// @param rows  [elements.n_heads][edge of ε̃⁻¹]
void set_limit_of_small_q(const MeanField& field, const CoulombInteraction& coulomb,
                          const std::vector<Cplx>& rows, ScreenedElements& elements);

}  // namespace quasi::gw
