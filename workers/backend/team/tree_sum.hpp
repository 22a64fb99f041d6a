#pragma once

#include <utility>
#include <vector>

namespace quasi {

/// Appends a node to the partial sums of a binary tree and adds nodes that form an aligned power of
/// two: 0+1, 2+3, (0+1)+(2+3), … A node is the sum of the terms [begin, begin + count). This order
/// of addition is fixed: nodes of several devices or ranks, pushed in order of `begin`, give the
/// bits that one device gives.
/// @tparam Node  has members `begin` and `count`
/// @param add    add(a, b) adds the sum of b to the sum of a
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

/// Ends a tree sum when all terms are pushed: adds the remaining nodes, last to first, to the first
/// one.
template <typename Node, typename Add>
void close_nodes(std::vector<Node>& nodes, const Add& add) {
  for (; nodes.size() > 1; nodes.pop_back()) add(nodes[nodes.size() - 2], nodes.back());
}

}  // namespace quasi
