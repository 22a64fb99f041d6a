#pragma once

#include <optional>
#include <vector>

#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/pseudoband_errors/block_energies.hpp"

namespace quasi::gw {

/// Holds the estimate of one quantity from blocks of random vectors and half the width of its 95 %
/// interval, both in the unit of the quantity.
struct JackknifeEstimate {
  double value = 0.0, half_width = 0.0;
};

/// Removes the bias of first order of a smooth function θ of means over B blocks [miller1974] and
/// estimates its error:
///
///   θ_J = B θ − (B − 1) mean θ_(−b),   s² = (B − 1)/B Σ_b (θ_(−b) − mean)²
///
/// The half-width is t s, where t is Student's factor for B − 1 degrees of freedom.
/// @param pooled  θ of all blocks
/// @param without  θ_(−b) without the block b; B = 3 to 16 values
JackknifeEstimate jackknife(double pooled, const std::vector<double>& without);

/// Solves the whole deck once without each block of random vectors, and estimates the statistical
/// error of every energy and of the gap.
/// @param given  mean field of the deck before pseudobands
/// @param own    solution with all blocks
PseudobandErrors statistical_errors(const Deck& deck, const MeanField& given,
                                    const Workplace& place, const Calculation& own,
                                    Progress& progress);

/// Sets the statistical errors of a finished job whose blocks share χ (shares_blocks()). It also
/// sets the bound of the window width, unless the job misses its target and has not chosen its
/// windows.
/// @param energies  calculates the energies without a block
/// @param run  the finished job, to which the errors are added
void add_block_errors(const Deck& deck, BlockEnergies& energies, Progress& progress,
                      Calculation& run);

/// Bounds the error of the windows' energies in `run` (docs/theory/gw.md 9.6). The deck is solved
/// again with equal vectors and the energies of windows at their nodes. The change is the whole
/// correction of second order. Where poles differ from the assumed one, a fraction of it is left.
/// Slices have no such correction, and nothing is set. An existing bound stays.
/// @param given  mean field of the deck before pseudobands
void add_window_width(const Deck& deck, const MeanField& given, const Workplace& place,
                      Progress& progress, Calculation& run);

/// Calculates a deck with error bars from a mean field that is already loaded. With
/// `pseudobands.target_error_ev` the first job is a pilot. Its largest half-width gives the number
/// N_ξ of vectors that the target takes, because half-widths fall as N_ξ^−½. The job is
/// repeated with this number, at most three times.
///
/// Windows that the target has chosen become narrower where the bound of their width exceeds the
/// target. A note says whether the target is reached, or how many vectors it would take.
/// @param given  mean field of the deck before pseudobands; its states are freed if solves_once()
Calculation solve_with_errors(const Deck& deck, MeanField given, const Workplace& place,
                              Progress& progress);

}  // namespace quasi::gw
