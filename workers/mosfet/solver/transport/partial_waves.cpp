#include "workers/mosfet/solver/transport/partial_waves.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kReach = 16.0;  // in screening lengths, where e^{−r/λ} is 1e-7
constexpr int kMostWaves = 60;
constexpr int kPoints = 24;
constexpr double kLowest_ev = 1e-3, kHighest_ev = 2.0;

/// Step and reach of the radial grid.
struct RadialGrid {
  double step_nm;
  int steps;
};

RadialGrid radial_grid(const ScreenedCoulomb& potential, double k_per_nm) {
  const double step = std::min({0.02 * potential.length_nm, 0.06 / k_per_nm, 0.06});
  const int steps = static_cast<int>(kReach * potential.length_nm / step) + 1;
  return {kReach * potential.length_nm / steps, steps};
}

// Returns u_l at the last two nodes of the grid, up to a factor.
std::array<double, 2> radial_wave(const ScreenedCoulomb& potential, double k_per_nm, int l,
                                  const RadialGrid& grid) {
  const double h = grid.step_nm, c = h * h / 12.0;
  const auto force = [&](int i) {
    const double r = i * h;
    return l * (l + 1.0) / (r * r) -
           potential.strength_per_nm * std::exp(-r / potential.length_nm) / r - k_per_nm * k_per_nm;
  };
  // High l start where the centrifugal barrier is still high.
  const int first = std::clamp(static_cast<int>(0.06 * l / (k_per_nm * h)), 1, grid.steps / 2);
  const double strength = potential.strength_per_nm;
  // Returns u over the power r^{l+1} of its start, by its series near the origin.
  const auto series = [&](double r) {
    const double slope = -0.5 * strength / (l + 1);
    if (l > 0) return 1.0 + slope * r;
    return 1.0 + slope * r +
           (0.5 * strength * strength + strength / potential.length_nm - k_per_nm * k_per_nm) * r *
               r / 6.0;
  };
  double before = 1e-30 * std::pow(first / (first + 1.0), l + 1) * series(first * h),
         here = 1e-30 * series((first + 1) * h);
  double force_before = force(first), force_here = force(first + 1);
  for (int i = first + 1; i < grid.steps; ++i) {
    const double force_next = force(i + 1);
    const double next =
        (2.0 * here * (1.0 + 5.0 * c * force_here) - before * (1.0 - c * force_before)) /
        (1.0 - c * force_next);
    before = here;
    here = next;
    force_before = force_here;
    force_here = force_next;
    if (std::fabs(here) > 1e100) {
      before *= 1e-100;
      here *= 1e-100;
    }
  }
  return {before, here};
}

double transport_sum(const std::vector<double>& shifts) {
  double sum = 0.0;
  for (std::size_t l = 0; l + 1 < shifts.size(); ++l) {
    const double sine = std::sin(shifts[l] - shifts[l + 1]);
    sum += static_cast<double>(l + 1) * sine * sine;
  }
  return sum;
}

}  // namespace

ScreenedCoulomb donor_potential(double mass_m0, double eps_r, double length_nm) {
  return {mass_m0 / kHbar2Over2m0_ev_nm2 * kChargeOverEpsilon0_v_nm / eps_r / (4.0 * units::kPi),
          length_nm};
}

std::vector<double> phase_shifts(const ScreenedCoulomb& potential, double k_per_nm, int highest) {
  const RadialGrid grid = radial_grid(potential, k_per_nm);
  const double last = grid.step_nm * grid.steps, inner = last - grid.step_nm;
  std::vector<double> shifts;
  for (int l = 0; l <= highest; ++l) {
    const auto order = static_cast<unsigned>(l);
    const std::array<double, 2> u = radial_wave(potential, k_per_nm, l, grid);
    // u/r ∝ cos δ j_l(kr) − sin δ n_l(kr) at both nodes.
    const double outer_value = u[1] / last, inner_value = u[0] / inner;
    const double tangent = (outer_value * std::sph_bessel(order, k_per_nm * inner) -
                            inner_value * std::sph_bessel(order, k_per_nm * last)) /
                           (outer_value * std::sph_neumann(order, k_per_nm * inner) -
                            inner_value * std::sph_neumann(order, k_per_nm * last));
    shifts.push_back(std::atan(tangent));
  }
  return shifts;
}

std::vector<double> born_phase_shifts(const ScreenedCoulomb& potential, double k_per_nm,
                                      int highest) {
  const double excess = 0.5 / std::pow(k_per_nm * potential.length_nm, 2), x = 1.0 + excess;
  // Q_l is the small solution of its recurrence, so that it runs downwards from far above.
  const double decay = std::log(x + std::sqrt(x * x - 1.0));
  const int start = highest + 10 + static_cast<int>(60.0 / std::max(decay, 0.02));
  std::vector<double> q(static_cast<std::size_t>(start) + 2, 0.0);
  q[static_cast<std::size_t>(start)] = 1e-280;
  for (int n = start; n > 0; --n) {
    const auto at = static_cast<std::size_t>(n);
    q[at - 1] = ((2.0 * n + 1.0) * x * q[at] - (n + 1.0) * q[at + 1]) / n;
    if (q[at - 1] > 1e200)
      for (std::size_t m = at - 1; m < q.size(); ++m) q[m] *= 1e-200;
  }
  const double scale =
      potential.strength_per_nm / (2.0 * k_per_nm) * 0.5 * std::log((x + 1.0) / excess) / q[0];
  std::vector<double> shifts;
  for (int l = 0; l <= highest; ++l) shifts.push_back(scale * q[static_cast<std::size_t>(l)]);
  return shifts;
}

double partial_wave_ratio(const ScreenedCoulomb& potential, double k_per_nm) {
  const double reach = k_per_nm * potential.length_nm;
  const int highest = std::min(kMostWaves, 6 + static_cast<int>(6.0 * reach)) + 1;
  // Born's cross-section in closed form, in units of 4π/k², and its part of low l.
  const double gamma2 = 4.0 * reach * reach;
  const double angle = std::log1p(gamma2) - gamma2 / (1.0 + gamma2);
  const double ratio2 = potential.strength_per_nm / k_per_nm;
  const double born = ratio2 * ratio2 * angle / 8.0;
  double low_born = 0.0;
  const std::vector<double> shifts = born_phase_shifts(potential, k_per_nm, highest);
  for (std::size_t l = 0; l + 1 < shifts.size(); ++l)
    low_born += static_cast<double>(l + 1) * std::pow(shifts[l] - shifts[l + 1], 2);
  const double low = transport_sum(phase_shifts(potential, k_per_nm, highest));
  return (low + std::max(0.0, born - low_born)) / born;
}

PartialWaveTable::PartialWaveTable(const ScreenedCoulomb& potential, double mass_m0)
    : ratio_(kPoints) {
#pragma omp parallel for schedule(dynamic)
  for (int n = 0; n < kPoints; ++n) {
    const double w = kLowest_ev * std::pow(kHighest_ev / kLowest_ev, n / (kPoints - 1.0));
    ratio_[static_cast<std::size_t>(n)] =
        partial_wave_ratio(potential, std::sqrt(mass_m0 * w / kHbar2Over2m0_ev_nm2));
  }
}

double PartialWaveTable::at(double w_ev) const {
  const double position =
      std::clamp(std::log(w_ev / kLowest_ev) / std::log(kHighest_ev / kLowest_ev) * (kPoints - 1),
                 0.0, kPoints - 1.0);
  const auto below = std::min(static_cast<std::size_t>(position), ratio_.size() - 2);
  const double share = position - static_cast<double>(below);
  return (1.0 - share) * ratio_[below] + share * ratio_[below + 1];
}

}  // namespace quasi::mosfet
