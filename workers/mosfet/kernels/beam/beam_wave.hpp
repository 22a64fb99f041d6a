#pragma once

#include <complex>
#include <vector>

#include "workers/mosfet/kernels/beam/beam_operator.hpp"

namespace quasi::mosfet {

/// Response of transport to a drive that oscillates as e^{iωt}, at fixed levels
/// (docs/theory/mosfet.md 17.8). It solves
///
///   (iωV + T − VG) δg = q
///
/// with streaming and loss T and the gain G of a BeamOperator. The unknowns of GMRES are the means
/// of δg over κ and both branches. Every product is one complex solution of all lines.
class BeamWave {
 public:
  BeamWave(const BeamOperator& problem, const BeamScattering& scattering, double omega_per_fs)
      : problem_(problem), scattering_(scattering), omega_per_fs_(omega_per_fs) {}

  /// Returns δg in the layout of BeamOperator. @param drive  q in that layout, eV/fs
  /// @throws NotConverged if GMRES does not reach `tolerance` of the residual of δg = 0
  std::vector<std::complex<double>> solve(const std::vector<std::complex<double>>& drive,
                                          double tolerance) const;

 private:
  using Wave = std::vector<std::complex<double>>;
  /// Solves every line. @param drive  empty: none @param gain  [n_states][nx][n_h]; empty: none
  Wave solve_lines(const Wave& drive, const Wave& gain) const;

  const BeamOperator& problem_;
  const BeamScattering& scattering_;
  double omega_per_fs_;
};

/// Returns the real or the imaginary parts.
std::vector<double> real_part(const std::vector<std::complex<double>>& values);
std::vector<double> imaginary_part(const std::vector<std::complex<double>>& values);

}  // namespace quasi::mosfet
