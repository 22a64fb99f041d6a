#pragma once

#include <complex>
#include <functional>
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
///
/// With blocking λ depends on the occupations. The operator contains this dependence for cells
/// that are filled evenly over κ and both branches. The rest, (ḡ − g) δλ, is added here.
class BeamWave {
 public:
  /// @param steady  g of the steady state around which blocking is linearised
  BeamWave(const BeamOperator& problem, const BeamScattering& scattering, double omega_per_fs,
           const std::vector<double>& steady);

  /// Returns δg in the layout of BeamOperator. @param drive  q in that layout, eV/fs
  /// @param start  means of δg to begin with; empty: those without gain
  /// @throws NotConverged if GMRES does not reach `tolerance` of the residual of δg = 0
  std::vector<std::complex<double>> solve(
      const std::vector<std::complex<double>>& drive, double tolerance,
      const std::vector<std::complex<double>>& start = {}) const;

  /// Returns Ψ of the transposed equations (docs/theory/mosfet.md 17.9), with both branches
  /// exchanged in Ψ and in the drive: motion is reversible, and the gain is transposed.
  /// @param drive  in the layout of BeamOperator, over the weight of electrons
  /// @throws NotConverged if GMRES does not reach `tolerance`
  std::vector<std::complex<double>> solve_transposed(const std::vector<std::complex<double>>& drive,
                                                     double tolerance) const;

  /// Returns δg of a drive and of the gain by given means, by one solution of all lines. It solves
  /// the equation above if its own means are the given ones. @param drive  as in solve() @param
  /// mean δḡ [n_states][nx][n_h]
  std::vector<std::complex<double>> respond(const std::vector<std::complex<double>>& drive,
                                            const std::vector<std::complex<double>>& mean) const;
  /// Returns the means of δg over κ and both branches [n_states][nx][n_h].
  std::vector<std::complex<double>> mean(const std::vector<std::complex<double>>& g) const;
  /// Returns √n/ĝ for every mean, with the electrons n and occupations ĝ of unscattered inflow
  /// (docs/theory/mosfet.md 17.5), over √Σn.
  std::vector<double> relative_weights() const;

 private:
  using Wave = std::vector<std::complex<double>>;
  /// Electrons that enter or leave all cells of κ in proportion to V [n_states][nx][n_h].
  struct CellFeed {
    Wave gain;  ///< empty: none
    Wave loss;  ///< δλ; empty: none
  };
  CellFeed feed_of(const Wave& mean) const;
  Wave transposed_feed(const Wave& psi) const;
  double relaxation_scale(std::size_t cell) const;
  /// Solves x − image(x) = rhs in the norm of relative_weights().
  Wave gmres_of(const Wave& rhs, const Wave& start, double tolerance,
                const std::function<Wave(const Wave&)>& image) const;
  /// Solves every line. @param drive  empty: none
  Wave solve_lines(const Wave& drive, const CellFeed& feed) const;

  const BeamOperator& problem_;
  const BeamScattering& scattering_;
  double omega_per_fs_;
  std::vector<double> unevenness_;  ///< ḡ − g in the layout of g; empty: no blocking
};

/// Returns the real or the imaginary parts.
std::vector<double> real_part(const std::vector<std::complex<double>>& values);
std::vector<double> imaginary_part(const std::vector<std::complex<double>>& values);

}  // namespace quasi::mosfet
