#pragma once

#include <vector>

#include "workers/backend/checkpoint.hpp"
#include "workers/backend/ranks.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace quasi::gw {

/// Sum of the parts of all ranks on every rank: rank after rank, each rank's parts in the order given, one after the
/// other, so that the bits are those of one process. The running sum goes from rank to rank in pieces, and all ranks
/// work at different pieces at once. Together; the parts are let go.
std::vector<Cplx> ordered_sum(Ranks& ranks, std::vector<Piece>& parts);

/// Pieces that rank 0's checkpoint has kept under `names`, on every rank; no data where it has none. Together.
std::vector<Piece> kept_pieces(Ranks& ranks, const Checkpoint& checkpoint, const std::vector<std::string>& names);

}  // namespace quasi::gw
