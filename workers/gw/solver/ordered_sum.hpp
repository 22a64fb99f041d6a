#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/ranks/ranks.hpp"
#include "workers/gw/kernels/polarizability/partial_chi.hpp"

namespace quasi::gw {

/// Sum of the portions [begin, begin + count) of one q.
struct ChiNode {
  std::int64_t begin = 0, count = 1;
  std::unique_ptr<PartialChi> chi;
};

/// Appends a node to those before it, and adds what makes an aligned power of two: 0+1, 2+3,
/// (0+1)+(2+3), … That is the one order of addition, whoever makes the nodes: nodes of several
/// devices, pushed in order, give what one device would have.
/// @param add  add(a, b): a's sum += b's
template <typename Node, typename Add>
void push_node(std::vector<Node>& nodes, Node node, const Add& add) {
  nodes.push_back(std::move(node));
  while (nodes.size() > 1) {
    Node &a = nodes[nodes.size() - 2], &b = nodes.back();
    if (a.count != b.count || a.begin % (2 * a.count) != 0 || a.begin + a.count != b.begin) return;
    add(a, b);
    a.count *= 2;
    nodes.pop_back();
  }
}
/// All portions are there: adds what is left, from the last on, into the first.
template <typename Node, typename Add>
void close_nodes(std::vector<Node>& nodes, const Add& add) {
  for (; nodes.size() > 1; nodes.pop_back()) add(nodes[nodes.size() - 2], nodes.back());
}

void push_node(std::vector<ChiNode>& nodes, ChiNode node);
std::unique_ptr<PartialChi> closed(std::vector<ChiNode> nodes);

/// The sum over the nodes of all ranks, in the same order of addition, on every rank;
/// [shape.size()]. Each rank sums its share of the elements. Together.
std::vector<Cplx> sum_over_ranks(Ranks& ranks, const std::vector<ChiNode>& nodes,
                                 const ChiShape& shape);

/// Pieces that rank 0's checkpoint has kept under `names`, on every rank; no data where it has
/// none. Together.
std::vector<Piece> kept_pieces(Ranks& ranks, const Checkpoint& checkpoint,
                               const std::vector<std::string>& names);

}  // namespace quasi::gw
