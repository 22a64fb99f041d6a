#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <optional>
#include <vector>

#include "workers/gw/model/memory_limits.hpp"
#include "workers/gw/model/pole_options.hpp"
#include "workers/gw/physics/contour.hpp"
#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Method of the self-energy (docs/theory/gw.md 6). kRealAxis and kImaginaryAxis check kContour:
/// they find an equal Σ from Im ε⁻¹ on a dense real grid and by analytic continuation.
enum class SigmaMethod {
  kCohsex,
  kHybertsenLouie,
  kGodbyNeeds,
  kContour,
  kRealAxis,
  kImaginaryAxis
};
/// Returns true for methods that need ε⁻¹ at frequencies other than those of plasmon poles.
inline bool uses_frequencies(SigmaMethod method) { return method >= SigmaMethod::kContour; }
/// Returns true for methods with plasmon poles.
inline bool uses_plasmon_poles(SigmaMethod method) {
  return method == SigmaMethod::kHybertsenLouie || method == SigmaMethod::kGodbyNeeds;
}

/// Returns true for methods whose first order in a perturbation is known (docs/theory/gw.md 14).
inline bool has_first_order(SigmaMethod method) { return method <= SigmaMethod::kContour; }

/// Treatment of an element whose ω̃² is negative (docs/theory/gw.md 6.2). The numbers are those of
/// BerkeleyGW's input files.
enum class InvalidMode { kSkip = 0, kImaginary = 1, kTwoRydberg = 2, kStatic = 3 };

/// Frequencies at which the three full-frequency methods need ε⁻¹. DielectricMatrix::inverse stores
/// them in this order: ω = 0, the imaginary points after the first, the real points.
struct ContourGrid {
  std::vector<double> imaginary_ry;  ///< u_j; the first is 0
  std::vector<double> real_ry;       ///< ω_i; the first is 0 and has a separate broadening
  ImaginaryRule rule = ImaginaryRule::kQuadratic;
  /// Points ω at which kImaginaryAxis evaluates Σ(μ + iω), μ at midgap, to continue it to E.
  std::vector<double> continuation_ry;

  /// Returns all frequencies in the order of DielectricMatrix::inverse. Real ones get iη.
  std::vector<std::complex<double>> frequencies_ry(double broadening_ry,
                                                   double broadening_at_zero_ry) const {
    std::vector<std::complex<double>> all{std::complex<double>{}};
    for (std::size_t j = 1; j < imaginary_ry.size(); ++j) all.emplace_back(0.0, imaginary_ry[j]);
    for (std::size_t i = 0; i < real_ry.size(); ++i)
      all.emplace_back(real_ry[i], i == 0 ? broadening_at_zero_ry : broadening_ry);
    return all;
  }
};

/// Subspace of the full-frequency Σ: the eigenvectors with most of Σ|λ| of W(0).
struct SigmaSubspaceOptions {
  double tolerance = 0.0;  ///< share of Σ|λ| of W(0) that may be left out; 0: no subspace
  int vectors = 0;         ///< number of vectors instead of a tolerance; 0: by the tolerance
  bool wanted() const { return tolerance > 0.0 || vectors > 0; }
};

/// Options of the self-energy with all counts, points and energies resolved.
struct SigmaOptions {
  SigmaMethod method = SigmaMethod::kHybertsenLouie;
  int bands = 0;                    ///< number of bands in the inner sum; complete multiplets
  double bare_cutoff_ry = 0.0;      ///< cut-off of the sphere of the bare exchange
  double screened_cutoff_ry = 0.0;  ///< cut-off of the sphere of W
  int band_min = 1, band_max = 1;   ///< outer states, counted from 1, the last one included
  std::vector<int> kpoints;         ///< outer k-points: indices into the irreducible list
  InvalidMode invalid = InvalidMode::kStatic;
  PoleRules rules;
  bool exact_static_ch = false;  ///< needed by the static remainder and by exact COHSEX
  bool closure = true;           ///< if static CH is computed, compute its completed form too
  bool reduce_q = true;  ///< sum q over the wedge of the little group (averages diagonal elements)
  /// x = E − E_n at which the closed sum over all states is subtracted from Σ by plasmon poles
  /// (docs/theory/gw.md 9.4). The field then has vectors of the complement. Absent: it is not.
  std::optional<double> closed_sum_x_ry;
  double godby_needs_ry = 2.0;
  std::vector<double> offsets_ry{0.0};  ///< E − E_l at which Σ is evaluated; the first is 0
  bool only_total = false;              ///< SX is not told apart from CH, which is then their sum
  bool exchange = true;                 ///< false: x_ry stays 0, and the caller knows it
  bool correlation = true;              ///< false: x_ry alone is calculated
  bool slope = false;                   ///< analytic dΣ/dE at the first offset; plasmon poles only
  ContourGrid contour;                  ///< frequencies of ε⁻¹, for the full-frequency methods
  SigmaSubspaceOptions subspace;        ///< of the diagonal of the full-frequency methods
  /// Number of slices into which the poles of W are cut (column_slices.hpp). With 0 they are whole.
  int column_slices = 0;
  std::int64_t memory_budget_bytes = kDefaultBudget_bytes;
  std::int64_t memory_limit_bytes = 0;  ///< of one device, for matrices held whole; 0: not known
};

/// Method for the slope dΣ/dE of the linearised quasiparticle equation.
enum class Derivative { kAnalytic, kCentral, kForward };

struct DerivativeRule {
  Derivative kind = Derivative::kCentral;
  double step_ry = 0.02 / kRydberg_ev;
  /// Returns the energies relative to E_l at which Σ is needed; the first is 0.
  std::vector<double> offsets_ry() const {
    switch (kind) {
      case Derivative::kAnalytic:
        return {0.0};
      case Derivative::kCentral:
        return {0.0, -step_ry, step_ry};
      case Derivative::kForward:
        return {0.0, step_ry};
    }
    return {0.0};
  }
};

/// Solution of the quasiparticle equation that is reported as E_qp1 (docs/theory/gw.md 6.6).
enum class Solution { kLinearised, kGraphical, kDyson };

/// Zero of the energies at which spectra are evaluated.
enum class SpectrumOrigin {
  kState,   ///< each state's own energy
  kZero,    ///< the zero of the mean field
  kMidgap,  ///< the middle of the mean-field gap of the listed k-points
};

/// Uniform energies for the graphical solution and the spectral function A(ω).
struct SpectrumGrid {
  SpectrumOrigin origin = SpectrumOrigin::kState;
  double first_ev = 0.0;   ///< first energy from the origin, unless that is the state
  int points = 0;          ///< number of energies, unless the origin is the state
  double window_ev = 0.0;  ///< Σ from E_l − window to E_l + window; 0: no spectrum
  double step_ev = 0.25;
  double broadening_ev = 0.1;  ///< added to |Im Σ| in A(ω)

  bool wanted() const { return window_ev > 0.0 || points > 0; }
  /// Returns the energies around a state. @pre origin is kState
  std::vector<double> offsets_ry() const {
    std::vector<double> offsets;
    const int half = static_cast<int>(std::lround(window_ev / step_ev));
    for (int i = -half; i <= half; ++i) offsets.push_back(i * step_ev / kRydberg_ev);
    return offsets;
  }
};

/// Options of the full matrix Σ_lm(E) (docs/theory/gw.md 7).
struct SigmaMatrixOptions {
  OffDiagonalOptions kernel;
  /// Energies common to all k. If it is empty, each k has a uniform grid over its window.
  std::vector<double> energies_ry;
  bool at_states = false;              ///< use the energies of the outer states in their order
  double step_ry = 0.5 / kRydberg_ev;  ///< step of the uniform grid
  /// Distance by which the uniform grid exceeds the energies of the states on either side.
  double margin_ry = 4.0 / kRydberg_ev;
};

}  // namespace quasi::gw
