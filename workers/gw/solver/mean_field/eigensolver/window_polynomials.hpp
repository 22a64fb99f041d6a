#pragma once

#include <cstddef>
#include <vector>

#include "workers/gw/model/pseudoband_options.hpp"
#include "workers/gw/physics/energy_windows.hpp"

namespace quasi::gw {

/// Energies between which windows act, Ry.
struct WindowRange {
  double lowest_ry = 0.0;   ///< a lower bound of the spectrum of H
  double highest_ry = 0.0;  ///< an upper bound of the spectrum of H
  double midgap_ry = 0.0;
  double first_ry = 0.0;  ///< distance from midgap at which the windows begin
};

/// Chebyshev polynomials p_k of H that act as windows without eigenstates (docs/theory/gw.md 9.5):
///
///   p_k(E) = Σ_l c_kl T_l((E − centre)/half),   Σ_k p_k(E)² ≈ 1 above midgap + first
///
/// One more polynomial passes the energies below the windows.
class WindowPolynomials {
 public:
  /// Expands the windows. With WindowForm::kSplines g_k = √B_k, and the degree rises until the
  /// largest departure of Σ_k p_k² from 1 is below `max_identity_error`. With kJackson p_k is the
  /// indicator of a slice damped by Jackson factors, whose departure has no limit.
  /// @throws InvalidInput if a given degree, or any up to a limit, leaves too large a departure
  WindowPolynomials(const PseudobandOptions& options, const WindowRange& range);

  std::size_t size() const { return node_.size(); }
  int degree() const { return degree_; }
  double centre_ry() const { return centre_ry_; }
  double half_ry() const { return half_ry_; }
  /// Returns c_kl of all windows, then of the polynomial below them; [size() + 1][degree() + 1].
  const std::vector<double>& coefficients() const { return coefficients_; }
  /// Returns p_k(E). @param k  size() for the polynomial below the windows
  double value(std::size_t k, double energy_ry) const;
  /// Returns the energy that stands for window k, its distance from midgap, Ry.
  /// @param pole_ry  b of EnergyWindows::energy(); without effect with WindowForm::kJackson
  double energy(std::size_t k, double pole_ry) const;
  /// Returns e_k, the mean of the three inner knots of window k or the middle of slice k, Ry.
  double node(std::size_t k) const { return node_[k]; }

  /// Largest |Σ_k p_k(E)² − 1| from midgap + first to the highest energy.
  double identity_error() const { return identity_error_; }
  /// Mean of 1 − Σ_k p_k(E)² over the same energies by the density √E of free electrons.
  double lost_weight() const { return lost_weight_; }
  /// Largest value above midgap + first of the polynomial that passes the energies below.
  double leak() const { return leak_; }

 private:
  void expand(const PseudobandOptions& options, const EnergyWindows& windows,
              const WindowRange& range);
  void measure(const WindowRange& range);

  int degree_ = 0;
  double centre_ry_ = 0.0, half_ry_ = 0.0;
  std::vector<double> coefficients_;
  std::vector<double> node_, width_;  ///< e_k; h_k, or 0 for slices
  double identity_error_ = 0.0, lost_weight_ = 0.0, leak_ = 0.0;
};

}  // namespace quasi::gw
