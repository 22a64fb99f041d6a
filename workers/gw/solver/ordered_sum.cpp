#include "workers/gw/solver/ordered_sum.hpp"

#include <algorithm>
#include <memory>

namespace quasi::gw {
namespace {

constexpr int kShareTag = 64;
constexpr std::int64_t kPieceValues =
    std::int64_t{1}
    << 18;  // complex, 4 MiB: small enough to overlap, large enough to hide the latency

/// Some elements of a node.
struct Slice {
  std::int64_t begin = 0, count = 1;
  std::vector<double> values;
};

}  // namespace

void push_node(std::vector<ChiNode>& nodes, ChiNode node) {
  quasi::push_node(nodes, std::move(node),
                   [](ChiNode& a, const ChiNode& b) { a.chi->add(*b.chi); });
}

std::unique_ptr<PartialChi> closed(std::vector<ChiNode> nodes) {
  close_nodes(nodes, [](ChiNode& a, const ChiNode& b) { a.chi->add(*b.chi); });
  return std::move(nodes.front().chi);
}

std::vector<Cplx> sum_over_ranks(Ranks& ranks, const std::vector<ChiNode>& nodes,
                                 const ChiShape& shape) {
  const int n_ranks = ranks.size();
  std::vector<std::vector<Cplx>> mine;
  std::vector<double> spans;
  for (const ChiNode& node : nodes) {
    mine.emplace_back(static_cast<std::size_t>(shape.size()));
    node.chi->read(mine.back().data());
    spans.insert(spans.end(), {static_cast<double>(node.begin), static_cast<double>(node.count)});
  }
  const auto spans_of = ranks.gather(spans);
  std::vector<Cplx> sum(static_cast<std::size_t>(shape.size()));
  const auto add = [](Slice& a, const Slice& b) {
    for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] += b.values[i];
  };
  // In each round every rank sums one piece. It receives the shares of the other ranks rank by
  // rank.
  for (std::int64_t round = 0; round < shape.size(); round += kPieceValues * n_ranks) {
    const auto first_of = [&](int rank) {
      return std::min(shape.size(), round + rank * kPieceValues);
    };
    const auto count_of = [&](int rank) {
      return std::min(shape.size(), first_of(rank) + kPieceValues) - first_of(rank);
    };
    for (int rank = 0; rank < n_ranks; ++rank) {
      if (rank == ranks.rank() || count_of(rank) == 0) continue;
      std::vector<double> values;
      for (const auto& node : mine) {
        const auto* from = reinterpret_cast<const double*>(node.data() + first_of(rank));
        values.insert(values.end(), from, from + 2 * count_of(rank));
      }
      ranks.send(rank, kShareTag, std::move(values));
    }
    const std::int64_t first = first_of(ranks.rank()), count = count_of(ranks.rank());
    if (count > 0) {
      std::vector<std::vector<double>> of_rank(static_cast<std::size_t>(n_ranks));
      for (int others = 1; others < n_ranks; ++others) {
        Ranks::Message message = ranks.wait_for(kShareTag);
        of_rank[static_cast<std::size_t>(message.from)] = std::move(message.values);
      }
      std::vector<Slice> slices;
      for (int rank = 0; rank < n_ranks; ++rank) {
        const auto& span = spans_of[static_cast<std::size_t>(rank)];
        for (std::size_t i = 0; 2 * i < span.size(); ++i) {
          const double* from = rank == ranks.rank()
                                   ? reinterpret_cast<const double*>(mine[i].data() + first)
                                   : of_rank[static_cast<std::size_t>(rank)].data() +
                                         static_cast<std::int64_t>(i) * 2 * count;
          quasi::push_node(slices,
                           Slice{static_cast<std::int64_t>(span[2 * i]),
                                 static_cast<std::int64_t>(span[2 * i + 1]),
                                 {from, from + 2 * count}},
                           add);
        }
      }
      close_nodes(slices, add);
      std::copy(slices.front().values.begin(), slices.front().values.end(),
                reinterpret_cast<double*>(sum.data() + first));
    }
    for (int rank = 0; rank < n_ranks; ++rank)
      if (count_of(rank) > 0)
        ranks.broadcast(sum.data() + first_of(rank),
                        static_cast<std::size_t>(count_of(rank)) * sizeof(Cplx), rank);
  }
  return sum;
}

}  // namespace quasi::gw
