#pragma once

#include <optional>
#include <vector>

#include "workers/gw/solver/self_energy/quasiparticle.hpp"

namespace quasi::gw {

/// A solution of E = E_mf − V_xc + Re Σ(E) and its weight Z = 1/(1 − dΣ/dE) there.
struct Root {
  double energy_ev = 0.0, z = 1.0;
};
/// Number of roots within the window of energies.
enum class RootStatus {
  kUnique,
  kMultiple,      ///< several roots
  kExtrapolated,  ///< no root; one beyond the window, from the slope at its nearer end
  kNone,
};
/// Name of a status in results, for example "unique".
const char* name_of(RootStatus status);

/// Σ(E) of one multiplet, its spectral function and its roots.
struct Spectrum {
  Vec3 k{};
  int k_index = 0, spin = 1;
  int band_begin = 1, band_end = 1;  ///< counted from 1, last included
  std::vector<double> energy_ev;
  std::vector<Cplx> sigma_ev;           ///< X + SX − X + CH, remainder included
  std::vector<double> spectral_per_ev;  ///< A(ω); empty without V_xc
  double norm = 0.0;                    ///< ∫A over the window
  RootStatus status = RootStatus::kNone;
  std::vector<Root> roots;   ///< ascending; one if extrapolated
  std::optional<Root> best;  ///< the root of largest Z ≤ 1
};

/// Finds the roots of E − offset − Re Σ(E) by sign changes. Each root is refined on the cubic
/// through four neighbours.
/// @param sigma_ev  Re Σ on the ascending grid `energy_ev`, at least 4 points
/// @param offset_ev E_mf − V_xc
std::vector<Root> graphical_roots(const std::vector<double>& energy_ev,
                                  const std::vector<double>& sigma_ev, double offset_ev);

/// Outer states and energies of spectra().
struct SpectrumOptions {
  int band_min = 1, band_max = 1;  ///< outer states, counted from 1, last included
  /// Index of the first of SigmaOptions::offsets_ry that belongs to the grid.
  std::size_t first_offset = 0;
  SpectrumGrid grid;
  /// Offsets that Σ was evaluated at from `first_offset` on, Ry; empty: those of the grid.
  std::vector<double> offsets_ry = {};
  /// Energies to which Σ is interpolated, eV; empty: those of the offsets.
  std::vector<double> energy_ev = {};
  bool remainder = false;  ///< add the static remainder ½ (CH_exact − CH_partial)
};

/// Calculates Σ(E) of every multiplet and, with V_xc, its spectral function and roots
/// (docs/theory/gw.md 6.6):
///
///   A(E) = (1/π) (|Im Σ| + η) / [(E − E_mf + V_xc − Re Σ)² + (|Im Σ| + η)²]
///
/// @param sigma   Σ with SpectrumGrid::offsets_ry() as the offsets from `first_offset` on
/// @param vxc_ev  diagonal V_xc of the outer states in the order of `sigma`; empty: no V_xc
std::vector<Spectrum> spectra(const MeanField& field, const std::vector<SelfEnergyAtK>& sigma,
                              const std::vector<std::vector<double>>& vxc_ev,
                              const SpectrumOptions& options);

/// Replaces the linearised energy and Z of each state by those of its best root, if it has one.
void use_graphical_solution(const std::vector<Spectrum>& spectra, std::vector<Quasiparticle>& list);

}  // namespace quasi::gw
