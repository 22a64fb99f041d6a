#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

namespace quasi::thermal {

/// Harmonic modes on the full mesh (docs/theory/thermal.md 3). The number of a mode is
/// point·n_branches + branch.
struct Modes {
  std::int64_t n_q = 0;
  int n_branches = 0;
  std::vector<double> omega_rad_ps;  ///< [n_q][nb]; the three acoustic modes at Γ are exactly 0
  std::vector<std::complex<double>> eigenvector;  ///< [n_q][nb: branch][nb: 3κ+α], unit length;
                                                  ///< phases of lattice vectors only: periodic in q
  std::vector<double> velocity_km_s;              ///< [n_q][nb][3]; nm/ps
  std::vector<double> spread_rad_ps;   ///< [n_q][nb][3]; p of physics/broadening.hpp, without sb
  std::vector<std::int32_t> subspace;  ///< [n_q][nb] first branch of the degenerate set

  std::vector<std::string> warnings;
  double largest_raw_omega_gamma_rad_ps = 0.0;  ///< |ω| of the acoustic modes before zeroing
  double most_negative_omega_rad_ps = 0.0;      ///< 0 if all are real
  double star_deviation_rad_ps = 0.0;           ///< largest difference of ω over a star

  std::int64_t n_modes() const { return n_q * n_branches; }
  /// Returns true for modes that take part in scattering: 0 < ω ≤ max. Zero modes and imaginary
  /// modes take no part.
  bool active(std::int64_t mode, double omega_max_rad_ps) const {
    return omega_rad_ps[mode] > 0.0 && omega_rad_ps[mode] <= omega_max_rad_ps;
  }
};

}  // namespace quasi::thermal
