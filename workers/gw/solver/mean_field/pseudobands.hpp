#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "workers/gw/model/pseudoband_options.hpp"
#include "workers/gw/physics/energy_windows.hpp"
#include "workers/gw/solver/mean_field/eigensolver/window_polynomials.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {

/// Use of pseudobands. Their energies suit the poles of χ or of Σ, and their random vectors are
/// independent of those of the other use. Equal vectors in W and G would add a large bias.
enum class PseudobandUse { kScreening = 0, kSelfEnergy = 1 };

/// Division of given states into protected ones and pseudobands (docs/theory/gw.md 9.3).
struct PseudobandPlan {
  int given = 0;            ///< bands that the pseudobands stand for, protected ones included
  int kept = 0;             ///< protected bands, which are unchanged
  std::vector<int> chosen;  ///< numbers r of the vectors that are used; all but those of a block
  int vectors = 0;          ///< random vectors of each window in χ
  int sigma_factor = 1;     ///< vectors of Σ over those of χ
  int left_out = -1;        ///< block of vectors that are not chosen; −1: none
  int divisor = 1;          ///< number of blocks from which one is left out
  int blocks = 1;           ///< blocks of the chosen vectors, whose bands lie together
  int seed = 1;
  bool moved_nodes = true;  ///< energies of windows contain the excess of the second moment
  double midgap_ry = 0.0;
  double plasma_ry = 0.0;  ///< ω_p of the density of the occupied states
  EnergyWindows windows{1.0, 2.0, 1.0};
  /// Polynomials of H in place of `windows`, which then stand for all states above the protected
  /// ones (filtered_pseudobands.hpp); null: the windows act on given states.
  std::shared_ptr<const WindowPolynomials> filter;
  std::vector<std::size_t> used;  ///< windows with a state at some k, by increasing energy
  double identity_error = 0.0;    ///< max |Σ_k g_k(E_n)² − 1| over all states that are replaced

  bool keeps_all() const { return filter == nullptr && kept == given; }
  /// Returns the energy that stands for a window, Ry. @param pole_ry  b of EnergyWindows::energy()
  double energy_ry(std::size_t window, double pole_ry) const {
    if (!moved_nodes)
      return midgap_ry + (filter != nullptr ? filter->node(window) : windows.node(window));
    return midgap_ry +
           (filter != nullptr ? filter->energy(window, pole_ry) : windows.energy(window, pole_ry));
  }
  /// The window and the vector of one band beyond the protected ones.
  struct Place {
    std::size_t window = 0;  ///< index into `used`
    std::size_t vector = 0;  ///< index into `chosen`
  };
  /// Returns the place of a band, counted from the first one beyond the protected bands. Bands are
  /// ordered by block, then by window, then by vector.
  Place place_of(int band) const {
    const auto at = static_cast<std::size_t>(band),
               each = chosen.size() / static_cast<std::size_t>(blocks),
               in_block = at % (used.size() * each);
    return {in_block / each, at / (used.size() * each) * each + in_block % each};
  }
  /// Returns the bands of one block, [begin, end), counted from 0.
  std::pair<int, int> bands_of_block(int block) const {
    const auto each = static_cast<int>(used.size() * chosen.size()) / blocks;
    return {kept + block * each, kept + (block + 1) * each};
  }
  /// Chooses all vectors of a use but those of the block that is left out.
  void choose(PseudobandUse use);
  /// Number of bands of the states that pseudobands() returns.
  int bands() const { return kept + static_cast<int>(used.size() * chosen.size()); }
};

/// These are steps of plan_pseudobands() and of plan_filtered_pseudobands().
///
/// Sets everything but the protected states and the windows.
PseudobandPlan begin_plan(const MeanField& field, const PseudobandOptions& options,
                          bool top_is_whole);
/// Returns the largest number of the first `given` states of one spin and k below an energy.
int largest_count_below(const Wavefunctions& waves, double energy_ry, int given);
/// Copies everything except plane waves, coefficients, energies and occupations.
Wavefunctions without_states(const Wavefunctions& given, int n_bands);
/// Adds the energies and occupations of protected bands and windows to `made`.
void set_energies(const Wavefunctions& given, const PseudobandPlan& plan, PseudobandUse use,
                  Wavefunctions& made);

/// Returns the energies of the states of a plan with those of windows at their nodes, as
/// Wavefunctions::energy_ry. @param made  the states of the plan
std::vector<double> energies_at_nodes(const Wavefunctions& made, PseudobandPlan plan,
                                      PseudobandUse use);

/// Divides the states of `field`. States below midgap + protected_ry are kept in whole multiplets.
/// That energy rises by 1 + F while the next interval has no more states than vectors at every k,
/// and all states are kept if there would be no fewer vectors than states.
/// @param top_is_whole  true if the last band is known to end a multiplet; else the last multiplet
///                      is left out
/// @throws InvalidInput if the windows do not add up to the identity
PseudobandPlan plan_pseudobands(const MeanField& field, const PseudobandOptions& options,
                                bool top_is_whole);

/// Returns the plan of Σ for that of χ. It has PseudobandPlan::sigma_factor times the vectors.
PseudobandPlan plan_of_sigma(PseudobandPlan plan);

/// Makes the states of a plan: the protected bands, then, in the order of
/// PseudobandPlan::place_of(), for each window k and vector r the band
///
///   ξ_kr = N_ξ^−½ Σ_n g_k(E_n) θ_rn |n⟩,   E[θ_rn θ*_rm] = δ_nm
///
/// over the other given states n at every k-point. θ is ±1 where all states of a k-point are real,
/// else a phase. It depends on seed, use, spin, k, n and r alone. The energy of ξ_kr is that of
/// its window, with b = 0 for χ and b = ω_p for Σ.
Wavefunctions pseudobands(const Wavefunctions& given, const PseudobandPlan& plan,
                          PseudobandUse use);

/// x = E − E_n at which Σ subtracts the closed sum over all states, Ry: states at midgap and empty
/// bands 2.5 Ry above it.
inline constexpr double kClosedSumX_ry = -2.5;

/// Returns the energy above midgap at which the complement of the given states begins, Ry: the
/// lowest energy of the last given states of all k, or the cut-off of the states.
double start_of_complement(const Wavefunctions& given, const PseudobandPlan& plan);

/// Makes random vectors of the complement of the given states (docs/theory/gw.md 9.4),
///
///   η_r = N_ξ^−½ (1 − Σ_n |n⟩⟨n|) θ_r,   E[Σ_r η_r η_r†] = 1 − Σ_n |n⟩⟨n|,
///
/// between all plane waves |k+G| ≤ √E_ψ + √E_ε, which pair products of states on the sphere E_ψ
/// reach with plane waves on the sphere E_ε. θ is independent of the factors of pseudobands().
/// @param epsilon_cutoff_ry  E_ε of Σ
Wavefunctions complement_vectors(const Wavefunctions& given, const PseudobandPlan& plan,
                                 double epsilon_cutoff_ry);

}  // namespace quasi::gw
