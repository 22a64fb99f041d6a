#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"
#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/model/four_phonon_options.hpp"
#include "workers/thermal/model/symmetry.hpp"
#include "workers/thermal/solver/four_phonon/contraction_plan_4ph.hpp"
#include "workers/thermal/solver/four_phonon/problem_loading_4ph.hpp"
#include "workers/thermal/solver/four_phonon/team_4ph.hpp"
#include "workers/thermal/solver/four_phonon/tile_plan_4ph.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"
#include "workers/thermal/solver/three_phonon/running_sums.hpp"

namespace quasi::thermal {

/// Four-phonon scattering of a list of points, by channel. A row is a mode: place in the list of
/// points times n_branches plus branch.
struct Rates4ph {
  std::int64_t n_rows = 0;
  int n_temperatures = 0;
  std::vector<double> normal_per_ps;         ///< [3 channels][n_temperatures][n_rows]
  std::vector<double> umklapp_per_ps;        ///< the same
  std::vector<double> weighted_phase_space;  ///< the same; ΣW/Nq², ps⁵
  std::vector<double> phase_space;           ///< [3][n_rows] Σδ/(Nq³ nb⁴), ps
  std::vector<double> processes;     ///< [3][n_rows] unordered tuples (coinciding phonons count
                                     ///< ½ or 1/6 with exact_weights)
  std::vector<double> error_per_ps;  ///< [3][n_temperatures][n_rows] standard error where the rate
                                     ///< is a sample's; empty: every process is summed
  double evaluations = 0.0;          ///< matrix elements computed, over all rows and channels

  std::int64_t at(Channel4ph channel, int temperature, std::int64_t row) const {
    return (static_cast<std::int64_t>(channel) * n_temperatures + temperature) * n_rows + row;
  }
  std::int64_t at(Channel4ph channel, std::int64_t row) const {
    return static_cast<std::int64_t>(channel) * n_rows + row;
  }
  double rate_per_ps(Channel4ph channel, int temperature, std::int64_t row) const {
    const auto i = static_cast<std::size_t>(at(channel, temperature, row));
    return normal_per_ps[i] + umklapp_per_ps[i];
  }
  /// Over all channels: w4 of docs/theory/thermal.md 8.
  double total_per_ps(int temperature, std::int64_t row) const;
  /// Its standard error; 0 where nothing is sampled.
  double total_error_per_ps(int temperature, std::int64_t row) const;
  /// Σ over rows of the processes of a channel.
  double total_processes(Channel4ph channel) const;
};

/// Makes the rules of the kernels from the options; the automatic floor of σ needs the modes.
Rules4ph rules_4ph(const FourPhononOptions& options, const Modes& modes);

/// Gathers the arrays of the kernels. Where the width is symmetric, weights are exact and rates are
/// averaged over degenerate sets, q' runs over the irreducible wedge of the little group of each
/// point; else q' runs over the whole mesh.
/// @param points  of the rates; usually symmetry.irreducible
/// @throws InvalidInput for a mesh or a branch count beyond the range of the indices.
Problem4ph make_problem_4ph(const Crystal& crystal, const Modes& modes, const Symmetry& symmetry,
                            const FourPhononOptions& options,
                            const SparseForceConstants& fourth_order,
                            const std::vector<std::int32_t>& points);

/// Returns the part of a problem that sizes the buffers of a device: mesh, branches, rules,
/// temperatures, points, stars, and the number of total momenta. It takes much less time than the
/// whole problem, so that devices can allocate while the host goes on.
Problem4ph outline_problem_4ph(const Modes& modes, const Symmetry& symmetry,
                               const FourPhononOptions& options,
                               const std::vector<std::int32_t>& points);

/// Digest of everything that sums over processes depend on; it identifies them in a checkpoint.
std::uint64_t digest_of(const Problem4ph& problem);

/// Sums that can begin: all devices of a team load the problem, and its tiles are planned. Problem
/// and kernels must outlive it.
struct ReadySums4ph {
  ReadySums4ph(const Team4ph& team, const Problem4ph& problem)
      : loading(team, problem), plan(plan_tiles_4ph(problem)) {}

  ProblemLoading4ph loading;
  TilePlan4ph plan;  ///< made while the devices load
};

/// Computes rates from sums over all total momenta, tile by tile in the order of plan_tiles_4ph.
/// One tile is the unit of work of a device, of progress and of the checkpoint. Devices take the
/// next tile when they are free, and tiles are added in the order of the plan, so that any number
/// of devices gives the same bits. Progress is the share of the predicted work that is done.
/// Finished tiles of an earlier attempt at the same problem are read from the checkpoint, with the
/// same bits. All ranks of the team call it at the same time and get the rates.
/// @param team  its kernels load the problem
/// @throws Cancelled, and whatever the kernels throw.
Rates4ph scattering_rates_4ph(const Problem4ph& problem, const PhysicalConstants& constants,
                              const Team4ph& team, Progress& progress,
                              const CheckpointRule& checkpoint_rule = {});
/// Does so with sums that are ready to begin.
Rates4ph scattering_rates_4ph(const Problem4ph& problem, const PhysicalConstants& constants,
                              ReadySums4ph& ready, const Team4ph& team, Progress& progress,
                              const CheckpointRule& checkpoint_rule = {});

/// Computes rates from sums over all total momenta, [n_rows][3][SumLayout4ph].
Rates4ph rates_of_sums_4ph(const Problem4ph& problem, const PhysicalConstants& constants,
                           const std::vector<double>& sums);

/// Replaces rates, phase spaces and counts of each degenerate set by their mean over the set.
void average_degenerate_4ph(const Modes& modes, const std::vector<std::int32_t>& points,
                            Rates4ph& rates);

}  // namespace quasi::thermal
