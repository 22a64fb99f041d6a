#pragma once

#include <vector>

#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cpu.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::gw {

/// Holds changes of a model and the range of its rows G that a sum takes.
struct ChangesOfRows {
  const std::vector<const PoleChange*>& list;
  ElementRows rows;
};

/// Adds the response of the diagonal Σ to changes of a model, as LoadedPoleChanges::add_response
/// defines it (docs/theory/gw.md 9.3).
///
/// Threads sum blocks of G of a fixed size. For each group of outer states and tile of elements, P
/// and P' are summed over all bands and then multiplied with every change. Bands of equal energy
/// share f: their products M M* are added first (response_rows.hpp). Partial sums are added in
/// order, so that the result does not depend on the number of threads.
/// @param products  M, [n_left][n_right][n_g]
/// @throws InvalidInput as make_response_rows() does
void add_pole_response_cpu(const PolePlanes& model, const PoleRules& rules,
                           const ChangesOfRows& changes, View<const Cplx, 3> products,
                           const ResponseTerms& terms, const ResponseSums& sums);

}  // namespace quasi::gw
