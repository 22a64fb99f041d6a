#pragma once

#include <vector>

#include "workers/gw/solver/bands/band_interpolation.hpp"
#include "workers/gw/solver/bands/grid_neighbours.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"

// The folder workers/gw/solver/bands calculates energies along a path of k (docs/theory/gw.md 10).
// Begin here for bands that follow the character of states, and with band_interpolation.hpp for
// bands by star functions. grid_neighbours.hpp gives the weights of grid points, band_follower.hpp
// follows states from point to point, and state_matching.hpp compares states.
namespace quasi::gw {

/// Bands along a path. Each row follows one state from point to point by its overlaps, also through
/// crossings. Rows start in order of energy.
struct CharacterBands {
  PathBands mean_field;                           ///< exact eigenvalues of H at the points
  std::vector<std::vector<double>> corrected_ev;  ///< [band][point]; empty without corrections
  /// Share of each state among the states of the grid whose correction is known, [band][point]. It
  /// is 1 at points of the grid.
  std::vector<std::vector<double>> share;
};

/// Energies and corrections of consecutive bands of one spin at the points of the grid.
struct BandWindow {
  int spin = 0;
  int band_begin = 0;  ///< first band, from 0
  int n_bands = 0;
  std::vector<std::vector<double>> mean_field_ev;  ///< [band][irreducible k]
  std::vector<std::vector<double>> correction_ev;  ///< [band][irreducible k]; empty: not known
};

/// Carries the corrections at the points of the grid to the states of a path
/// (docs/theory/gw.md 10). The correction at k is the operator
///
///   Δ(k) = Σ_j w_j Σ_n |n k_j⟩ Δ_n(k_j) ⟨n k_j|
///
/// between the states of H at k, with the neighbours k_j of k in the grid and periodic parts of the
/// states. It is normalised by the operator of Δ = 1 (S^−½ … S^−½). The corrected energies are the
/// eigenvalues of H + Δ(k). They depend neither on the rank of a band, nor on phases, nor on the
/// choice of states within a multiplet: a state takes the correction of the states that it
/// resembles.
///
/// Occupied states take the corrections of occupied states, and empty states those of empty states.
/// k·p mixes states across the gap, where corrections have opposite signs. The part of a state
/// outside of the window takes the correction of the outermost band. At a point of the grid the
/// result is the given correction, averaged over multiplets.
/// @param states  gives the eigenstates of H at any k
/// @throws InvalidInput if `states` gives fewer bands than the window needs
CharacterBands bands_by_character(const MeanField& field, const BandWindow& window,
                                  const BandPath& path, const StatesAt& states, Progress& progress);

}  // namespace quasi::gw
