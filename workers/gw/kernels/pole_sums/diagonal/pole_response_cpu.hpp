#pragma once

#include <vector>

#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cpu.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::gw {

/// Changes of a model, of which some rows are summed.
struct ChangesOfRows {
  const std::vector<const PoleChange*>& list;
  ElementRows rows;
};

/// Adds the response of the diagonal Σ to changes of a model (LoadedPoleChanges::add_response).
///
/// Threads sum blocks of G of a fixed size. For each outer state and tile of elements, P and P' are
/// summed over all bands and then multiplied with every change. Partial sums are added in order,
/// so that the result does not depend on the number of threads. See docs/theory/gw.md 9.3 for the
/// equations.
/// @param products  M, [n_left][n_right][n_g]
void add_pole_response_cpu(const PolePlanes& model, const PoleRules& rules,
                           const ChangesOfRows& changes, View<const Cplx, 3> products,
                           const ResponseTerms& terms, const ResponseSums& sums);

}  // namespace quasi::gw
