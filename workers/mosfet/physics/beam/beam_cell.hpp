#pragma once

#include <cmath>

#include "workers/backend/host_device.hpp"
#include "workers/mosfet/physics/fermi_integral.hpp"

/// Begin here: cells of the beam scheme (docs/theory/mosfet.md 17.1) in total energy H = ε + w and
/// transverse momentum. With Kane's band γ(w) = w(1+αw), k̂ = ħ|k_x|/√(2m_x) and κ = ħ|k_y|/√(2m_y)
/// it holds that γ(w) = k̂² + κ²; both are in √eV.
namespace quasi::mosfet {

/// Returns γ(w) = w(1+αw), eV.
QUASI_HD inline double beam_gamma(double w_ev, double alpha_per_ev) {
  return w_ev * (1.0 + alpha_per_ev * w_ev);
}

/// Returns w of γ(w) = κ², the least kinetic energy of an electron with this transverse momentum.
QUASI_HD inline double beam_least_energy(double kappa, double alpha_per_ev) {
  return 2.0 * kappa * kappa / (1.0 + sqrt(1.0 + 4.0 * alpha_per_ev * kappa * kappa));
}

/// Reference shape ω of the occupation within a cell of H: the equilibrium over its value at the
/// cell's centre.
struct BeamShape {
  double kt_ev = 0;
  double fermi_ev = 0;  ///< E_F of the source, for Fermi statistics
  bool fermi = false;

  /// Returns ω at an energy H of a cell with this centre.
  QUASI_HD double at(double h_ev, double centre_ev) const {
    if (!fermi) return exp((centre_ev - h_ev) / kt_ev);
    return fermi_function((fermi_ev - h_ev) / kt_ev) /
           fermi_function((fermi_ev - centre_ev) / kt_ev);
  }
  /// Returns ∫ ω dH from `low_ev` to `high_ev`, eV.
  QUASI_HD double integral(double low_ev, double high_ev, double centre_ev) const {
    if (!fermi)
      return kt_ev * exp((centre_ev - low_ev) / kt_ev) * -expm1((low_ev - high_ev) / kt_ev);
    const double difference = fermi_integral_0((fermi_ev - low_ev) / kt_ev) -
                              fermi_integral_0((fermi_ev - high_ev) / kt_ev);
    return kt_ev * difference / fermi_function((fermi_ev - centre_ev) / kt_ev);
  }
};

/// One cell [h_low, h_high] × [κ_low, κ_high] with centre H_k and ∫ω dH over the whole cell.
struct BeamCell {
  double h_low_ev = 0, h_high_ev = 0, centre_ev = 0;
  double kappa_low = 0, kappa_high = 0;
  double full_ev = 0;  ///< Ω_k
};

/// Eight Gauss–Legendre points on [0, 1].
struct GaussPoint {
  double at, weight;
};
/// Returns point k = 0 … 7.
QUASI_HD inline GaussPoint gauss_point(int k) {
  constexpr double kAt[4] = {0.1834346424956498, 0.5255324099163290, 0.7966664774136267,
                             0.9602898564975363};
  constexpr double kWeight[4] = {0.3626837833783620, 0.3137066458778873, 0.2223810344533745,
                                 0.1012285362903763};
  const int m = k / 2;
  return {0.5 + (k % 2 == 0 ? -0.5 : 0.5) * kAt[m], 0.5 * kWeight[m]};
}

/// Returns the part of beam_volume() between two energies H. The lower one may be a turning point;
/// the map H = lower + (upper − lower) t² removes its root.
QUASI_HD inline double beam_volume_part(const BeamCell& cell, const BeamShape& shape,
                                        double alpha_per_ev, double edge_ev, double lower_ev,
                                        double upper_ev) {
  double sum = 0.0;
  for (int k = 0; k < 8; ++k) {
    const GaussPoint point = gauss_point(k);
    const double h = lower_ev + (upper_ev - lower_ev) * point.at * point.at;
    const double w = h - edge_ev, root = sqrt(beam_gamma(w, alpha_per_ev));
    const double high = cell.kappa_high < root ? asin(cell.kappa_high / root) : 0.5 * units::kPi;
    const double low = cell.kappa_low < root ? asin(cell.kappa_low / root) : 0.5 * units::kPi;
    sum += point.weight * 2.0 * point.at * shape.at(h, cell.centre_ev) * (0.5 + alpha_per_ev * w) *
           (high - low);
  }
  return sum * (upper_ev - lower_ev);
}

/// Returns the phase-space volume of a cell above the band edge ε, of one sign of k_x, eV
/// (docs/theory/mosfet.md 17.1):
///
///   V(ε) = ∫dH ω(H) (γ'(w)/2) [asin(min(1, κ_high/√γ)) − asin(min(1, κ_low/√γ))]
///
/// over the part of the cell with w = H − ε ≥ w(κ_low).
QUASI_HD inline double beam_volume(const BeamCell& cell, const BeamShape& shape,
                                   double alpha_per_ev, double edge_ev) {
  const double opens = edge_ev + beam_least_energy(cell.kappa_low, alpha_per_ev);
  const double splits = edge_ev + beam_least_energy(cell.kappa_high, alpha_per_ev);
  const double begin = opens > cell.h_low_ev ? opens : cell.h_low_ev;
  if (!(begin < cell.h_high_ev)) return 0.0;
  if (splits >= cell.h_high_ev)
    return beam_volume_part(cell, shape, alpha_per_ev, edge_ev, begin, cell.h_high_ev);
  const double middle = splits > begin ? splits : begin;
  double volume = beam_volume_part(cell, shape, alpha_per_ev, edge_ev, middle, cell.h_high_ev);
  if (middle > begin) volume += beam_volume_part(cell, shape, alpha_per_ev, edge_ev, begin, middle);
  return volume;
}

/// Returns the area of a cell at a face with band edge ε, eV^{3/2} (docs/theory/mosfet.md 17.1):
///
///   A(ε) = ∫dκ ∫ ω dH over max(h_low, ε + w(κ)) < H < h_high.
///
/// A fully open cell has A = Ω_k (κ_high − κ_low) to the bit.
QUASI_HD inline double beam_area(const BeamCell& cell, const BeamShape& shape, double alpha_per_ev,
                                 double edge_ev) {
  if (edge_ev + beam_least_energy(cell.kappa_high, alpha_per_ev) <= cell.h_low_ev)
    return cell.full_ev * (cell.kappa_high - cell.kappa_low);
  if (!(edge_ev + beam_least_energy(cell.kappa_low, alpha_per_ev) < cell.h_high_ev)) return 0.0;
  const double closes = sqrt(beam_gamma(cell.h_high_ev - edge_ev, alpha_per_ev));
  const double end = closes < cell.kappa_high ? closes : cell.kappa_high;
  const double kink =
      cell.h_low_ev > edge_ev ? sqrt(beam_gamma(cell.h_low_ev - edge_ev, alpha_per_ev)) : 0.0;
  const double begin = kink > cell.kappa_low ? kink : cell.kappa_low;
  double area = cell.full_ev * (begin - cell.kappa_low), sum = 0.0;
  for (int k = 0; k < 8; ++k) {
    const GaussPoint point = gauss_point(k);
    const double kappa = begin + (end - begin) * point.at;
    const double lower = edge_ev + beam_least_energy(kappa, alpha_per_ev);
    if (lower < cell.h_high_ev)
      sum += point.weight * shape.integral(lower, cell.h_high_ev, cell.centre_ev);
  }
  return area + sum * (end - begin);
}

}  // namespace quasi::mosfet
