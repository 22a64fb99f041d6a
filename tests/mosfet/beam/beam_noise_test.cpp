// Tests the current noise of the beam scheme at fixed levels against the laws of Nyquist and of
// thermionic currents.

#include "workers/mosfet/kernels/beam/beam_noise.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/mosfet/beam/beam_fixture.hpp"

namespace quasi::mosfet {
namespace {

using test::kKt_ev;

/// Returns the noise of a barrier. @param relaxation_fs  rate of relaxation in every cell of H; 0:
/// none
BeamNoise noise_of(const test::BeamOptions& o, double relaxation_fs = 0.0) {
  const test::TestBeam beam(o);
  const std::vector<double> rates(
      relaxation_fs > 0.0 ? beam.scattering.states().size() : std::size_t{0}, relaxation_fs);
  const BeamScattering scattering(beam.geometry, beam.levels, test::TestBeam::processes_of(o),
                                  test::TestBeam::overlap_of(beam.levels), {0},
                                  {.filling = {}, .roughness = {}, .relaxation_fs = rates});
  return beam_noise(beam.geometry, scattering, beam.inflow, 1e-12);
}

test::BeamOptions options(double barrier_ev, double vds_v, bool scatters) {
  return {.barrier_ev = barrier_ev,
          .vds_v = vds_v,
          .dh_ev = 0.025,
          .n_kappa = 6,
          .scatters = scatters,
          .order = BeamOrder::kFirst};
}

// The current of a fixed barrier is I₀ (1 − e^{−qV/kT}) with the thermionic current I₀. All noise
// of it is that of the two opposite currents: S = 2qI coth(qV/2kT).
TEST(BeamNoise, IsThatOfTwoOppositeCurrents) {
  for (const bool scatters : {false, true})
    for (const double relaxation_fs : {0.0, 2e-2})
      for (const double vds_v : {0.01, 0.05, 0.2}) {
        const BeamNoise found = noise_of(options(0.15, vds_v, scatters), relaxation_fs);
        ASSERT_GT(found.current, 0.0);
        EXPECT_NEAR(
            found.spectral_density * std::tanh(0.5 * vds_v / kKt_ev) / (2.0 * found.current), 1.0,
            1e-6)
            << scatters << ' ' << relaxation_fs << ' ' << vds_v;
      }
}

// Without bias the noise is 4kT g. The levels stay, and a small difference of the Fermi levels
// gives the conductance g.
TEST(BeamNoise, IsThatOfNyquistWithoutBias) {
  for (const bool scatters : {false, true}) {
    const test::TestBeam beam(options(0.1, 0.0, scatters));
    const BeamNoise rest = beam_noise(beam.geometry, beam.scattering, beam.inflow, 1e-12);
    constexpr double kStep_ev = 1e-3;
    const auto current = [&](double drain_fermi_ev) {
      return beam_noise(beam.geometry, beam.scattering,
                        make_beam_inflow(beam.geometry.grid, drain_fermi_ev), 1e-12)
          .current;
    };
    // sinh(x)/x of the step is divided out.
    const double x = kStep_ev / kKt_ev;
    const double conductance =
        (current(-kStep_ev) - current(kStep_ev)) / (2.0 * kStep_ev) / (std::sinh(x) / x);
    EXPECT_LT(std::fabs(rest.current), 1e-10 * rest.spectral_density);
    EXPECT_NEAR(rest.spectral_density / (4.0 * kKt_ev * conductance), 1.0, 1e-6) << scatters;
  }
}

}  // namespace
}  // namespace quasi::mosfet
