// Tests that sampled three-phonon rates are unbiased, that their error bars are honest, and that
// their bits do not depend on threads, devices or interruptions.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/every_device.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/support/sample_statistics.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/solver/three_phonon/sampling_3ph.hpp"
#include "workers/thermal/solver/transport/kappa_error.hpp"

namespace quasi::thermal {
namespace {

std::filesystem::path silicon_sw() {
  return quasi::test::source_dir() / "examples/thermal/silicon-sw";
}

std::vector<double> both_channels(const std::vector<double>& absorption,
                                  const std::vector<double>& emission) {
  std::vector<double> all = absorption;
  all.insert(all.end(), emission.begin(), emission.end());
  return all;
}

class Sampling3ph : public quasi::test::OnEveryDevice {
 protected:
  /// Compares the rates of some seeds with the exact ones, over the rows of three points and both
  /// channels.
  /// @param draw  draw(sampler) returns the rates of one seed
  template <typename Draw>
  void check(const std::string& mesh, const Draw& draw, const std::string& broadening = "symmetric",
             std::uint64_t seeds = 100) {
    const Deck deck = read_deck(
        silicon_sw(), test::settings_of({mesh, "convergence=F", "broadening=" + broadening}));
    const ConductivityRun run = start_run(deck, deck.control.harmonic_options(), silent_);
    ThreePhononProblem problem =
        make_three_phonon_problem(deck.crystal, deck.third_order, deck.symmetry, run.modes,
                                  deck.control.three_phonon_options());
    problem.rows = {deck.symmetry.irreducible[1], deck.symmetry.irreducible[3],
                    deck.symmetry.irreducible[6]};
    const std::vector<double> temperatures = deck.control.temperatures_k;
    const auto exact = make_three_phonon_kernels(GetParam());
    exact->load(problem);
    const ThreePhononRates sums = exact->rates(temperatures, false, silent_);
    const auto kernels = make_sampling_kernels_3ph(GetParam());
    kernels->load(problem, temperatures);
    test::SampleStatistics statistics(both_channels(sums.absorption_per_ps, sums.emission_per_ps));
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      Sampler3 sampler(problem, temperatures, {kernels.get()}, seed, {}, silent_);
      const ThreePhononRates rates = draw(sampler);
      statistics.add(both_channels(rates.absorption_per_ps, rates.emission_per_ps),
                     both_channels(rates.absorption_error_per_ps, rates.emission_error_per_ps));
    }
    statistics.expect_honest();
  }
  SilentProgress silent_;
};

TEST_P(Sampling3ph, UniformDrawsAreUnbiasedWithHonestBars) {
  check("ngrid=6,6,6", [](Sampler3& sampler) { return sampler.uniform(3000, 3000); });
}

TEST_P(Sampling3ph, UniformDrawsOfTetrahedraAreUnbiased) {
  check(
      "ngrid=6,6,6", [](Sampler3& sampler) { return sampler.uniform(3000, 3000); }, "tetrahedra",
      30);
}

TEST_P(Sampling3ph, WeightedDrawsAreUnbiasedWithHonestBars) {
  check("ngrid=8,8,8", [](Sampler3& sampler) {
    return sampler.by_weight(400, [](const ThreePhononRates&) { return true; });
  });
}

// Draws by weight give exact phase spaces and numbers of processes. Uniform draws estimate them.
TEST_P(Sampling3ph, PhaseSpaces) {
  const auto exact = test::solve_deck(silicon_sw(), {"ngrid=5,5,5", "convergence=F"}, GetParam());
  const auto weighted = test::solve_deck(
      silicon_sw(), {"ngrid=5,5,5", "convergence=F", "num_sample_process_3ph=20"}, GetParam());
  const auto uniform =
      test::solve_deck(silicon_sw(),
                       {"ngrid=5,5,5", "convergence=F", "num_sample_process_3ph=200",
                        "num_sample_process_3ph_phase_space=40000", "sampling=uniform"},
                       GetParam());
  const ThreePhononRates& e = exact->run.three_phonon;
  const ThreePhononRates& w = weighted->run.three_phonon;
  const ThreePhononRates& u = uniform->run.three_phonon;
  EXPECT_EQ(w.n_absorption, e.n_absorption);
  EXPECT_EQ(w.n_emission, e.n_emission);
  EXPECT_NE(u.n_absorption, e.n_absorption);
  EXPECT_NEAR(static_cast<double>(u.n_absorption) / static_cast<double>(e.n_absorption), 1.0, 0.03);
  for (std::size_t i = 0; i < e.weighted_absorption_ps4.size(); ++i) {
    EXPECT_NEAR(w.weighted_absorption_ps4[i], e.weighted_absorption_ps4[i],
                1e-10 * e.weighted_absorption_ps4[i] + 1e-300);
    EXPECT_NEAR(w.weighted_emission_ps4[i], e.weighted_emission_ps4[i],
                1e-10 * e.weighted_emission_ps4[i] + 1e-300);
  }
  for (std::size_t i = 0; i < e.phase_space_emission_ps.size(); ++i)
    EXPECT_NEAR(w.phase_space_emission_ps[i], e.phase_space_emission_ps[i],
                1e-10 * e.phase_space_emission_ps[i] + 1e-300);
}

// Draws stop when the error of κ is as small as asked for, and the true error is as small.
TEST_P(Sampling3ph, StopsAtTheErrorAskedFor) {
  const auto exact = test::solve_deck(silicon_sw(), {"ngrid=6,6,6", "convergence=F"}, GetParam());
  const double processes = static_cast<double>(exact->run.three_phonon.n_absorption +
                                               exact->run.three_phonon.n_emission);
  double elements[2];
  for (int kind = 0; kind < 2; ++kind) {
    const auto s = test::solve_deck(silicon_sw(),
                                    {"ngrid=6,6,6", "convergence=F", "target_kappa_error=0.04",
                                     kind == 0 ? "sampling=by-weight" : "sampling=uniform"},
                                    GetParam());
    const double error = relative_kappa_error(s->transport(), s->run, 0, {}, [&](std::int64_t row) {
      return s->run.three_phonon.error_per_ps(0, row);
    });
    const double off = s->run.by_temperature[0].kappa_rta_w_per_mk[0][0] /
                           exact->run.by_temperature[0].kappa_rta_w_per_mk[0][0] -
                       1.0;
    elements[kind] = s->run.three_phonon.evaluations;
    std::printf("    %s: %.0f elements of %.0f, error %.5f, off by %.5f\n",
                kind == 0 ? "by weight" : "uniform", elements[kind], processes, error, off);
    EXPECT_LE(error, 0.04);
    EXPECT_GT(error, 0.0);
    EXPECT_LT(std::fabs(off), 4.0 * error);
  }
  EXPECT_LT(elements[0], elements[1]);
}

// If every process is drawn with certainty, the sum is the exact one.
TEST_P(Sampling3ph, AllProcessesDrawnGiveTheSum) {
  const auto expect_equal = [](const std::vector<double>& a, const std::vector<double>& b) {
    const double largest = *std::max_element(b.begin(), b.end());
    for (std::size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i], b[i], 1e-10 * b[i] + 1e-20 * largest);
  };
  for (const std::vector<std::string>& own : {std::vector<std::string>{"broadening=symmetric"},
                                              {"broadening=fixed", "sigma_thz=0.3"},
                                              {"broadening=tetrahedra"}}) {
    SCOPED_TRACE(own[0]);
    std::vector<std::string> settings{"ngrid=4,4,4", "convergence=F"};
    settings.insert(settings.end(), own.begin(), own.end());
    const auto exact = test::solve_deck(silicon_sw(), settings, GetParam());
    settings.push_back("num_sample_process_3ph=1000000000000");
    const auto all = test::solve_deck(silicon_sw(), settings, GetParam());
    const ThreePhononRates &a = all->run.three_phonon, &e = exact->run.three_phonon;
    ASSERT_GT(e.n_emission, 0);
    EXPECT_EQ(a.n_absorption, e.n_absorption);
    EXPECT_EQ(a.n_emission, e.n_emission);
    expect_equal(a.absorption_per_ps, e.absorption_per_ps);
    expect_equal(a.emission_per_ps, e.emission_per_ps);
    expect_equal(a.normal_emission_per_ps, e.normal_emission_per_ps);
    expect_equal(a.weighted_emission_ps4, e.weighted_emission_ps4);
  }
}

// With FourPhonon's key for phase spaces from draws the rates stay exact.
TEST(Sampling3, PhaseSpaceKeyLeavesRatesExact) {
  const auto exact = test::solve_deck(silicon_sw(), {"ngrid=4,4,4"});
  const auto drawn =
      test::solve_deck(silicon_sw(), {"ngrid=4,4,4", "num_sample_process_3ph_phase_space=20000"});
  EXPECT_EQ(drawn->run.three_phonon.absorption_per_ps, exact->run.three_phonon.absorption_per_ps);
  EXPECT_NE(drawn->run.three_phonon.n_absorption, exact->run.three_phonon.n_absorption);
  EXPECT_NEAR(static_cast<double>(drawn->run.three_phonon.n_absorption) /
                  static_cast<double>(exact->run.three_phonon.n_absorption),
              1.0, 0.03);
}

TEST(Sampling3, SameBitsForAnyNumberOfDevices) {
  SilentProgress silent;
  const auto deck = test::solve_deck(silicon_sw(), {"ngrid=5,5,5", "convergence=F"});
  std::vector<std::unique_ptr<SamplingKernels3>> owned;
  std::vector<SamplingKernels3*> team;
  for (int i = 0; i < 4; ++i) {
    owned.push_back(make_sampling_kernels_3ph(Device{}));
    owned.back()->load(deck->problem, deck->deck.control.temperatures_k);
    team.push_back(owned.back().get());
  }
  const auto sample = [&](std::size_t n, bool uniform) {
    Sampler3 sampler(deck->problem, deck->deck.control.temperatures_k,
                     {team.begin(), team.begin() + static_cast<std::ptrdiff_t>(n)}, 7, {}, silent);
    return uniform ? sampler.uniform(3000, 3000)
                   : sampler.by_weight(50, [](const ThreePhononRates&) { return true; });
  };
  for (const bool uniform : {false, true}) {
    const ThreePhononRates one = sample(1, uniform);
    for (const std::size_t n : {2u, 4u}) {
      const ThreePhononRates several = sample(n, uniform);
      EXPECT_EQ(one.absorption_per_ps, several.absorption_per_ps);
      EXPECT_EQ(one.emission_error_per_ps, several.emission_error_per_ps);
    }
  }
}

/// Asks for a checkpoint at every report and cancels after some of them.
class Interrupting : public SilentProgress {
 public:
  explicit Interrupting(int reports) : left_(reports) {}
  bool checkpoint_wanted() override { return true; }
  bool cancelled() const override { return left_ < 0; }

 protected:
  void on_report(std::string_view, std::int64_t, std::int64_t) override { --left_; }

 private:
  int left_;
};

TEST(Sampling3, ResumedSampleHasTheSameBits) {
  SilentProgress silent;
  const auto deck = test::solve_deck(silicon_sw(), {"ngrid=5,5,5", "convergence=F"});
  const auto kernels = make_sampling_kernels_3ph(Device{});
  const std::vector<double> temperatures = deck->deck.control.temperatures_k;
  kernels->load(deck->problem, temperatures);
  const auto draw = [&](const std::filesystem::path& directory, Progress& progress) {
    Sampler3 sampler(deck->problem, temperatures, {kernels.get()}, 3, {directory}, progress);
    return sampler.by_weight(
        50, [](const ThreePhononRates& rates) { return rates.evaluations > 20000; });
  };
  const ThreePhononRates whole = draw({}, silent);
  const quasi::test::TemporaryDirectory directory;
  Interrupting interrupting(3);
  EXPECT_THROW(draw(directory.path(), interrupting), Cancelled);
  class First : public SilentProgress {
   public:
    std::int64_t done = -1;

   protected:
    void on_report(std::string_view, std::int64_t at, std::int64_t) override {
      if (done < 0) done = at;
    }
  } first;
  const ThreePhononRates resumed = draw(directory.path(), first);
  EXPECT_GT(first.done, 1) << "began anew";
  EXPECT_EQ(whole.absorption_per_ps, resumed.absorption_per_ps);
  EXPECT_EQ(whole.emission_error_per_ps, resumed.emission_error_per_ps);
  EXPECT_EQ(whole.evaluations, resumed.evaluations);
}

TEST(Sampling3, RefusesWhatCannotBeSampled) {
  for (const std::vector<std::string>& settings :
       {std::vector<std::string>{"num_sample_process_3ph=100"},
        {"target_kappa_error=0.1"},
        {"num_sample_process_3ph=100", "convergence=F", "precision=mixed"},
        {"num_sample_process_3ph=100", "convergence=F", "strategy=list-host"}})
    EXPECT_THROW(read_deck(silicon_sw(), test::settings_of(settings)), InvalidInput) << settings[0];
}

QUASI_ON_EVERY_DEVICE(Sampling3ph);

}  // namespace
}  // namespace quasi::thermal
