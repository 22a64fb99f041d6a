#pragma once

#include <vector>

#include "workers/gw/solver/mean_field/pseudobands.hpp"
#include "workers/gw/solver/pseudoband_errors/sigma_response.hpp"

namespace quasi::gw {

/// Σ of the random vectors alone, with the poles of the job.
struct BlockSumsOfSigma {
  std::vector<SigmaChanges> own;  ///< of each block, less its part of the closed sum
  SigmaChanges to_nodes;          ///< change of all blocks with windows at their nodes
};

/// Sums Σ over the random vectors of each block, at the energies of their windows and at the nodes
/// of the windows. The closed sum of SigmaOptions::closed_sum_x_ry is that of these vectors and of
/// the complement's vectors of the block.
/// @param node_ry  energies of bands with windows at their nodes, [n_bands]; empty: not wanted
BlockSumsOfSigma sums_of_blocks(const MeanField& field, const std::vector<ChangingPoles>& poles,
                                const PseudobandPlan& plan, const SigmaOptions& options,
                                const std::vector<double>& node_ry, const ResponseContext& context);

}  // namespace quasi::gw
