#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "workers/backend/study/convergence_limit.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw {

/// One parameter of a deck varied alone, the others as the deck has them.
struct StudyAxis {
  std::string name;             ///< "bands", "cutoff_ry", "bare_cutoff_ry", "k_grid"
  std::vector<double> setting;  ///< [n_settings], ascending; the deck's own is the last. k-grids:
                                ///< points of the zone
  std::vector<IVec3> grids;     ///< of a k_grid axis
  std::vector<double> x;  ///< what the limit is taken in: 1/N_b, E^−3/2 (∝ 1/N_G) or 1/N_k
  std::vector<std::size_t> states;             ///< those present in every calculation
  std::vector<std::vector<double>> energy_ev;  ///< [n_settings][states]
  std::vector<ConvergenceLimit> limit;         ///< [states]
  std::vector<double> gap_ev;  ///< [n_settings] between the states above; empty without V_xc
  ConvergenceLimit gap_limit;
};

struct ConvergenceStudy {
  bool quasiparticle = false;  ///< energies are E_qp1, else Σ (no V_xc)
  std::vector<StudyAxis> axes;
  /// Of every state of the job: what all axes together add to its energy, and the sum of their
  /// errors. To a state off the coarser k-grids that axis adds nothing but the largest error of the
  /// states on them.
  std::vector<double> added_ev, error_ev;
};

/// Solves the deck again with fewer bands (of ε and Σ together), lower cut-offs and coarser
/// k-grids, and takes the limits.
/// @param own  the deck's solution; its mean field is lent to the other calculations and is back on
/// return
ConvergenceStudy study_convergence(const Deck& deck, const Workplace& place, Calculation& own,
                                   Progress& progress);

void write_study(const Calculation& own, const ConvergenceStudy& study, H5Writer& out);
nlohmann::json summarise_study(const Calculation& own, const ConvergenceStudy& study);
/// For people: a line a setting, with the gap or the state that moves most.
std::string study_table(const nlohmann::json& convergence);

}  // namespace quasi::gw
