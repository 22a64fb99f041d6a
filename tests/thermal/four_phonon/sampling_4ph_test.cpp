// Sampled four-phonon rates: unbiased, with honest error bars, the same bits for whoever draws.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/every_device.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/thermal/four_phonon/kappa_bar_4ph.hpp"
#include "tests/thermal/support/sample_statistics.hpp"
#include "workers/thermal/solver/four_phonon/sampling_4ph.hpp"

namespace quasi::thermal {
namespace {

std::filesystem::path silicon_sw() {
  return quasi::test::source_dir() / "examples/thermal/silicon-sw";
}

/// Few points of a coarse mesh, with every process summed.
struct Sampled {
  Deck deck;
  Modes modes;
  Problem4ph problem;
  std::unique_ptr<ScatteringKernels4ph> kernels;
  Rates4ph exact;
};
Sampled few_points(const char* mesh, const Device& device) {
  Sampled s;
  SilentProgress silent;
  s.deck =
      read_deck(silicon_sw(), {{"ngrid", mesh}, {"four_phonon", ".true."}, {"scalebroad", "1.0"}});
  s.modes = start_run(s.deck, s.deck.control.harmonic_options(), silent).modes;
  const auto& stars = s.deck.symmetry.irreducible;
  s.problem = make_problem_4ph(s.deck.crystal, s.modes, s.deck.symmetry,
                               s.deck.control.four_phonon_options(), *s.deck.fourth_order,
                               {stars[1], stars[2]});
  s.kernels = make_scattering_kernels_4ph(device, 0);
  s.exact = scattering_rates_4ph(s.problem, s.deck.control.constants(), {s.kernels.get()}, silent);
  average_degenerate_4ph(s.modes, s.problem.point, s.exact);
  return s;
}

constexpr int kSeeds = 100;

class Sampling4ph : public quasi::test::OnEveryDevice {
 protected:
  /// `sample(seed)`: rates; over all rows and channels.
  template <typename Sample>
  void check(const Sampled& s, const Sample& sample) {
    const auto rates_of = [](const Rates4ph& rates) {
      std::vector<double> all = rates.normal_per_ps;
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += rates.umklapp_per_ps[i];
      return all;
    };
    test::SampleStatistics statistics(rates_of(s.exact));
    for (int seed = 1; seed <= kSeeds; ++seed) {
      Rates4ph rates = sample(static_cast<std::uint64_t>(seed));
      average_degenerate_4ph(s.modes, s.problem.point, rates);
      statistics.add(rates_of(rates), rates.error_per_ps);
    }
    statistics.expect_honest();
  }
};

TEST_P(Sampling4ph, UniformDrawsAreUnbiasedWithHonestBars) {
  const Sampled s = few_points("3 3 3", GetParam());
  SilentProgress silent;
  check(s, [&](std::uint64_t seed) {
    return uniform_sample_4ph(s.problem, s.deck.control.constants(), {seed, 6000, 6000},
                              {s.kernels.get()}, silent);
  });
}

TEST_P(Sampling4ph, WeightedDrawsAreUnbiasedWithHonestBars) {
  const Sampled s = few_points("4 4 4", GetParam());
  SilentProgress silent;
  check(s, [&](std::uint64_t seed) {
    return weighted_sample_4ph(s.problem, s.deck.control.constants(),
                               {seed, 2000, [](const Rates4ph&) { return true; }},
                               {s.kernels.get()}, silent);
  });
}

// The bar on κ is as long as κ scatters: over 100 seeds the errors in units of their bars have the
// root mean square 1 (a standard deviation of that is 0.07; bars rest on the sample, so a quarter
// is let pass), and two bars cover κ in 90 to 99 of 100.
TEST_P(Sampling4ph, TheBarOnKappaIsHonest) {
  const auto exact = test::exact_silicon_4ph(GetParam());
  for (const bool uniform : {true, false}) {
    const test::KappaBar bar =
        uniform ? test::kappa_bar_4ph(*exact, GetParam(), Sampling::kUniform, 4000, kSeeds)
                : test::kappa_bar_4ph(*exact, GetParam(), Sampling::kByWeight, 300, kSeeds);
    std::printf(
        "    %s: bar %.4f of κ, root mean square of error/bar %.2f, two bars cover %d of %d\n",
        uniform ? "uniform" : "by weight", bar.mean_bar, bar.rms_error_over_bar, bar.covered,
        kSeeds);
    EXPECT_NEAR(bar.rms_error_over_bar, 1.0, 0.25);
    EXPECT_GE(bar.covered, 90);
    EXPECT_LE(bar.covered, 99);
  }
}

// Sampling stops when κ is known as well as asked for, and is right about it.
TEST_P(Sampling4ph, StopsAtTheErrorAskedFor) {
  const auto exact = test::solve_deck_4ph(silicon_sw(), {"ngrid=4,4,4"}, {GetParam()});
  for (const char* sampling : {"sampling=by-weight", "sampling=uniform"}) {
    const auto s = test::solve_deck_4ph(
        silicon_sw(), {"ngrid=4,4,4", "target_kappa_error=0.002", sampling}, {GetParam()});
    const double error = s->four_phonon->kappa_relative_error.at(0);
    const double off =
        s->at().kappa_rta_w_per_mk[0][0] / exact->at().kappa_rta_w_per_mk[0][0] - 1.0;
    std::printf("    %s: %.0f elements of %.0f, error %.5f, off by %.5f\n", sampling,
                s->four_phonon->rates.evaluations, exact->four_phonon->rates.evaluations, error,
                off);
    EXPECT_LE(error, 0.002);
    EXPECT_LT(std::fabs(off), 4.0 * error);
    EXPECT_LT(s->four_phonon->rates.evaluations, exact->four_phonon->rates.evaluations);
  }
}

// The keys of the reference: phase spaces from draws leave the rates exact.
TEST(Sampling, PhaseSpaceKeyLeavesRatesExact) {
  const auto exact = test::solve_deck_4ph(silicon_sw(), {"ngrid=3,3,3"});
  const auto s = test::solve_deck_4ph(silicon_sw(),
                                      {"ngrid=3,3,3", "num_sample_process_4ph_phase_space=20000"});
  EXPECT_EQ(s->at().rate_per_ps, exact->at().rate_per_ps);
  const auto total = [](const Rates4ph& rates) {
    return rates.total_processes(Channel4ph::kRedistribution);
  };
  EXPECT_NE(total(s->four_phonon->rates), total(exact->four_phonon->rates));
  EXPECT_NEAR(total(s->four_phonon->rates) / total(exact->four_phonon->rates), 1.0, 0.1);
}

TEST_P(Sampling4ph, SameBitsForAnyNumberOfDevices) {
  for (const char* sampling : {"sampling=by-weight", "sampling=uniform"}) {
    const std::vector<std::string> settings{"ngrid=3,3,3", "num_sample_process_4ph=40000",
                                            sampling};
    const auto one = test::solve_deck_4ph(silicon_sw(), settings, {GetParam()});
    const auto three =
        test::solve_deck_4ph(silicon_sw(), settings, {GetParam(), GetParam(), GetParam()});
    EXPECT_EQ(one->at().rate_per_ps, three->at().rate_per_ps);
    EXPECT_EQ(one->four_phonon->rates.error_per_ps, three->four_phonon->rates.error_per_ps);
  }
}

QUASI_ON_EVERY_DEVICE(Sampling4ph);

}  // namespace
}  // namespace quasi::thermal
