#include "tests/thermal/four_phonon/kappa_bar_4ph.hpp"

#include <cmath>

#include "tests/support/reference_data.hpp"
#include "workers/thermal/solver/four_phonon/sampling_4ph.hpp"
#include "workers/thermal/solver/transport/kappa_error.hpp"
#include "workers/thermal/solver/transport/subspace_conductivity.hpp"

namespace quasi::thermal::test {

namespace {

/// κ_xx with other four-phonon rates.
double kappa_with(const SolvedDeck4ph& exact, const Rates4ph& rates) {
  std::vector<double> w = exact.at().rate_per_ps;
  for (std::int64_t row = 0; row < exact.n_rows(); ++row)
    w[static_cast<std::size_t>(row)] +=
        rates.total_per_ps(0, row) - exact.four_phonon->rates.total_per_ps(0, row);
  const Transport transport = exact.transport();
  const double temperature_k = exact.deck.control.temperatures_k[0];
  return total(mode_conductivity(transport, temperature_k,
                                 relaxation_time_field(transport, w)))[0][0] +
         total(subspace_conductivity(transport, temperature_k, w))[0][0];
}

}  // namespace

KappaBar kappa_bar_4ph(SolvedDeck4ph& exact, const Device& device, Sampling sampling,
                       std::int64_t draws, int n_seeds) {
  const auto kernels = make_scattering_kernels_4ph(device, 0);
  const Problem4ph& problem = exact.four_phonon->problem;
  const PhysicalConstants& constants = exact.deck.control.constants();
  const auto accept = [](const Rates4ph&) { return true; };
  const double kappa = exact.at().kappa_rta_w_per_mk[0][0];
  KappaBar result;
  double square = 0.0;
  for (int seed = 1; seed <= n_seeds; ++seed) {
    const auto number = static_cast<std::uint64_t>(seed);
    Rates4ph rates = sampling == Sampling::kUniform
                         ? uniform_sample_4ph(problem, constants, {number, draws, draws},
                                              {kernels.get()}, exact.silent)
                         : weighted_sample_4ph(problem, constants, {number, draws, accept},
                                               {kernels.get()}, exact.silent);
    average_degenerate_4ph(exact.run.modes, exact.deck.symmetry.irreducible, rates);
    const double bar = relative_kappa_error(
        exact.transport(), exact.run, 0,
        [&](std::int64_t row) { return rates.total_per_ps(0, row); },
        [&](std::int64_t row) { return rates.total_error_per_ps(0, row); });
    const double error = kappa_with(exact, rates) / kappa - 1.0;
    square += error * error / (bar * bar);
    result.covered += std::fabs(error) <= 2.0 * bar;
    result.mean_bar += bar / n_seeds;
  }
  result.rms_error_over_bar = std::sqrt(square / n_seeds);
  return result;
}

std::unique_ptr<SolvedDeck4ph> exact_silicon_4ph(const Device& device,
                                                 const std::function<void(SolvedDeck&)>& adjust) {
  return solve_deck_4ph(quasi::test::source_dir() / "examples/thermal/silicon-sw",
                        {"ngrid=3,3,3", "T=1000", "scalebroad=1", "convergence=F"}, {device},
                        adjust);
}

}  // namespace quasi::thermal::test
