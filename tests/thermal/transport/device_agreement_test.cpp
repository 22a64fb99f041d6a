#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/every_device.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/thermal/support/solved_deck.hpp"

namespace quasi::thermal {
namespace {

class DeviceAgreement : public quasi::test::OnEveryDevice {};

// The shipped silicon deck with common eigenvectors (modes are always solved on the host). Rates
// and κ of every device agree with the CPU's within 1e-10, for the symmetric width, the
// reference's, a fixed one and tetrahedra.
TEST_P(DeviceAgreement, SiliconRatesAndKappa) {
  const auto deck = quasi::test::source_dir() / "examples/thermal/silicon";
  for (const std::vector<std::string>& own : {std::vector<std::string>{"compat=none"},
                                              {"compat=fourphonon"},
                                              {"broadening=fixed", "sigma_thz=0.15"},
                                              {"broadening=tetrahedra"}}) {
    SCOPED_TRACE(own[0]);
    std::vector<std::string> settings{"ngrid=6,6,6", "T=100,300,700", "eps=1e-13"};
    settings.insert(settings.end(), own.begin(), own.end());
    const auto host = test::solve_deck(deck, settings);
    const auto device = test::solve_deck(deck, settings, GetParam());
    const ThreePhononRates& a = host->run.three_phonon;
    const ThreePhononRates& b = device->run.three_phonon;
    EXPECT_EQ(a.n_absorption, b.n_absorption);
    EXPECT_EQ(a.n_emission, b.n_emission);
    double worst = 0.0;
    const auto compare = [&](const std::vector<double>& x, const std::vector<double>& y) {
      ASSERT_EQ(x.size(), y.size());
      for (std::size_t i = 0; i < x.size(); ++i)
        if (x[i] != 0.0 || y[i] != 0.0) worst = std::max(worst, std::fabs(y[i] / x[i] - 1.0));
    };
    compare(a.absorption_per_ps, b.absorption_per_ps);
    compare(a.emission_per_ps, b.emission_per_ps);
    compare(a.normal_absorption_per_ps, b.normal_absorption_per_ps);
    compare(a.normal_emission_per_ps, b.normal_emission_per_ps);
    compare(a.weighted_absorption_ps4, b.weighted_absorption_ps4);
    EXPECT_LT(worst, 1e-10);
    for (std::size_t t = 0; t < host->run.by_temperature.size(); ++t) {
      const TemperatureResult& x = host->run.by_temperature[t];
      const TemperatureResult& y = device->run.by_temperature[t];
      EXPECT_NEAR(y.kappa_rta_w_per_mk[0][0] / x.kappa_rta_w_per_mk[0][0], 1.0, 1e-10);
      EXPECT_NEAR(y.kappa_w_per_mk[0][0] / x.kappa_w_per_mk[0][0], 1.0, 1e-10);
    }
  }
}

QUASI_ON_EVERY_DEVICE(DeviceAgreement);

}  // namespace
}  // namespace quasi::thermal
