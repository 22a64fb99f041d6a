#pragma once

#include <string>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/ranks/ranks.hpp"

namespace quasi {

/// Returns on every rank the pieces that the checkpoint of rank 0 holds under `names`. A piece
/// without data marks a name that the checkpoint does not hold. Collective.
std::vector<Piece> kept_pieces(Ranks& ranks, const Checkpoint& checkpoint,
                               const std::vector<std::string>& names);

}  // namespace quasi
