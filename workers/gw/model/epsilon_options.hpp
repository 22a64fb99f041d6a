#pragma once

#include <complex>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "workers/gw/model/memory_limits.hpp"
#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Frequencies of ε⁻¹ in addition to those that the method of Σ needs; kAutomatic adds none.
enum class FrequencySet { kAutomatic, kStatic, kImaginary, kReal, kBoth, kGodbyNeeds };

/// Static subspace of ε⁻¹ (docs/theory/gw.md 4.2) [delben2019]. Frequencies other than 0 are
/// calculated between the eigenvectors of χ̃(0) that screen most. The complement follows the static
/// matrix.
struct SubspaceOptions {
  /// Vectors with a share |λ|/(1+|λ|) of δ − ε̃⁻¹(0) above the tolerance are kept; 0: no subspace.
  double tolerance = 0.0;
  int vectors = 0;         ///< number of vectors instead of a tolerance; 0: by the tolerance
  bool complement = true;  ///< add [ε̃⁻¹(0) − its subspace part] ω_c²/(ω_c² − ω²)
  double complement_ry = 2.5;  ///< ω_c
  bool wanted() const { return tolerance > 0.0 || vectors > 0; }
};

/// Files of ε⁻¹ in the format of BerkeleyGW (docs/theory/gw.md 1.4).
struct EpsilonFiles {
  std::filesystem::path gamma;   ///< eps0mat.h5, the point q → 0
  std::filesystem::path others;  ///< epsmat.h5, every other q; empty if Γ is the only point
};

/// Table [epsilon] of a deck.
struct EpsilonRequest {
  double epsilon_cutoff_ry = 0.0;  ///< 0: the cut-off of stored files
  int bands = 0;                   ///< 0: all
  FrequencySet frequencies = FrequencySet::kAutomatic;
  EpsilonFiles stored;        ///< stored ε⁻¹ for Σ; if gamma is empty, ε⁻¹ is calculated
  bool write = true;          ///< write eps0mat.h5 and epsmat.h5 among the results
  std::vector<Vec3> qpoints;  ///< list of a BerkeleyGW input; empty: the irreducible points
  int occupied_bands = 0;     ///< count of a BerkeleyGW input; 0: that of WFN
  double real_max_ev = 20.0;  ///< end of the real axis of contour deformation
  double real_step_ev = 0.25;
  double broadening_ev = 0.1;
  int imaginary_points = 20;
  double imaginary_scale_ry = 2.0;
  SubspaceOptions subspace;
  /// Number of slices into which matrices between plane waves are cut (column_slices.hpp). With 0
  /// the memory plan chooses.
  int column_slices = 0;
};

/// Options of the dielectric matrices with all counts and frequencies resolved.
struct EpsilonOptions {
  double epsilon_cutoff_ry = 10.0;
  int bands = 0;  ///< number of bands in the sum of χ; complete multiplets
  /// Empty bands below this number, counted from 0, are left out of the sum.
  int first_empty_band = 0;
  /// Most portions of χ of one q (polarizability.hpp).
  std::int64_t portions = kChiPortions;
  /// [n_frequencies]; the first is 0, and the others are iu or ω + iη.
  std::vector<std::complex<double>> frequencies_ry{std::complex<double>{}};
  int n_real = 0;  ///< number of frequencies on the real axis; they come last
  SubspaceOptions subspace;
  /// Number of slices into which χ(0) and its inversion are cut (column_slices.hpp). With 0 they
  /// are whole.
  int column_slices = 0;
  /// Number of slices that a device sums at the same time. The bits of the result do not depend on
  /// it.
  int slices_at_once = 1;
  std::int64_t memory_budget_bytes = kDefaultBudget_bytes;
};

}  // namespace quasi::gw
