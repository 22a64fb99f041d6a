#pragma once

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/mosfet/beam/beam_fixture.hpp"

/// Monte Carlo of the barrier of beam_fixture.hpp: an independent solution without a mesh.
/// Electrons fly on the classical trajectories of Kane's band, with free flights of constant rate
/// and self-scattering.
namespace quasi::test {

class MonteCarlo {
 public:
  /// Electrons enter half a step of x before the first node and leave half a step behind the last
  /// one, as in the control volumes of the beam scheme.
  explicit MonteCarlo(const BeamOptions& o, unsigned seed)
      : options_(o),
        random_(seed),
        begin_nm_(-0.5 * o.dx_nm),
        end_nm_(kLength_nm + 0.5 * o.dx_nm) {}

  /// Share of the electrons of a Maxwellian source that reach the drain, and its standard error.
  struct Share {
    double passed = 0, error = 0;
  };
  Share transmission(int electrons) {
    int passed = 0;
    for (int n = 0; n < electrons; ++n)
      if (reaches_the_drain()) ++passed;
    const double share = static_cast<double>(passed) / electrons;
    return {share, std::sqrt(share * (1.0 - share) / electrons)};
  }

  /// Returns the current that enters at the source, both valleys, 1/(nm fs).
  double entering_current() const {
    constexpr int kPoints = 20000;
    const double step = std::sqrt(1.0 + kAlpha_per_ev) / kPoints;
    double sum = 0.0;
    for (int n = 0; n < kPoints; ++n)
      sum += step * std::exp(-mosfet::beam_least_energy((n + 0.5) * step, kAlpha_per_ev) / kKt_ev);
    return 4.0 * kMass / (units::kPi * units::kPi * mosfet::kHbar_ev_fs * mosfet::kHbar_ev_fs) *
           kKt_ev * sum * std::exp(-energy_ev(begin_nm_) / kKt_ev) / std::sqrt(2.0 * kMass);
  }

 private:
  static constexpr double kMass = 0.19 * mosfet::kElectronMass_ev_fs2_nm2;
  static constexpr double kPhonon_ev = 0.0612, kElastic_fs = 5e-3, kInelastic_fs = 1e-2;
  static constexpr double kStep_fs = 0.5, kLargestEnergy_ev = 1.2;

  double uniform() { return 1.0 - std::uniform_real_distribution<double>()(random_); }
  double energy_ev(double x_nm) const {
    return profile_ev(x_nm, options_.barrier_ev, options_.vds_v);
  }
  static double states(double w_ev) { return w_ev > 0.0 ? 1.0 + 2.0 * kAlpha_per_ev * w_ev : 0.0; }
  static double kinetic_ev(double along, double kappa) {
    return mosfet::beam_least_energy(std::hypot(along, kappa), kAlpha_per_ev);
  }

  // Returns the change of energy by a process that a random number selects among the rates of
  // elastic scattering, absorption, emission and no scattering; `is_real` is false for the latter.
  double scatter(double w_ev, double selector_fs, bool* is_real) const {
    const double phonons = 1.0 / std::expm1(kPhonon_ev / kKt_ev);
    const double elastic = kElastic_fs * states(w_ev),
                 absorbed = elastic + kInelastic_fs * phonons * states(w_ev + kPhonon_ev),
                 emitted = absorbed + kInelastic_fs * (phonons + 1.0) * states(w_ev - kPhonon_ev);
    *is_real = selector_fs < emitted;
    return selector_fs < elastic ? 0.0 : selector_fs < absorbed ? kPhonon_ev : -kPhonon_ev;
  }

  bool reaches_the_drain() {
    const double phonons = 1.0 / std::expm1(kPhonon_ev / kKt_ev);
    const double rate_fs =
        (kElastic_fs + kInelastic_fs * (2.0 * phonons + 1.0)) * states(kLargestEnergy_ev);
    const double root = std::sqrt(2.0 * kMass);
    const auto force = [&](double x_nm) {
      constexpr double kHalf_nm = 1e-3;
      return (energy_ev(x_nm - kHalf_nm) - energy_ev(x_nm + kHalf_nm)) / (2.0 * kHalf_nm * root);
    };
    // The flux of the source is even in κ and in the energy above w(κ), with e^{−w/kT}.
    double kappa = 0.0;
    do {
      kappa = uniform() * std::sqrt(1.0 + kAlpha_per_ev);
    } while (uniform() > std::exp(-mosfet::beam_least_energy(kappa, kAlpha_per_ev) / kKt_ev));
    const double entering_ev =
        mosfet::beam_least_energy(kappa, kAlpha_per_ev) - kKt_ev * std::log(uniform());
    double along = std::sqrt(mosfet::beam_gamma(entering_ev, kAlpha_per_ev) - kappa * kappa);
    double x_nm = begin_nm_, flight_fs = -std::log(uniform()) / rate_fs;
    for (;;) {
      const double step = std::min(kStep_fs, flight_fs);
      along += 0.5 * step * force(x_nm);
      x_nm += step * along * std::sqrt(2.0 / kMass) / states(kinetic_ev(along, kappa));
      if (x_nm < begin_nm_ || x_nm > end_nm_) return x_nm > end_nm_;
      along += 0.5 * step * force(x_nm);
      flight_fs -= step;
      if (flight_fs > 0.0) continue;
      flight_fs = -std::log(uniform()) / rate_fs;
      bool is_real = false;
      const double before_ev = kinetic_ev(along, kappa),
                   after_ev = before_ev + scatter(before_ev, uniform() * rate_fs, &is_real);
      if (!is_real) continue;
      const double angle = 2.0 * units::kPi * uniform(),
                   length = std::sqrt(mosfet::beam_gamma(after_ev, kAlpha_per_ev));
      along = length * std::cos(angle);
      kappa = std::fabs(length * std::sin(angle));
    }
  }

  BeamOptions options_;
  std::mt19937_64 random_;
  double begin_nm_, end_nm_;
};

}  // namespace quasi::test
