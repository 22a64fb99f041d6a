#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <vector>

#include "workers/backend/complex.hpp"
#include "workers/backend/host_device.hpp"
#include "workers/gw/kernels/pole_sums/pole_sum_kernels.hpp"
#include "workers/gw/physics/coulomb.hpp"
#include "workers/gw/physics/crystal.hpp"

// The folder workers/gw/kernels/pole_sums/changes makes changes of a plasmon-pole model from
// ε̃⁻¹ on the device that has inverted ε̃. Begin here with the element (docs/theory/gw.md
// 6.2, 9.3).
namespace quasi::gw {

// Elements below these thresholds are left out (docs/theory/gw.md 6.2). BerkeleyGW states the
// second one in eV².
inline constexpr double kNegligible = 1e-6;
inline constexpr double kNegligible_ry2 = 1e-6 / (kRydberg_ev * kRydberg_ev);

/// Holds B = ½ I v̄ (Bohr³ Ry) and τ = 1/ω̃ (1/Ry) of one element of a model, with I = δ −
/// ε⁻¹. Both are 0 for an element that is left out. Only τ is 0 for an element that acts
/// statically.
struct PoleTerms {
  Complex<double> strength;
  double tau_per_ry = 0.0;
};

/// Returns B and τ of an element of a PlasmonPoleView.
/// @param strength  A = ½ I ω̃ v̄, Ry² Bohr³
/// @param pole_ry  ω̃
QUASI_HD inline PoleTerms pole_terms(Complex<double> strength, double pole_ry) {
  const double per_pole = 1.0 / pole_ry;
  return {per_pole * strength, pole_ry >= kStaticPole_ry ? 0.0 : per_pole};
}

/// Returns ω̃² in Ry² by the rule of Hybertsen and Louie [hybertsen1986] (docs/theory/gw.md
/// 6.2), or 0 for an element that is left out. With Ω²/I = λ e^{iφ} it is λ/cos φ =
/// |Ω²|²/Re[Ω² I*].
/// @param screening  I = δ − ε⁻¹
/// @param square  Ω², Ry²
QUASI_HD inline double hybertsen_louie_square(Complex<double> screening, Complex<double> square) {
  constexpr double kSmallI = kNegligible * kNegligible,
                   kSmallSquare = kNegligible_ry2 * kNegligible_ry2;
  const double of_i = norm(screening), of_square = norm(square),
               overlap = square.re * screening.re + square.im * screening.im;
  if (of_i < kSmallI || of_square < kSmallSquare || of_square < kSmallSquare * of_i ||
      overlap * overlap < kSmallI * of_square * of_i)
    return 0.0;
  return of_square / overlap;
}

/// Returns B and τ by the rule of hybertsen_louie_square().
/// @param screening  I = δ − ε⁻¹
/// @param square  Ω², Ry²
/// @param coulomb_ry  v̄ that follows I in W, Bohr³ Ry
/// @param invalid_pole_ry  ω̃ of an element with ω̃² < 0; 0 leaves the element out
QUASI_HD inline PoleTerms hybertsen_louie_terms(Complex<double> screening, Complex<double> square,
                                                double coulomb_ry, double invalid_pole_ry) {
  const double pole2 = hybertsen_louie_square(screening, square);
  if (pole2 == 0.0 || (pole2 < 0.0 && invalid_pole_ry == 0.0)) return {};
  const double pole = pole2 > 0.0 ? std::sqrt(pole2) : invalid_pole_ry;
  return {0.5 * coulomb_ry * screening, pole >= kStaticPole_ry ? 0.0 : 1.0 / pole};
}

/// Returns the change of τ, 1/Ry, that gives a band at |x| = 1 Ry its exact factor 1/(1 + |x| τ)
/// (docs/theory/gw.md 9.3). For small changes it is the difference of both τ. It stays bounded
/// where a pole falls towards 0, while the difference of both τ does not.
QUASI_HD inline double bounded_change_of_tau(double own_per_ry, double changed_per_ry) {
  constexpr double kX_ry = 1.0;
  return (changed_per_ry - own_per_ry) * (1.0 + kX_ry * own_per_ry) /
         (1.0 + kX_ry * changed_per_ry);
}

/// Describes one plane wave q+G of a Hermitian W = −r (ε̃⁻¹ − 1) r. The average
/// interactions of the plane wave are v̄ and r = ⟨v^½⟩.
struct ScreenedWave {
  double root = 0.0;    ///< v̄^½
  double ratio = 0.0;   ///< ⟨v^½⟩/v̄^½
  double wave[3] = {};  ///< q+G, reduced
  double dual[3] = {};  ///< the reciprocal metric times q+G, 1/Bohr²
  std::int32_t g[3] = {};
  Complex<double> left[3], right[3];  ///< terms of ScreenedElements::averages_directions
};

/// Holds the data of ScreenedElements in the memory of one device.
struct ScreenedElementsView {
  const ScreenedWave* waves = nullptr;        ///< [n]
  const Complex<double>* density = nullptr;   ///< ω_p² ρ(D)/ρ(0), Ry²; [edge][edge][edge]
  std::int32_t extent[3] = {}, edge[3] = {};  ///< the box begins at −extent
  double plasma2_ry2 = 0.0, invalid_pole_ry = 0.0, head = 1.0;
  bool at_zero = false, averages_directions = false;

  /// Returns B and τ of the element (g, h).
  /// @param h  at most g
  /// @param inverse  ε̃⁻¹_GG' of the element
  QUASI_HD PoleTerms terms(std::int64_t g, std::int64_t h, Complex<double> inverse) const {
    const ScreenedWave &a = waves[g], &b = waves[h];
    const double coulomb_ry = a.root * b.root;
    if (at_zero && h == 0) {
      if (g > 0) return {};
      return hybertsen_louie_terms({1.0 - head, 0.0}, {plasma2_ry2, 0.0}, coulomb_ry,
                                   invalid_pole_ry);
    }
    if (averages_directions)
      for (int i = 0; i < 3; ++i)
        inverse += 0.5 * (a.left[i] * b.right[i] + conj(b.left[i] * a.right[i]));
    Complex<double> screening = (-a.ratio * b.ratio) * inverse;
    if (g == h) screening = {1.0 - inverse.re, 0.0};
    double product = 0.0;
    std::int64_t at = 0;
    for (int i = 0; i < 3; ++i) {
      product += a.wave[i] * b.dual[i];
      at = at * edge[i] + (a.g[i] - b.g[i] + extent[i]);
    }
    constexpr double kPerEightPi = 1.0 / kEightPi;
    return hybertsen_louie_terms(screening, (product * coulomb_ry * kPerEightPi) * density[at],
                                 coulomb_ry, invalid_pole_ry);
  }
};

/// Holds the numbers from which the poles of Hybertsen and Louie at one q follow, together with
/// ε̃⁻¹. W must be Hermitian.
struct ScreenedElements {
  std::vector<ScreenedWave> waves;            ///< plane waves of the model, [n]
  std::vector<std::complex<double>> density;  ///< ω_p² ρ(D)/ρ(0), Ry²; box of all D
  std::array<std::int32_t, 3> extent{};       ///< the box of D has the edges 2 extent + 1
  std::int64_t n_heads = 1;      ///< rows of ε̃⁻¹ that stand for the first plane wave
  double plasma2_ry2 = 0.0;      ///< ω_p², Ry²
  double invalid_pole_ry = 0.0;  ///< ω̃ of an element with ω̃² < 0; 0: it is left out
  /// The point is q → 0. Elements with either G = 0 or G' = 0 are then set to zero, and ε⁻¹
  /// of the element with both is set to `head`.
  bool at_zero = false;
  double head = 1.0;
  /// The body of ε̃⁻¹ gets ½ Σ_i [left_i(G) right_i(G') + h.c.], the average over
  /// directions.
  bool averages_directions = false;
  /// The device that makes a change of these elements keeps it (PoleChange::kept).
  bool kept = false;

  /// Returns the number of plane waves.
  std::int64_t size() const { return static_cast<std::int64_t>(waves.size()); }
  /// Returns a view of copies of `waves` and `density` on a device.
  ScreenedElementsView view(const ScreenedWave* of_waves, const Complex<double>* of_density) const {
    return {.waves = of_waves,
            .density = of_density,
            .extent = {extent[0], extent[1], extent[2]},
            .edge = {2 * extent[0] + 1, 2 * extent[1] + 1, 2 * extent[2] + 1},
            .plasma2_ry2 = plasma2_ry2,
            .invalid_pole_ry = invalid_pole_ry,
            .head = head,
            .at_zero = at_zero,
            .averages_directions = averages_directions};
  }
};

}  // namespace quasi::gw
