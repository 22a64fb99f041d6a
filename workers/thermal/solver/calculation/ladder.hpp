#pragma once

#include <functional>
#include <string>
#include <vector>

#include "workers/thermal/solver/calculation/solve_case.hpp"
#include "workers/thermal/solver/renormalisation/self_consistent_phonons.hpp"

namespace quasi::thermal {

/// Phonons of a level of theory.
enum class LadderPhonons {
  kBare,          ///< of Φ₂
  kRenormalised,  ///< self-consistent, with Φ₄
  kBubble,        ///< with the static bubble of Φ₃ in addition
};

/// κ of one level of theory: the phonons, their scattering and the solution of the transport
/// equation.
struct LadderLevel {
  LadderPhonons phonons = LadderPhonons::kBare;
  bool four_phonons = false;         ///< three and four phonons scatter; false: three
  bool iterated = false;             ///< the linearised BTE is solved; false: relaxation times
  bool coherences = false;           ///< the conductivity between branches is added
  std::vector<Mat3> kappa_w_per_mk;  ///< [nT]
};

/// Phonons and constants of one temperature.
struct LadderStep {
  double temperature_k = 0.0;
  SelfConsistentConstants constants;
  std::vector<double> omega_rad_ps;         ///< [n_q][branch] of the renormalised modes
  std::vector<PairCorrection> bubble;       ///< added to `constants`, with the bubble
  std::vector<double> bubble_omega_rad_ps;  ///< [n_q][branch] with the bubble
};

/// κ by level of theory and the phonons of every temperature.
struct Ladder {
  std::vector<double> bare_omega_rad_ps;  ///< [n_q][branch]; negative: imaginary
  bool bare_solved = false;               ///< κ of bare phonons is among the levels
  std::vector<LadderLevel> levels;        ///< from bare three phonons upwards
  std::vector<LadderStep> steps;          ///< [nT]
  double renormalise_seconds = 0.0;       ///< wall time of the self-consistent phonons
  double bubble_seconds = 0.0;            ///< wall time of the static bubble
  std::vector<std::string> warnings;
};

/// One solved case of the ladder: bare phonons at all temperatures, or the phonons of one
/// temperature, renormalised without or with the bubble.
struct LadderCase {
  std::string name;  ///< "bare", "renormalised_300K" or "bubble_300K"; also names its directory
  const LatticeModel& model;
  std::vector<double> temperatures_k;
  const SolvedCase& solved;
};
using TakeLadderCase = std::function<void(const LadderCase&)>;

/// Returns "renormalised_300K" for 300 K, and "bubble_300K" with the bubble.
std::string ladder_case_name(LadderPhonons phonons, double temperature_k);

/// Returns the options of the self-consistent phonons.
SelfConsistentOptions self_consistent_options(const RenormalisationOptions& options);

/// Returns the pairs of the static bubble of `model`, whose constants are those of the
/// self-consistent phonons.
std::vector<PairCorrection> bubble_pairs(const LatticeModel& model, const CaseOptions& options,
                                         double temperature_k, const Device& device);

/// Computes κ with bare phonons and, at every temperature, with the phonons that the fourth order
/// renormalises (docs/theory/thermal.md 14). `take` gets each case as soon as it is solved. Levels
/// of bare phonons are left out if bare modes are imaginary, unless the options allow such modes.
/// All ranks call it at the same time.
/// @param fourth  constants of fourth order that renormalise; model.fourth_order scatters
/// @throws what SelfConsistentPhonons and solve_case throw.
Ladder solve_ladder(const LatticeModel& model, const SparseForceConstants& fourth,
                    const CaseOptions& options, const CaseSite& site, const TakeLadderCase& take,
                    Progress& progress);

}  // namespace quasi::thermal
