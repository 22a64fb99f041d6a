#pragma once

#include <array>
#include <optional>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/mosfet/model/bias.hpp"

namespace quasi::mosfet {

/// Fields and levels from which a bias point starts: those of the point before it in its chain, or
/// a guess.
struct BeamStart {
  BiasPoint bias;
  /// E_F at which each subband would hold its ϱ in equilibrium [n_states][nx], eV. Levels of
  /// valleys lack their offset.
  std::vector<double> fermi_ev;
  std::vector<double> potential_v;    ///< [nx][nz]
  std::array<double, 2> shifts_ev{};  ///< of E_F of the neutral inflow at source and drain
};

/// Extrapolates the quasi-Fermi levels of the last two points of a chain to a bias, linearly in
/// V_DS (docs/theory/mosfet.md 17.5). With one earlier point they are scaled with V_DS.
/// @param before  earlier points of equal V_GS, the last one at the end
/// @return nothing if there is no point with a V_DS of the same sign
std::optional<BeamStart> predicted_start(const std::vector<BeamStart>& before,
                                         const BiasPoint& bias);

/// Packs the points that predicted_start() needs as a list of numbers, for the checkpoint.
std::vector<double> pack(const std::vector<BeamStart>& before);
/// Reads a list that pack() made, with the same bits; empty if the piece holds nothing.
/// @throws StorageError for a damaged list
std::vector<BeamStart> unpack_starts(const Piece& piece);

}  // namespace quasi::mosfet
