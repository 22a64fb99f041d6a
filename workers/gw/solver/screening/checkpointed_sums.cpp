#include "workers/gw/solver/screening/checkpointed_sums.hpp"

#include <algorithm>
#include <cstdio>

#include "workers/gw/solver/screening/polarizability/packed_chi.hpp"

namespace quasi::gw {
namespace {

std::string name_of(const std::string& prefix, std::int64_t begin, std::int64_t count) {
  return prefix + std::to_string(begin) + "+" + std::to_string(count);
}

}  // namespace

std::vector<ChiItem> chi_items(const std::string& prefix, std::int64_t n_portions, Ranks& ranks,
                               const Checkpoint& checkpoint) {
  std::vector<double> spans;
  for (const std::string& name : checkpoint.names(prefix)) {
    long begin = 0, count = 0;
    if (std::sscanf(name.c_str() + prefix.size(), "%ld+%ld", &begin, &count) == 2)
      spans.insert(spans.end(), {static_cast<double>(begin), static_cast<double>(count)});
  }
  if (ranks.size() > 1) ranks.broadcast(spans, 0);
  std::vector<ChiItem> items;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < spans.size(); i += 2) {
    items.push_back(
        {static_cast<std::int64_t>(spans[i]), static_cast<std::int64_t>(spans[i + 1]), {}});
    names.push_back(name_of(prefix, items.back().begin, items.back().count));
  }
  const std::vector<Piece> kept = kept_pieces(ranks, checkpoint, names);
  std::vector<char> there(static_cast<std::size_t>(n_portions), 0);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].kept = kept[i];
    std::fill_n(there.begin() + items[i].begin, items[i].count, char{1});
  }
  for (std::int64_t index = 0; index < n_portions; ++index)
    if (there[static_cast<std::size_t>(index)] == 0) items.push_back({index, 1, {}});
  std::sort(items.begin(), items.end(),
            [](const ChiItem& a, const ChiItem& b) { return a.begin < b.begin; });
  return items;
}

void CheckpointedSums::push(ChiNode node, bool from_checkpoint) {
  if (from_checkpoint) names_.push_back(name_of(prefix_, node.begin, node.count));
  push_node(nodes_, std::move(node));
  if (from_checkpoint || !checkpoint_.is_turn(turn_)) return;
  std::vector<std::pair<std::string, Piece>> fresh;
  for (const ChiNode& sum : nodes_) {
    std::string name = name_of(prefix_, sum.begin, sum.count);
    if (const auto same = checkpoint_.find(name)) {
      fresh.emplace_back(std::move(name), *same);
      continue;
    }
    fresh.emplace_back(std::move(name), PackedChi(*sum.chi).piece());
  }
  std::vector<std::string> now;
  for (const auto& [name, piece] : fresh) now.push_back(name);
  checkpoint_.exchange(names_, std::move(fresh), turn_.draining);
  names_ = std::move(now);
}

}  // namespace quasi::gw
