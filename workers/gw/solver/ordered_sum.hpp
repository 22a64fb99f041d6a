#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workers/backend/ranks/ranks.hpp"
#include "workers/backend/team/kept_pieces.hpp"
#include "workers/backend/team/tree_sum.hpp"
#include "workers/gw/kernels/polarizability/partial_chi.hpp"

namespace quasi::gw {

/// Sum of the portions [begin, begin + count) of one q.
struct ChiNode {
  std::int64_t begin = 0, count = 1;
  std::unique_ptr<PartialChi> chi;
};

/// Appends a portion of the polarizability to the tree sum of tree_sum.hpp.
void push_node(std::vector<ChiNode>& nodes, ChiNode node);
std::unique_ptr<PartialChi> closed(std::vector<ChiNode> nodes);

/// Returns on every rank the sum over the nodes of all ranks in the order of the tree,
/// [shape.size()]. Each rank sums its share of the elements. Collective.
std::vector<Cplx> sum_over_ranks(Ranks& ranks, const std::vector<ChiNode>& nodes,
                                 const ChiShape& shape);

}  // namespace quasi::gw
