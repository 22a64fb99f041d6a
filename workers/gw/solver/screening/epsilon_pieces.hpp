#pragma once

#include "workers/gw/solver/screening/epsilon.hpp"

namespace quasi::gw {

/// Packs ε⁻¹, the diagonal of ε, the limits q → 0 and the static subspace of one q into one row of
/// doubles, for the checkpoint and for other ranks.
Piece packed(const DielectricMatrix& m);

/// Unpacks a row of packed(). The sphere and the frequencies of `m` must be set.
/// @param with_waves     true if the row holds the limits q → 0
/// @param with_subspace  true if the frequencies other than 0 are in a subspace
void unpack(const Piece& piece, bool with_waves, bool with_subspace, DielectricMatrix& m);

}  // namespace quasi::gw
