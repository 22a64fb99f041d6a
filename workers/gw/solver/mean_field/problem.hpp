#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/gw/model/mean_field.hpp"
#include "workers/gw/solver/mean_field/brillouin_zone.hpp"
#include "workers/gw/solver/screening/long_wave.hpp"

// The folder workers/gw/solver/mean_field makes the states that GW starts from. Begin here with
// MeanField and go on with load_mean_field.hpp, which makes it from files or from a built-in
// crystal (empirical_pseudopotential.hpp). brillouin_zone.hpp unfolds the k-points,
// dense_hamiltonian.hpp calculates further states, gauge.hpp fixes their phases, density.hpp sums
// their density, and local_matrix.cpp calculates matrix elements of potentials.
namespace quasi::gw {

struct HamiltonianParts;
struct InnerStates;
class SpinOrbitTerm;

/// Makes the occupied states and one more on the grid of a list of states shifted by any q.
using ShiftedStates = std::function<Wavefunctions(const Wavefunctions& waves, const Vec3& q,
                                                  GwKernels& kernels, Progress& progress)>;

/// A mean field ready for GW: wavefunctions with their full zone, the shifted set for q → 0, the
/// density and quantities derived from them.
struct MeanField {
  Wavefunctions waves;
  BrillouinZone zone;
  std::optional<Wavefunctions> shifted;  ///< WFNq: at least the occupied bands on k + q₀
  std::optional<BrillouinZone> shifted_zone;
  /// Random vectors at every k of `waves` for all that its states leave out of the plane waves of
  /// pair products (complement_vectors()); Σ subtracts the closed sum with them. Absent: it does
  /// not.
  std::optional<Wavefunctions> complement;
  /// Inner states of Σ where they are those of a displaced crystal (displaced/inner_states.hpp);
  /// null: the states of `waves` are inner states too.
  std::shared_ptr<const InnerStates> inner = {};
  /// The Γ-centred zone of q = k − k′, to which ε⁻¹ belongs, if the states lie on a shifted grid
  /// (WFN_outer). Absent if it is `zone`.
  std::optional<BrillouinZone> q_zone;
  Vec3 q0{};                 ///< reduced
  bool by_velocity = false;  ///< q → 0 by k·p from `waves` alone; `shifted` is then absent
  std::shared_ptr<const RadialProjectors>
      nonlocal;  ///< non-local part of H, for by_velocity; null: H is local
  /// Spin–orbit part of H, for by_velocity; null: H does not act on spins.
  std::shared_ptr<const SpinOrbitTerm> spin_orbit;
  PlaneWaveField density;  ///< ρ(G); ρ(0) is the number of electrons
  int n_occupied = 0;      ///< occupied bands per spin, the same at every k
  std::vector<int> n_occupied_of_spin;
  int added_k = 0;  ///< points −k at the end of the list that WFN left to time reversal

  /// Returns the parts of H at a k-point of a list of states; empty: H is not at hand.
  std::function<HamiltonianParts(const Wavefunctions&, int spin, int ik)> hamiltonian;

  /// Makes occupied states between the k-points of `waves`; empty: H is not at hand.
  ShiftedStates shifted_states;

  /// Energies of the mean field itself, [spin][k][band], where an outer loop has put others into
  /// waves.energy_ry, which are those of G; else empty.
  std::vector<double> reference_energy_ry;

  /// ⟨n|H|n⟩ of the mean field for the present states, if reference_energy_ry is set. Dipoles are
  /// divided by differences of these energies. ⟨v|r|c⟩ = ⟨v|∂H/∂k|c⟩/(E_v − E_c) is a property of
  /// the states, which the energies of G must not change.
  std::vector<double> dipole_energy_ry;

  double reference_energy(int spin, int ik, int band) const {
    return of_state(reference_energy_ry, spin, ik, band);
  }
  double dipole_energy(int spin, int ik, int band) const {
    return of_state(dipole_energy_ry, spin, ik, band);
  }
  double of_state(const std::vector<double>& list, int spin, int ik, int band) const {
    if (list.empty()) return waves.energy(spin, ik, band);
    return list[(static_cast<std::size_t>(spin) * waves.k.size() + static_cast<std::size_t>(ik)) *
                    static_cast<std::size_t>(waves.n_bands) +
                static_cast<std::size_t>(band)];
  }
  const Crystal& crystal() const { return waves.header.crystal; }
  const BrillouinZone& transfers() const { return q_zone ? *q_zone : zone; }
  int n_spins() const { return waves.header.n_spins; }
  int n_spinor() const { return waves.header.n_spinor; }
  double n_electrons() const;
  /// Ω N_k, the normalisation of every zone sum.
  double zone_volume_bohr3() const {
    return crystal().volume_bohr3 * static_cast<double>(zone.size());
  }
};

/// Makes a mean field of its parts and derives q₀ from the two lists of k.
/// @throws InvalidInput if crystals differ, a grid is incomplete, a k-point has no gap, or WFNq
/// lacks occupied bands
MeanField make_mean_field(Wavefunctions waves, std::optional<Wavefunctions> shifted,
                          PlaneWaveField density);

/// Makes the mean field of WFN_outer, on the grid of `field` shifted by any k. Σ is calculated at
/// its points with ε⁻¹ of `field`. It holds the outer states at k and the inner states at k − q,
/// because q lies on the unshifted grid.
/// @throws InvalidInput if cell, cut-off, grid or occupied bands differ, or the points are no
/// complete grid
MeanField make_outer_mean_field(const MeanField& field, Wavefunctions outer);

/// Returns the occupied bands of each spin, from ifmax and the occupations.
/// @throws InvalidInput if they differ between k-points, or a band is occupied in part
std::vector<int> occupied_bands(const Wavefunctions& waves);

/// Returns the largest number ≤ wanted that splits no multiplet (|ΔE| < 1e-6 Ry) at any of the
/// k-points `at` (empty: all).
/// @throws InvalidInput if `wanted` exceeds the bands of the file, or nothing above `minimum` is
/// left.
int band_count_without_split(const Wavefunctions& waves, int wanted, int minimum,
                             const std::string& what, const std::vector<int>& at = {});

/// Returns all numbers of bands in [low, high] that split no multiplet at any k-point.
std::vector<int> whole_band_counts(const Wavefunctions& waves, int low, int high);

/// Returns the multiplets within the bands [begin, end) of one spin and k as (first, last + 1).
std::vector<std::pair<int, int>> multiplets(const Wavefunctions& waves, int spin, int ik, int begin,
                                            int end);

inline constexpr double kDegenerate_ry = 1e-6;

}  // namespace quasi::gw
