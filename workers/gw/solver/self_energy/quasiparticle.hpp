#pragma once

#include <optional>
#include <vector>

#include "workers/gw/solver/self_energy/sigma.hpp"

namespace quasi::gw {

/// One quasiparticle energy with its parts, eV, averaged over the multiplet of its state.
struct Quasiparticle {
  Vec3 k{};
  int k_index = 0;
  int band = 1;  ///< counted from 1
  int spin = 1;  ///< counted from 1
  double mean_field_ev = 0.0;
  std::optional<double> vxc_ev;  ///< absent where the mean field has no V_xc
  double x_ev = 0.0, sx_ev = 0.0, ch_ev = 0.0;
  double sigma_ev = 0.0;    ///< X + (SX − X) + CH, remainder included
  double ch_bare_ev = 0.0;  ///< CH without static remainder
  /// E_qp0 and E_qp1; absent without V_xc.
  std::optional<double> qp0_ev, qp1_ev;
  double z = 1.0;  ///< quasiparticle weight Z
};

/// Solves the linearised quasiparticle equation (docs/theory/gw.md 6.6)
///
///   E_qp0 = E_mf − V_xc + Re Σ(E),   Z = 1/(1 − dΣ/dE),   E_qp1 = E + Z (E_qp0 − E)
///
/// at the energy E where Σ was evaluated: E_mf, or the energy of an outer loop. Parts of Σ are
/// averaged over multiplets.
/// @param sigma   Σ whose first offsets are those of `rule`
/// @param vxc_ev  diagonal V_xc of the outer states in the order of `sigma`; empty: no V_xc
/// @param remainder  true: add the static remainder ½ (CH_exact − CH_partial)
/// (docs/theory/gw.md 6.4 [deslippe2013])
/// @throws NotConverged where Σ or Z is not finite
std::vector<Quasiparticle> quasiparticles(const MeanField& field,
                                          const std::vector<SelfEnergyAtK>& sigma,
                                          const std::vector<std::vector<double>>& vxc_ev,
                                          const SigmaOptions& options, const DerivativeRule& rule,
                                          bool remainder);

/// Direct gap at one k and spin.
struct GapAtK {
  Vec3 k{};
  int spin = 1;
  double mean_field_ev = 0.0;
  std::optional<double> quasiparticle_ev;
  /// True if an occupied band of the mean field has a higher quasiparticle energy than an empty
  /// one. Σ was then calculated with other occupations than its own energies imply.
  bool inverted = false;
};
/// Gaps of the calculated states, eV.
struct Gaps {
  std::vector<GapAtK> direct;
  /// The gap between the highest occupied and the lowest empty state of the list, over all its
  /// k-points and spins. It is empty if the list lacks occupied or empty states.
  std::optional<double> fundamental_mean_field_ev, fundamental_ev;
  /// The fundamental quasiparticle gap of each spin alone, [n_spins].
  std::vector<std::optional<double>> fundamental_of_spin_ev;
  int listed_k = 0;  ///< k-points of the list
  int all_k = 0;     ///< irreducible k-points of the mean field
  bool over_all_k() const { return listed_k >= all_k; }
};
/// Calculates the gaps of a list of states. At each k and spin the energies are sorted, and as many
/// of the lowest count as occupied as the list holds occupied bands.
Gaps gaps(const MeanField& field, const std::vector<Quasiparticle>& list);

}  // namespace quasi::gw
