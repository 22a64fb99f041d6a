#pragma once

#include <vector>

#include "workers/gw/solver/bands/band_interpolation.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"

namespace quasi::gw {

/// A point of the grid of mean-field states and its weight at a point between grid points.
struct GridNeighbour {
  Vec3 k{};  ///< not folded: beside the point it is for
  double weight = 0.0;
};

/// Linear interpolation in the tetrahedra of the grid's cells (each cut along its shortest
/// diagonal), averaged over the crystal's operations, so that the weights have its symmetry. They
/// add up to 1; at a point of the grid it is the only neighbour.
std::vector<GridNeighbour> grid_neighbours(const MeanField& field, const Vec3& k);

/// Bands along a path; each row follows one state from point to point by its overlaps, through
/// crossings. Rows start in order of energy.
struct CharacterBands {
  PathBands mean_field;                           ///< eigenvalues of H at the path's points, exact
  std::vector<std::vector<double>> corrected_ev;  ///< [band][point]; empty without corrections
  /// [band][point]: how much of the state lies among the grid's states whose correction is known; 1
  /// at points of the grid.
  std::vector<std::vector<double>> share;
};

/// Carries the corrections that are known at the grid's points to the states of a path
/// (docs/theory/gw.md 10). There the correction is the operator
///
///   Δ(k) = Σ_j w_j Σ_n |n k_j⟩ Δ_n(k_j) ⟨n k_j| ,  j: the neighbours of k in the grid, periodic
///   parts of the states
///
/// between the states of H at k, normalised by that of Δ = 1 (S⁻½ … S⁻½), and the energies are the
/// eigenvalues of H + Δ(k): no rank enters, no choice of phases or of states within a multiplet,
/// and a state takes the correction of those it resembles. Occupied states are carried by occupied
/// ones, empty by empty ones, since what k·p mixes across the gap must not mix corrections of
/// opposite sign. What lies outside of the window counts as its outermost band. At a point of the
/// grid the result is what was given, averaged over multiplets.
/// @param band_begin    first band, from 0; the window has as many bands as `correction_ev`, or
/// `n_bands` without corrections
/// @param mean_field_ev, correction_ev  [band][irreducible k]; no corrections: empty
/// @throws InvalidInput if `states` gives fewer bands
CharacterBands bands_by_character(const MeanField& field, int spin, int band_begin, int n_bands,
                                  const std::vector<std::vector<double>>& mean_field_ev,
                                  const std::vector<std::vector<double>>& correction_ev,
                                  const BandPath& path, const StatesAt& states, Progress& progress);

}  // namespace quasi::gw
