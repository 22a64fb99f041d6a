#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "bench/published/published_sums_3ph.hpp"
#include "tests/support/every_device.hpp"
#include "tests/thermal/three_phonon/random_crystal_3ph.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/solver/three_phonon/recomputed_sums_3ph.hpp"

namespace quasi::thermal {
namespace {

const std::vector<double> kTemperatures_k{80.0, 300.0, 900.0};

/// Differences are taken against the largest value: sums of random signs cancel.
void expect_close(const std::vector<double>& found, const std::vector<double>& expected,
                  double tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double scale = 0.0;
  for (const double x : expected) scale = std::max(scale, std::fabs(x));
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], tolerance * std::max(std::fabs(expected[i]), 1e-3 * scale))
        << what << " " << i;
}

oracle::Width3ph width_of(Broadening kind) {
  return kind == Broadening::kSymmetric     ? oracle::Width3ph::kSymmetric
         : kind == Broadening::kAdaptiveMax ? oracle::Width3ph::kMax
         : kind == Broadening::kFixed       ? oracle::Width3ph::kFixed
         : kind == Broadening::kTetrahedra  ? oracle::Width3ph::kTetrahedra
                                            : oracle::Width3ph::kRms;
}

/// A random vector for every mode: as the oracle reads it and as the kernels do.
struct VectorField {
  std::vector<std::vector<std::array<double, 3>>> oracle;  ///< [point][branch]
  std::vector<double> f;                                   ///< [n_modes][3]
};

VectorField random_field(std::size_t n_points, int n_branches, unsigned seed) {
  VectorField field;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  field.oracle.resize(n_points);
  for (auto& point : field.oracle)
    for (int s = 0; s < n_branches; ++s) {
      point.push_back({unit(random), unit(random), unit(random)});
      field.f.insert(field.f.end(), point.back().begin(), point.back().end());
    }
  return field;
}

/// The sums that the kernels should give.
struct ExpectedSums {
  ThreePhononRates rates;             ///< at kTemperatures_k
  std::vector<double> in_scattering;  ///< [n_rows][3] at 300 K
  std::vector<double> row_rates;      ///< [n_rows] at 300 K
};

/// Sums of the oracle, row by row and temperature by temperature.
ExpectedSums oracle_sums(const test::RandomCrystal3& c, const VectorField& field) {
  ExpectedSums expected;
  ThreePhononRates& r = expected.rates;
  const int nb = c.problem.n_branches();
  for (const double temperature : kTemperatures_k)
    for (std::int64_t row = 0; row < c.problem.n_rows(); ++row) {
      const oracle::Settings3ph settings{.width = width_of(c.problem.broadening),
                                         .scale_broad = c.problem.scale_broad,
                                         .cut = c.problem.cut,
                                         .delta_factor = c.problem.delta_norm,
                                         .temperature_k = temperature,
                                         .rate_constant = c.problem.rate_constant};
      const auto sums = oracle::three_phonon_sums(c.oracle, settings, c.problem.rows[row / nb],
                                                  static_cast<int>(row % nb), field.oracle);
      r.absorption_per_ps.push_back(sums.absorption);
      r.emission_per_ps.push_back(sums.emission);
      r.normal_absorption_per_ps.push_back(sums.normal_absorption);
      r.normal_emission_per_ps.push_back(sums.normal_emission);
      r.weighted_absorption_ps4.push_back(sums.weighted_absorption);
      r.weighted_emission_ps4.push_back(sums.weighted_emission);
      if (temperature == kTemperatures_k[0]) {
        r.phase_space_absorption_ps.push_back(sums.phase_space_absorption);
        r.phase_space_emission_ps.push_back(sums.phase_space_emission);
        r.n_absorption += sums.n_absorption;
        r.n_emission += sums.n_emission;
      }
      if (temperature == 300.0) {
        expected.in_scattering.insert(expected.in_scattering.end(), sums.in_scattering.begin(),
                                      sums.in_scattering.end());
        expected.row_rates.push_back(sums.absorption + sums.emission);
      }
    }
  return expected;
}

/// Expects all sums of `sums`, which has loaded the crystal, within 1e-10: they have some hundred
/// terms, each a product of a few dozen factors.
void expect_sums(ThreePhononSums& sums, const VectorField& field, const ExpectedSums& expected) {
  SilentProgress silent;
  const ThreePhononRates rates = sums.rates(kTemperatures_k, true, silent);
  const ThreePhononRates& e = expected.rates;
  EXPECT_EQ(rates.n_absorption, e.n_absorption);
  EXPECT_EQ(rates.n_emission, e.n_emission);
  if (e.n_absorption + e.n_emission == 0) return;
  const auto close = [](const std::vector<double>& found, const std::vector<double>& truth,
                        const char* what) { expect_close(found, truth, 1e-10, what); };
  close(rates.absorption_per_ps, e.absorption_per_ps, "absorption");
  close(rates.emission_per_ps, e.emission_per_ps, "emission");
  close(rates.normal_absorption_per_ps, e.normal_absorption_per_ps, "normal absorption");
  close(rates.normal_emission_per_ps, e.normal_emission_per_ps, "normal emission");
  close(rates.weighted_absorption_ps4, e.weighted_absorption_ps4, "WP3+");
  close(rates.weighted_emission_ps4, e.weighted_emission_ps4, "WP3-");
  close(rates.phase_space_absorption_ps, e.phase_space_absorption_ps, "P3+");
  close(rates.phase_space_emission_ps, e.phase_space_emission_ps, "P3-");
  close(sums.apply_collision(300.0, OccupationForm::kDifferences, field.f), expected.in_scattering,
        "in-scattering");
  close(sums.row_rates(300.0, OccupationForm::kDifferences), expected.row_rates, "row rates");
}

/// The sums that jobs use, and those of the published strategies, which know Gaussians alone.
std::vector<std::unique_ptr<ThreePhononSums>> all_sums(const Device& device,
                                                       Broadening kind = Broadening::kSymmetric) {
  std::vector<std::unique_ptr<ThreePhononSums>> sums;
  sums.push_back(make_three_phonon_kernels(device));
  if (kind == Broadening::kTetrahedra) return sums;
  for (const PublishedStrategy strategy :
       {PublishedStrategy::kListHost, PublishedStrategy::kListDevice,
        PublishedStrategy::kModeByMode, PublishedStrategy::kTestAndSum})
    sums.push_back(make_published_sums_3ph(device, strategy));
  return sums;
}

class Kernels3ph : public quasi::test::OnEveryDevice {};

// The sums of jobs and of every published strategy on every device equal those of the oracle's
// plain loops, for 1 to 4 atoms and all kinds of σ.
TEST_P(Kernels3ph, AgreeWithTheOracle) {
  struct Case {
    int n_atoms;
    Index3 mesh;
    Broadening kind;
  };
  const Case cases[] = {
      {1, {4, 3, 5}, Broadening::kSymmetric},  {2, {3, 4, 2}, Broadening::kAdaptiveMax},
      {2, {3, 3, 3}, Broadening::kSymmetric},  {3, {2, 3, 2}, Broadening::kAdaptiveRms},
      {4, {2, 1, 3}, Broadening::kSymmetric},  {1, {1, 1, 1}, Broadening::kSymmetric},
      {2, {2, 3, 4}, Broadening::kFixed},      {1, {4, 3, 5}, Broadening::kTetrahedra},
      {2, {2, 3, 2}, Broadening::kTetrahedra}, {3, {2, 1, 3}, Broadening::kTetrahedra},
      {1, {1, 1, 1}, Broadening::kTetrahedra}};
  unsigned seed = 11;
  for (const Case& test_case : cases) {
    const auto c =
        test::random_crystal_3ph(test_case.n_atoms, test_case.mesh, ++seed, test_case.kind);
    const VectorField field = random_field(c->oracle.omega.size(), c->problem.n_branches(), seed);
    const ExpectedSums expected = oracle_sums(*c, field);
    const auto sums = all_sums(GetParam(), test_case.kind);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      SCOPED_TRACE("atoms " + std::to_string(test_case.n_atoms) + ", strategy " +
                   std::to_string(i));
      sums[i]->load(c->problem);
      expect_sums(*sums[i], field, expected);
    }
  }
}

// Equal inputs give equal bits on one device: in two runs and, on the CPU, with one thread and with
// two.
TEST_P(Kernels3ph, GiveTheSameBitsAgain) {
  const auto c = test::random_crystal_3ph(2, {4, 3, 4}, 5, Broadening::kSymmetric);
  const int threads = omp_get_max_threads();
  for (std::size_t strategy = 0; strategy < all_sums(GetParam()).size(); ++strategy) {
    SCOPED_TRACE("strategy " + std::to_string(strategy));
    std::vector<ThreePhononRates> runs;
    std::vector<std::vector<double>> applied;
    for (const int n : {1, 2, 2}) {
      omp_set_num_threads(n);
      const auto sums = std::move(all_sums(GetParam())[strategy]);
      sums->load(c->problem);
      SilentProgress silent;
      runs.push_back(sums->rates(kTemperatures_k, true, silent));
      applied.push_back(
          sums->apply_collision(300.0, OccupationForm::kSymmetric, c->modes.spread_rad_ps));
    }
    omp_set_num_threads(threads);
    for (std::size_t i = 1; i < runs.size(); ++i) {
      EXPECT_EQ(runs[0].absorption_per_ps, runs[i].absorption_per_ps);
      EXPECT_EQ(runs[0].emission_per_ps, runs[i].emission_per_ps);
      EXPECT_EQ(runs[0].normal_absorption_per_ps, runs[i].normal_absorption_per_ps);
      EXPECT_EQ(runs[0].normal_emission_per_ps, runs[i].normal_emission_per_ps);
      EXPECT_EQ(applied[0], applied[i]);
    }
  }
}

/// Keeps the log and cancels when told to.
class Listening : public SilentProgress {
 public:
  void log(std::string_view line) override { lines += line; }
  bool cancelled() const override { return stop; }
  std::string lines;
  bool stop = false;
};

// A list that does not fit is made again, part by part, at every application. On the CPU it gives
// the bits of a kept list. On CUDA it agrees within 1e-12, because the order of the products
// depends on how many rows go together. A cancelled job ends between two parts.
TEST_P(Kernels3ph, RecomputedProcessesGiveWhatKeptOnesGive) {
  const auto c = test::random_crystal_3ph(2, {4, 4, 3}, 3, Broadening::kSymmetric);
  Listening progress;
  const auto kept = make_three_phonon_sums(GetParam());
  kept->load(c->problem);
  const ThreePhononRates rates = kept->rates(kTemperatures_k, true, progress);
  EXPECT_TRUE(progress.lines.empty()) << progress.lines;
  auto problem = c->problem;
  problem.memory_budget_bytes =
      (rates.n_absorption + rates.n_emission) * static_cast<std::int64_t>(sizeof(Process3)) / 5;
  const auto recomputed = make_three_phonon_sums(GetParam());
  recomputed->load(problem);
  const ThreePhononRates again = recomputed->rates(kTemperatures_k, true, progress);
  EXPECT_NE(progress.lines.find("every iteration computes the three-phonon processes again"),
            std::string::npos)
      << progress.lines;
  const double tolerance = GetParam().backend == Backend::kCpu ? 0.0 : 1e-12;
  const auto expect_same = [&](const std::vector<double>& a, const std::vector<double>& b,
                               const char* what) {
    ASSERT_EQ(a.size(), b.size()) << what;
    double largest = 0.0;
    for (const double x : a) largest = std::max(largest, std::fabs(x));
    EXPECT_GT(largest, 0.0) << what;
    for (std::size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i], b[i], tolerance * largest) << what << " " << i;
  };
  expect_same(rates.absorption_per_ps, again.absorption_per_ps, "absorption");
  for (const OccupationForm form : {OccupationForm::kSymmetric, OccupationForm::kDifferences})
    for (const double t : {kTemperatures_k.front(), kTemperatures_k.back()}) {
      expect_same(kept->row_rates(t, form), recomputed->row_rates(t, form), "rates of rows");
      expect_same(kept->apply_collision(t, form, c->modes.spread_rad_ps),
                  recomputed->apply_collision(t, form, c->modes.spread_rad_ps), "in-scattering");
    }
  progress.stop = true;
  EXPECT_THROW(recomputed->row_rates(300.0, OccupationForm::kSymmetric), Cancelled);
}

// If not even the list of one point fits, both kinds of sums refuse before the work and name the
// need and the budget.
TEST_P(Kernels3ph, RefuseAListThatCannotFit) {
  const auto c = test::random_crystal_3ph(2, {4, 4, 4}, 3, Broadening::kSymmetric);
  c->problem.memory_budget_bytes = 1024;
  const auto kernels = make_three_phonon_kernels(GetParam());
  SilentProgress silent;
  const auto sums = make_three_phonon_sums(GetParam());
  for (ThreePhononSums* each : {static_cast<ThreePhononSums*>(kernels.get()), sums.get()}) {
    try {
      each->load(c->problem);
      each->rates({300.0}, true, silent);
      FAIL() << "a list in 1 KiB was accepted";
    } catch (const OutOfMemory& failure) {
      EXPECT_NE(std::string(failure.what()).find("MiB"), std::string::npos) << failure.what();
    }
  }
}

QUASI_ON_EVERY_DEVICE(Kernels3ph);

// The matrix element obeys the laws of docs/theory/thermal.md 12.3: exchanging two created phonons
// with their slots changes nothing, and reversing every q (e → e*) conjugates it.
TEST(MatrixElement3ph, IsSymmetricAndReversible) {
  const auto c = test::random_crystal_3ph(2, {3, 4, 2}, 21, Broadening::kSymmetric);
  auto reversed = c->oracle;
  const QMesh& mesh = c->problem.mesh;
  for (int q = 0; q < mesh.size(); ++q) {
    reversed.e[mesh.minus(q)] = c->oracle.e[q];
    for (auto& vector : reversed.e[mesh.minus(q)])
      for (auto& x : vector) x = std::conj(x);
  }
  for (int q0 = 0; q0 < mesh.size(); q0 += 5)
    for (int q1 = 0; q1 < mesh.size(); q1 += 3) {
      const int q2 = mesh.add(q0, q1, -1);
      const auto v = oracle::matrix_element_3ph(c->oracle, true, q0, 1, q1, 2, q2, 4);
      const auto exchanged = oracle::matrix_element_3ph(c->oracle, true, q0, 1, q2, 4, q1, 2);
      EXPECT_NEAR(std::abs(v - exchanged), 0.0, 1e-10 * std::max(1.0, std::abs(v)));
      const auto back = oracle::matrix_element_3ph(reversed, true, mesh.minus(q0), 1,
                                                   mesh.minus(q1), 2, mesh.minus(q2), 4);
      EXPECT_NEAR(std::abs(std::conj(v) - back), 0.0, 1e-10 * std::max(1.0, std::abs(v)));
    }
}

// Mixed precision finds the same processes, and its rates differ by the rounding of the matrix
// elements to FP32. Random crystals have no sum rule, hence no cancellation: 3e-6 is some tens of
// roundings.
TEST_P(Kernels3ph, MixedPrecisionIsSinglePrecisionOfTheMatrixElements) {
  for (const int n_atoms : {1, 2, 3}) {
    const auto c = test::random_crystal_3ph(
        n_atoms, {3, 4, 2}, 90u + static_cast<unsigned>(n_atoms), Broadening::kSymmetric);
    std::vector<ThreePhononRates> rates;
    for (const Precision precision : {Precision::kDouble, Precision::kMixed}) {
      c->problem.precision = precision;
      const auto kernels = make_three_phonon_kernels(GetParam());
      kernels->load(c->problem);
      SilentProgress silent;
      rates.push_back(kernels->rates(kTemperatures_k, true, silent));
    }
    EXPECT_EQ(rates[0].n_absorption, rates[1].n_absorption);
    EXPECT_EQ(rates[0].weighted_absorption_ps4, rates[1].weighted_absorption_ps4);
    ASSERT_GT(rates[0].n_absorption, 0);
    expect_close(rates[1].absorption_per_ps, rates[0].absorption_per_ps, 3e-6, "absorption");
    expect_close(rates[1].emission_per_ps, rates[0].emission_per_ps, 3e-6, "emission");
    EXPECT_NE(rates[0].absorption_per_ps, rates[1].absorption_per_ps);
  }
}

// A GPU whose memory others have taken leaves a negative rest, and a short list needs less than a
// MiB. Neither is shown as such.
TEST(ListOfProcesses, ThatDoesNotFitIsRefusedWithSizesThatMakeSense) {
  const auto message = [](std::int64_t list_bytes, std::int64_t budget_bytes) -> std::string {
    try {
      require_list_fits(877, list_bytes, budget_bytes);
      return "accepted";
    } catch (const OutOfMemory& refusal) {
      return refusal.what();
    }
  };
  EXPECT_EQ(message(4096, 4096), "accepted");
  EXPECT_NE(message(4097, 4096).find("877 three-phonon processes needs 1 MiB and 1 MiB may be"),
            std::string::npos)
      << message(4097, 4096);
  const std::string used_up = message(4096, -(std::int64_t{885} << 20));
  EXPECT_NE(used_up.find("needs 1 MiB and the memory is used up"), std::string::npos) << used_up;
  EXPECT_EQ(used_up.find("885"), std::string::npos) << used_up;
}

}  // namespace
}  // namespace quasi::thermal
