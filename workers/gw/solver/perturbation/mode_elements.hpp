#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "workers/gw/solver/perturbation/displacement_elements.hpp"
#include "workers/gw/solver/perturbation/zero_point_modes.hpp"

namespace quasi::gw {

/// Holds the first orders in one phonon mode at one k, eV. Matrices are [bra][ket]. They are empty
/// for an acoustic mode.
struct ModeElementsAtK {
  std::vector<Cplx> mean_field_ev;  ///< Σ_aα u_aα ⟨l|∂V/∂τ_aα|m⟩
  std::vector<Cplx> sigma_ev;       ///< Σ_aα u_aα ∂Σ_lm, mean at both energies
  std::vector<Cplx> gw_ev;          ///< Σ_aα u_aα g^GW_aα,lm; empty for a crystal without V_xc
  /// Long-range part Σ_aα u_aα ⟨l|∂V^L|m⟩ of g, eV. It is empty without Born charges.
  std::vector<Cplx> long_range_ev = {};
  /// Estimate of sigma_ev by blocks of random vectors, and half the width of its 95 % intervals.
  /// Real and imaginary parts have intervals of their own. Both lists are empty without blocks.
  /// They are set by add_mode_errors().
  std::vector<Cplx> sigma_estimate_ev = {}, sigma_half_width_ev = {};
};

/// Holds an estimate by blocks of random vectors and half the width of its 95 % interval.
struct StatisticalEstimate {
  double value = 0.0, half_width = 0.0;
};

/// Holds the coupling of a degenerate set of modes to the multiplets of bra and ket at one k. The
/// values do not depend on the basis of the set or of a multiplet (docs/theory/gw.md 14.6). The
/// elements of the mean field are g.
struct ModeCoupling {
  int mode = 0;                      ///< first mode of its set, from 0
  std::size_t k = 0;                 ///< position in k_index
  std::pair<int, int> bra{}, ket{};  ///< first and last band, counted from 1
  double mean_field_ev = 0.0;        ///< √ of the mean |g|²
  double sigma_ev = 0.0;             ///< √ of the mean |⟨∂Σ⟩|²
  std::optional<double> ratio;       ///< Re Σ g* ⟨∂Σ⟩ / Σ|g|²; absent where g vanishes
  double potential_ev_per_angstrom = 0.0;  ///< |g|/√(ħ/(2Mω)) with the mass of the cell
  std::optional<double> gw_ev;             ///< √ of the mean |g^GW|²; absent without V_xc
  std::optional<double> enhancement;       ///< |g^GW|/|g|; absent where g vanishes or without V_xc
  std::optional<StatisticalEstimate> sigma_error;  ///< error of sigma_ev, eV; absent without blocks
  std::optional<StatisticalEstimate> ratio_error;  ///< error of `ratio`; absent without either
};

/// Holds the shifts of the mean-field energies by the zero-point motion of one mode at one k
/// (docs/theory/gw.md 14.9). They are means over multiplets in eV, [band], and 0 for an acoustic
/// mode.
struct ZeroPointShifts {
  std::vector<double> fan_ev;           ///< second order in ∂V
  std::vector<double> debye_waller_ev;  ///< first order in ∂²V, with rigid ions
  /// These two values have g^GW in place of g between outer states. Without V_xc they are empty.
  std::vector<double> fan_gw_ev, debye_waller_gw_ev;
};

/// Holds the first orders between the outer states in phonon modes at one q.
struct ModeElements {
  ZeroPointModes modes;
  std::vector<std::vector<ModeElementsAtK>> at;           ///< [mode][k]
  std::vector<ModeCoupling> couplings;                    ///< couplings of optical modes
  std::vector<std::vector<ZeroPointShifts>> shifts = {};  ///< [mode][k]; empty at other q than 0
};

/// Transforms the first orders g_aα in displacements of all atoms (Ry/Bohr) into first orders in
/// modes (eV):
///
///   g_ν,lm = Σ_aα √(ħ/(2M_a ω_ν)) e_ν,aα g_aα,lm.
///
/// @pre all atoms are displaced along all directions
ModeElements mode_elements(ZeroPointModes modes, const DisplacementElements& displaced,
                           const Wavefunctions& waves);

/// Calculates the shifts of the outer states by all bands of the options. ∂²V acts on one atom
/// at a time, and follows from ∂V because a rigid shift changes no energy. [mode][k]
/// @param displacements  of all atoms along x, y and z, atom by atom
/// @param displaced  their elements; those with V_xc give the shifts with g^GW too
std::vector<std::vector<ZeroPointShifts>> zero_point_shifts(
    const ZeroPointModes& modes, const std::vector<Perturbation>& displacements,
    const MeanField& field, const SigmaOptions& options, const DisplacementElements& displaced,
    GwKernels& kernels);

}  // namespace quasi::gw
