#include "workers/backend/team/kept_pieces.hpp"

#include <memory>

namespace quasi {

std::vector<Piece> kept_pieces(Ranks& ranks, const Checkpoint& checkpoint,
                               const std::vector<std::string>& names) {
  std::vector<Piece> pieces(names.size());
  std::vector<double> counts(names.size(), 0.0);
  if (ranks.leads())
    for (std::size_t i = 0; i < names.size(); ++i)
      if (auto kept = checkpoint.find(names[i])) {
        counts[i] = static_cast<double>(kept->count);
        pieces[i] = std::move(*kept);
      }
  if (ranks.size() == 1) return pieces;
  ranks.broadcast(counts, 0);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (counts[i] == 0.0) continue;
    std::vector<double> values;
    if (ranks.leads()) values.assign(pieces[i].data, pieces[i].data + pieces[i].count);
    ranks.broadcast(values, 0);
    if (!ranks.leads())
      pieces[i] = piece_of(std::make_shared<const std::vector<double>>(std::move(values)));
  }
  return pieces;
}

}  // namespace quasi
