#pragma once

#include <complex>
#include <optional>
#include <vector>

#include "workers/gw/kernels/pole_sums/changes/screened_elements.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {

/// Returns the data from which a device can make the poles of one q, together with ε̃⁻¹. The
/// result is empty where W is not Hermitian, where a group of symmetries averages ε̃⁻¹ at q
/// → 0, and for poles other than those of Hybertsen and Louie. Changes of the poles then come
/// from whole matrices in host memory.
/// @param at  screening of the q-point; its ε⁻¹ may be empty
std::optional<ScreenedElements> screened_elements_at(const MeanField& field, const ScreeningAtQ& at,
                                                     const SigmaOptions& options,
                                                     const CoulombInteraction& coulomb);

/// Sets the head of `elements` at q → 0 from the first rows of ε̃⁻¹. Where k·p gives the
/// limit, it also sets the average over all directions (docs/theory/gw.md 4.1).
/// @param rows  first rows of ε̃⁻¹, [elements.n_heads][order of ε̃⁻¹]
void set_limit_of_small_q(const MeanField& field, const CoulombInteraction& coulomb,
                          const std::vector<Cplx>& rows, ScreenedElements& elements);

}  // namespace quasi::gw
