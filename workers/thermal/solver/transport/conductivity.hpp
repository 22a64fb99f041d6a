#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/symmetry.hpp"
#include "workers/thermal/model/transport_options.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"

namespace quasi::thermal {

/// Data of the sums over modes: references, valid as long as their targets, and the options.
struct Transport {
  const Crystal& crystal;
  const Symmetry& symmetry;
  const Modes& modes;
  TransportOptions options;

  std::int64_t n_rows() const { return symmetry.n_irreducible() * modes.n_branches; }
  std::int64_t mode_of_row(std::int64_t row) const {
    return static_cast<std::int64_t>(symmetry.irreducible[row / modes.n_branches]) *
               modes.n_branches +
           row % modes.n_branches;
  }
  /// True if a row contributes to κ: it is not at Γ, and its mode is active.
  bool conducts(std::int64_t row) const {
    return symmetry.irreducible[row / modes.n_branches] != 0 &&
           modes.active(mode_of_row(row), options.omega_max_rad_ps);
  }
  /// Mean v ⊗ v beyond that of the mean velocity over the degenerate set of a row, (km/s)².
  Mat3 velocity_variance(std::int64_t row) const {
    return modes.velocity_variance_km2_s2.empty()
               ? Mat3{}
               : modes.velocity_variance_km2_s2[static_cast<std::size_t>(row)];
  }
  /// Root mean square of the velocity over the degenerate set of a row, km/s.
  double speed_km_s(std::int64_t row) const;
};

/// ħ²/(k_B T² V Nq), which turns rad²/ps (km/s)² into W/m/K.
double conductivity_scale(const Transport& transport, double temperature_k);

/// F = ω v/w of the relaxation-time approximation, [n_rows][3]; 0 where w = 0 or the mode is
/// inactive.
std::vector<double> relaxation_time_field(const Transport& transport,
                                          const std::vector<double>& rate_per_ps);

/// κ tensor of every row, symmetrised over the group, W/m/K; κ is their sum.
///   κ = ħ²/(k_B T² V Nq) Σ_{q≠Γ} n(n+1) ω v ⊗ F
/// @param f  [n_rows][3], nm·rad/ps (ω τ v)
std::vector<Mat3> mode_conductivity(const Transport& transport, double temperature_k,
                                    const std::vector<double>& f);

Mat3 total(const std::vector<Mat3>& tensors);

/// Heat capacity, k_B/(V Nq) Σ (x/sinh x)², in J/(m³ K); and small-grain κ per grain size,
/// k_B/(V Nq) Σ (x/sinh x)² ⟨v⊗v⟩/c with means over degenerate sets, in W/m/K/nm.
double heat_capacity_j_m3_k(const Transport& transport, double temperature_k);
Mat3 small_grain_w_per_mk_nm(const Transport& transport, double temperature_k);

/// κ summed up to each tick (docs/theory/thermal.md 8), [n_ticks].
struct Cumulative {
  std::vector<double> abscissa;
  std::vector<Mat3> kappa_w_per_mk;
};
/// κ against the mean free path of mean_free_path_nm, with ticks 10^(8(i−1)/(n−1) − 2) nm.
Cumulative cumulative_by_path(const Transport& transport, const std::vector<Mat3>& by_row,
                              const std::vector<double>& f, const std::vector<double>& rate_per_ps);
/// κ against ω, with ticks ω_min + (1.1 ω_max − ω_min) i/n rad/ps.
Cumulative cumulative_by_omega(const Transport& transport, const std::vector<Mat3>& by_row);

/// Mean free path Λ = (F·v/ω + tr 𝒱/w)/c of every row in nm, with the variance 𝒱 and the root mean
/// square c of the velocity of its degenerate set. For a single mode Λ = F·v/(ω|v|).
/// @param f  [n_rows][3], nm·rad/ps
/// @param rate_per_ps  [n_rows]
std::vector<double> mean_free_path_nm(const Transport& transport, const std::vector<double>& f,
                                      const std::vector<double>& rate_per_ps);

/// Boundary scattering c/L with the root mean square speed c, [n_rows] in 1/ps.
std::vector<double> boundary_rates_per_ps(const Transport& transport, double length_nm);

/// Density of states with the widths of elastic scattering, and its projection on the atoms.
struct DensityOfStates {
  std::vector<double> omega_rad_ps;  ///< [n_ticks]
  std::vector<double> total_ps;      ///< [n_ticks] states per rad/ps and cell
  std::vector<double> by_atom_ps;    ///< [n_ticks][atom]
};
DensityOfStates density_of_states(const Transport& transport);

}  // namespace quasi::thermal
