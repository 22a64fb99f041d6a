#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "workers/backend/study/convergence_limit.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw {

/// One parameter of a deck, varied alone.
struct StudyAxis {
  std::string name;             ///< "bands", "cutoff_ry", "bare_cutoff_ry", "k_grid"
  std::vector<double> setting;  ///< [n_settings], ascending; the last one is the deck's own. For
                                ///< k-grids it is the number of points of the zone
  std::vector<IVec3> grids;     ///< of a k_grid axis
  std::vector<double> x;        ///< 1/N_b, E^−3/2 (∝ 1/N_G) or 1/N_k; the limit is at x = 0
  /// Further law of a k_grid axis: 1/n with n points along each periodic axis; else empty.
  std::vector<double> other_x;
  std::vector<std::size_t> states;             ///< states that every calculation holds
  std::vector<std::vector<double>> energy_ev;  ///< [n_settings][states]
  std::vector<ConvergenceLimit> limit;         ///< [states]
  std::vector<double> gap_ev;  ///< [n_settings] between these states; empty without V_xc
  ConvergenceLimit gap_limit;
};

struct ConvergenceStudy {
  bool quasiparticle = false;  ///< energies are E_qp1, else Σ (no V_xc)
  std::vector<StudyAxis> axes;
  /// For every state of the job: the change of its energy by the limits of all axes, and the sum of
  /// their errors. For a state off the coarser k-grids the axis of k-grids changes nothing, and its
  /// error is the largest error of the states on them.
  std::vector<double> added_ev, error_ev;
};

/// Solves the deck again with fewer bands (of ε and Σ together), lower cut-offs and coarser
/// k-grids, and takes the limits.
/// @param own  the solution of the deck. Its mean field is lent to the other calculations and is
/// restored on return.
/// @throws InvalidInput if the deck asks for something that a study does not allow
ConvergenceStudy study_convergence(const Deck& deck, const Workplace& place, Calculation& own,
                                   Progress& progress);

/// Writes the study under /convergence.
void write_study(const Calculation& own, const ConvergenceStudy& study, H5Writer& out);
/// Makes the part "convergence" of the summary.
nlohmann::json summarise_study(const Calculation& own, const ConvergenceStudy& study);
/// Formats the part "convergence" of a summary as a table. Each axis has a line with the gap or, if
/// there is none, the state with the largest change.
std::string study_table(const nlohmann::json& convergence);

}  // namespace quasi::gw
