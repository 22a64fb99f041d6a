#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "workers/gw/solver/coulomb_interaction.hpp"
#include "workers/gw/solver/empirical_pseudopotential.hpp"
#include "workers/gw/solver/sigma.hpp"
#include "workers/io/settings.hpp"

namespace quasi::gw {

/// How the slope dΣ/dE of the linearised quasiparticle equation is found.
enum class Derivative { kCentral, kForward };

/// A GW job as the user wrote it; every key is described in docs/jobs/gw.md.
struct Deck {
  struct {
    bool empirical = false;
    std::filesystem::path wfn, wfnq, rho, vxc, vsc, vkb;  ///< empty: not given
    EmpiricalCrystal crystal;
  } mean_field;
  struct {
    double cutoff_ry = 0.0;
    int bands = 0;               ///< 0: all
    double real_max_ev = 20.0, real_step_ev = 0.25;  ///< grids of contour deformation
    double broadening_ev = 0.1;
    int imaginary_points = 20;
  } epsilon;
  struct {
    SigmaMethod method = SigmaMethod::kHybertsenLouie;
    int bands = 0;               ///< 0: all
    double bare_cutoff_ry = 0.0;      ///< 0: the wavefunctions'
    double screened_cutoff_ry = 0.0;  ///< 0: that of ε
    int band_min = 1, band_max = 0;   ///< 0: two above the highest occupied
    std::vector<Vec3> kpoints;        ///< empty: all
    InvalidMode invalid = InvalidMode::kStatic;
    ImaginaryRule imaginary_rule = ImaginaryRule::kQuadratic;
    bool remainder = false;
    bool exact_ch = false;
    Derivative derivative = Derivative::kCentral;
    double derivative_step_ev = 0.0;  ///< 0: 0.02 central, 1 forward
    double imaginary_frequency_ev = 2.0 * kRydberg_ev;
    PoleRules rules;
  } sigma;
  CoulombOptions coulomb;
  bool compatible = false;  ///< compat = "bgw"
};

Deck parse_deck(const std::string& text, const std::vector<Setting>& settings, const std::string& where,
                const std::filesystem::path& directory);
/// A TOML file, or a directory that holds deck.toml.
Deck read_deck(const std::filesystem::path& path, const std::vector<Setting>& settings);

}  // namespace quasi::gw
