#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "workers/gw/solver/bands/band_interpolation.hpp"
#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"
#include "workers/gw/solver/screening/coulomb_interaction.hpp"
#include "workers/gw/solver/self_energy/graphical.hpp"
#include "workers/gw/solver/self_energy/outer_loop.hpp"
#include "workers/gw/solver/self_energy/sigma_matrix.hpp"
#include "workers/io/settings.hpp"

namespace quasi::gw {

/// Frequencies of ε⁻¹ beside those that the method of Σ needs; kAutomatic: only those.
enum class FrequencySet { kAutomatic, kStatic, kImaginary, kReal, kBoth, kGodbyNeeds };

/// Which solution of the quasiparticle equation becomes E_qp1.
enum class Solution { kLinearised, kGraphical, kDyson };

/// How the limit q → 0 is taken: occupied states at k + q₀ from WFNq; the same, diagonalised here;
/// or k·p.
enum class LongWave { kStates, kDense, kVelocity };

/// A GW job as the user wrote it; every key is described in docs/reference/gw.md.
struct Deck {
  struct {
    bool empirical = false;
    std::filesystem::path wfn, wfnq, wfn_outer, rho, vxc, vsc, vkb;  ///< empty: not given
    EmpiricalCrystal crystal;
    LongWave long_wave = LongWave::kStates;  ///< with files
    Vec3 q0{0.001, 0.0, 0.0};
    double max_projector_residual = 1e-4;
  } mean_field;
  struct {
    double cutoff_ry = 0.0;  ///< 0: that of stored files
    int bands = 0;           ///< 0: all
    FrequencySet frequencies = FrequencySet::kAutomatic;
    std::filesystem::path eps0mat,
        epsmat;                 ///< stored ε⁻¹ that Σ starts from; empty: it is calculated
    bool write = true;          ///< eps0mat.h5 and epsmat.h5 among the results
    std::vector<Vec3> qpoints;  ///< as a field deck lists them; empty: the irreducible points
    int occupied_bands = 0;     ///< as a field deck counts them; 0: WFN's
    double real_max_ev = 20.0, real_step_ev = 0.25;  ///< grids of contour deformation
    double broadening_ev = 0.1;
    int imaginary_points = 20;
    double imaginary_scale_ry = 2.0;
    SubspaceOptions subspace;
  } epsilon;
  struct {
    SigmaMethod method = SigmaMethod::kHybertsenLouie;
    int bands = 0;                    ///< 0: all
    double bare_cutoff_ry = 0.0;      ///< 0: the wavefunctions'
    double screened_cutoff_ry = 0.0;  ///< 0: that of ε
    int band_min = 1, band_max = 0;   ///< 0: two above the highest occupied
    std::vector<Vec3> kpoints;        ///< empty: all
    InvalidMode invalid = InvalidMode::kStatic;
    ImaginaryRule imaginary_rule = ImaginaryRule::kQuadratic;
    bool remainder = false;
    bool exact_ch = false;
    Derivative derivative = Derivative::kAnalytic;
    double derivative_step_ev = 0.0;  ///< 0: 0.02 central, 1 forward
    Solution solution = Solution::kLinearised;
    SpectrumGrid spectrum;
    SigmaSubspaceOptions subspace;
    bool full_matrix = false;
    SigmaMatrixOptions matrix;
    OuterLoopOptions outer;
    BandPath path;
    BandOrder path_order = BandOrder::kAutomatic;
    double imaginary_frequency_ev = 2.0 * kRydberg_ev;
    PoleRules rules;
  } sigma;
  CoulombOptions coulomb;
  bool convergence_study = false;  ///< --converge
  /// Settings of a convergence study below the deck's own; empty: shares of them, and the grids
  /// inside its k-grid.
  struct {
    std::vector<double> bands;  ///< of Σ; those of ε in proportion
    std::vector<double> cutoffs_ry, bare_cutoffs_ry;
    std::vector<IVec3> k_grids;
  } converge;
  bool compatible = false;  ///< compat = "bgw"
  bool stop_after_epsilon = false;
  bool self_test = true;
  double checkpoint_seconds = 30.0;  ///< least time between two checkpoints
};

Deck parse_deck(const std::string& text, const std::vector<Setting>& settings,
                const std::string& where, const std::filesystem::path& directory);
/// A TOML file, a directory that holds deck.toml, or the field's own decks: a directory that holds
/// epsilon.inp or sigma.inp, or one of these files (input/field_deck.hpp).
Deck read_deck(const std::filesystem::path& path, const std::vector<Setting>& settings);

}  // namespace quasi::gw
