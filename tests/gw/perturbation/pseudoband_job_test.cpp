// Tests jobs whose decks have the tables [perturbation] and [pseudobands]
// (docs/theory/gw.md 14.12).

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/gw/support/bars_of_jobs.hpp"
#include "tests/gw/support/planned_deck.hpp"
#include "tests/support/every_device.hpp"
#include "workers/gw/output/result_file.hpp"
#include "workers/gw/output/summary.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw {
namespace {

using test::expect_refusal;
using test::run_on_cpus;

/// Holds a crystal of which 24 of about 60 states are calculated. Wide windows keep degrees low.
std::string crystal_of(const std::string& name, const std::string& grid, int bands = 24) {
  return "[meanfield]\nsource = \"epm\"\ncrystal = \"" + name + "\"\nk_grid = " + grid +
         "\ncutoff_ry = 5.0\nbands = " + std::to_string(bands) + "\n";
}
const std::string kOperator = "solver = \"operator\"\n";
const std::string kScreening = "[epsilon]\ncutoff_ry = 3.0\n";
const std::string kRandom =
    "[pseudobands]\nratio = 0.5\nmax_identity_error = 0.02\nprotected_ry = 0.6\n";
const std::string kPerturbed = "[perturbation]\nstate_response = \"sternheimer\"\n";

const std::string kExact = "\"cohsex\"\nexact_ch = true";

Calculation run(const std::string& deck, const std::vector<Setting>& settings = {},
                int devices = 1) {
  return run_on_cpus(parse_deck(deck, settings, "test", "."), devices);
}

// The job makes windows of the displaced H from the same random vectors, by polynomials alone. W,
// windows and the outer states stay. Silicon at rest has real states and random signs; displaced it
// has complex ones. 2e-5 eV/Bohr: h² of 0.002 Bohr, a quarter of what 0.004 Bohr leaves.
TEST(PseudobandPerturbation, IsThatOfFiniteDisplacements) {
  const auto largest_ev = [](const std::string& method, const std::string& step) {
    const Calculation found =
        run(crystal_of("silicon", "[2, 1, 1]") + kOperator + kScreening +
            "[sigma]\nband_min = 3\nband_max = 6\nkpoints = [[0.5, 0, 0]]\npole_half_width_ev = 0\n"
            "sx_cut = 1e6\nmethod = " +
            method + "\n" + kRandom + "vectors = 2\n" +
            (method == "\"hl-gpp\"" ? "closure = \"sigma\"\n" : "") + kPerturbed +
            // These are four displacements, one more than a part holds.
            (method == kExact ? "directions = [\"x\", \"z\"]\n"
                              : "atoms = [2]\ndirections = [\"z\"]\n") +
            "check_step_bohr = " + step + "\n");
    double largest = 0.0;
    for (const auto& at_k : found.displacements->at)
      for (const ElementsAtK& at : at_k)
        largest = std::max(largest, largest_deviation_ry(at) * kRydberg_ev);
    return largest;
  };
  for (const std::string& method : {std::string("\"hl-gpp\""), std::string("\"gn-gpp\""), kExact}) {
    const double fine = largest_ev(method, "0.002"), coarse = largest_ev(method, "0.004");
    std::printf("%s: %.2e and %.2e eV/Bohr\n", method.c_str(), fine, coarse);
    EXPECT_LT(fine, 2e-5) << method;
    EXPECT_GT(coarse, 3.5 * fine) << method;
    EXPECT_LT(coarse, 4.5 * fine) << method;
  }
}

// Random vectors of both components stand for the spinors of a displaced crystal. Its spin–orbit
// term has moved with the atom. The tolerance is 2e-6 eV/Bohr, and the deviation falls as h².
TEST(PseudobandPerturbation, OfSpinorsIsThatOfFiniteDisplacements) {
  const auto largest_ev = [](const std::string& step) {
    const Calculation found =
        run(crystal_of("gaas", "[1, 1, 1]", 48) + kOperator +
            "spin_orbit_ry_bohr2 = [0.0125, 0.0223]\n" + kScreening +
            "[sigma]\nband_min = 5\nband_max = 10\npole_half_width_ev = 0\nsx_cut = 1e6\n" +
            kRandom + "vectors = 3\nblocks = 3\nclosure = \"sigma\"\n" + kPerturbed +
            "atoms = [2]\ndirections = [\"z\"]\ncheck_step_bohr = " + step + "\n");
    EXPECT_GT(found.plan.sigma.bands, found.pseudobands->kept);
    EXPECT_EQ(found.displacements->at[0][0].sigma_without.size(), 3u);
    double largest = 0.0;
    for (const ElementsAtK& at : found.displacements->at[0])
      largest = std::max(largest, largest_deviation_ry(at) * kRydberg_ev);
    return largest;
  };
  const double fine = largest_ev("0.002"), coarse = largest_ev("0.004");
  std::printf("%.2e and %.2e eV/Bohr\n", fine, coarse);
  EXPECT_LT(fine, 2e-6);
  EXPECT_GT(coarse, 3.5 * fine);
  EXPECT_LT(coarse, 4.5 * fine);
}

const std::string kBlocks = crystal_of("gaas", "[1, 1, 1]") + kOperator + kScreening +
                            "[sigma]\nband_min = 2\nband_max = 5\n" + kRandom +
                            "vectors = 4\nblocks = 4\nclosure = \"sigma\"\n" + kPerturbed +
                            "directions = [\"x\", \"z\"]\n";

void expect_same(const Calculation& one, const Calculation& other) {
  ASSERT_EQ(one.displacements->at.size(), other.displacements->at.size());
  for (std::size_t d = 0; d < one.displacements->at.size(); ++d) {
    const ElementsAtK &a = one.displacements->at[d][0], &b = other.displacements->at[d][0];
    EXPECT_EQ(a.sigma_bra, b.sigma_bra);
    EXPECT_EQ(a.sigma_ket, b.sigma_ket);
    EXPECT_EQ(a.fixed_energies, b.fixed_energies);
    EXPECT_EQ(a.sigma_without, b.sigma_without);
  }
}

TEST(PseudobandPerturbation, SameBitsOnTwoDevicesAndAfterInterruptions) {
  const Deck deck = parse_deck(kBlocks, {}, "test", ".");
  const Calculation whole = run_on_cpus(deck);
  ASSERT_EQ(whole.displacements->at[0][0].sigma_without.size(), 4u);
  expect_same(whole, run_on_cpus(deck, 2));
  int inside = 0;
  for (int after = 2; after < 400; after += 12) {
    const quasi::test::TemporaryDirectory directory;
    Interrupter interrupter(after);
    try {
      run_on_cpus(deck, 1, directory.path(), &interrupter);
      break;
    } catch (const Cancelled&) {
      ++inside;
    }
    expect_same(whole, run_on_cpus(deck, 1 + inside % 2, directory.path()));
    EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  }
  EXPECT_GE(inside, 2);
}

// Error bars need ∂Σ without each block of random vectors. One job makes all of them from shared
// sums. Here a second job really leaves out block 2, and must give the same ∂Σ. Only the order
// of additions differs, so that 1e-10 Ry/Bohr suffices; the block itself changes ∂Σ by over
// 1e-4.
TEST(PseudobandPerturbation, BlocksAreThoseOfJobsWithoutThem) {
  Deck deck = parse_deck(kBlocks, {}, "test", ".");
  const Calculation whole = run_on_cpus(deck);
  deck.pseudobands.left_out = 2;
  const Calculation reduced = run_on_cpus(deck);
  double noise = 0.0;
  for (std::size_t d = 0; d < whole.displacements->at.size(); ++d) {
    const ElementsAtK &found = whole.displacements->at[d][0],
                      &expected = reduced.displacements->at[d][0];
    for (std::size_t i = 0; i < expected.sigma_bra.size(); ++i) {
      EXPECT_LT(std::abs(found.sigma_without[2][i] - expected.sigma(i)), 1e-10);
      noise = std::max(noise, std::abs(found.sigma(i) - expected.sigma(i)));
    }
  }
  EXPECT_GT(noise, 1e-4);
}

// 95 % intervals of the sums over a few random vectors hold the elements of the sum over all
// states. Symmetry correlates the real numbers that are compared, so that a seventh of them may lie
// outside. 1e-4 eV/Bohr is the error of the windows' energies.
TEST(PseudobandPerturbation, IntervalsHoldTheSumOverAllStates) {
  const Calculation all = run(crystal_of("gaas", "[1, 1, 1]", 59) + kScreening +
                              "[sigma]\nband_min = 2\nband_max = 5\n[perturbation]\n"
                              "directions = [\"x\", \"z\"]\n"),
                    found = run(kBlocks);
  const quasi::test::TemporaryDirectory directory;
  write_result(directory.path() / "result.h5", found, std::nullopt, {});
  const H5Reader file(directory.path() / "result.h5");
  const std::vector<double> estimate = file.doubles("/perturbations/sigma_estimate"),
                            half = file.doubles("/perturbations/sigma_half_width");
  std::size_t at = 0, outside = 0, counted = 0;
  double largest = 0.0;
  for (const auto& at_k : all.displacements->at)
    for (std::size_t i = 0; i < at_k[0].sigma_bra.size(); ++i)
      for (const double part : {at_k[0].sigma(i).real(), at_k[0].sigma(i).imag()}) {
        const double exact = part * kRydberg_ev;
        largest = std::max(largest, half[at]);
        // Symmetry forbids some elements, whose noise vanishes too.
        if (half[at] > 1e-6 || std::abs(exact) > 1e-6) {
          ++counted;
          if (std::abs(estimate[at] - exact) > half[at] + 1e-4) ++outside;
        }
        ++at;
      }
  std::printf("%zu of %zu outside, half-widths up to %.4f eV/Bohr\n", outside, counted, largest);
  EXPECT_EQ(at, half.size());
  EXPECT_GT(counted, 20u);
  EXPECT_LE(7 * outside, counted);
  EXPECT_GT(largest, 1e-3);
  const std::string table = table_of(summary_of(found, find_device("cpu"), 1));
  EXPECT_NE(table.find("95 % intervals by blocks of random vectors (eV/Bohr)"), std::string::npos);
}

// Every combination without a first order is refused before ε⁻¹, with the key and a remedy.
TEST(PseudobandPerturbation, UnsupportedDecksAreRefused) {
  const std::string random = kRandom + "vectors = 4\n", crystal = crystal_of("gaas", "[1, 1, 1]"),
                    small = crystal + kOperator + kScreening;
  EXPECT_EQ(test::refusal_of_deck(small + random + kPerturbed), "");
  const std::vector<std::vector<std::string>> cases{
      {crystal + kScreening + "[pseudobands]\nvectors = 4\n" + kPerturbed,
       "meanfield.solver = \"dense\"", "set solver = \"operator\""},
      {small + random + "[perturbation]\n", "state_response = \"sum\"",
       "set perturbation.state_response = \"sternheimer\""},
      {small + "[pseudobands]\nvectors = 4\nwindows = \"jackson\"\n" + kPerturbed,
       "pseudobands.windows", "use \"splines\""},
      {small + random + "target_error_ev = 0.1\n" + kPerturbed, "pseudobands.target_error_ev",
       "set pseudobands.vectors and pseudobands.blocks"},
      {small + random + "blocks = 4\n" + kPerturbed + "[sigma]\nsolution = \"graphical\"\n",
       "sigma.solution", "set solution = \"linearised\""},
      {small + "subspace_tolerance = 0.01\n" + random + "blocks = 4\n" + kPerturbed,
       "subspace of epsilon", "leave out epsilon.subspace_tolerance"},
      {small + random + kPerturbed + "q = [[0, 0, 0]]\n[sigma]\nmethod = \"contour\"\n",
       "pseudobands", "cohsex"},
      {crystal_of("gaas", "[2, 1, 1]") + kOperator + kScreening + random + kPerturbed +
           "q = [[0.5, 0, 0]]\n",
       "perturbation.q", "q = 0"}};
  for (const auto& broken : cases) expect_refusal(broken[0], broken[1], broken[2]);
}

class PseudobandPerturbationOn : public quasi::test::OnEveryDevice {};
QUASI_ON_EVERY_DEVICE(PseudobandPerturbationOn);

// Norms do not depend on the gauge of the states. 1e-6 eV/Bohr: protected states are known to a
// residual of 1e-8 Ry, and random vectors are equal on all devices.
TEST_P(PseudobandPerturbationOn, GivesTheNormsOfTheProcessor) {
  if (GetParam().backend == Backend::kCpu) GTEST_SKIP() << "the processor is the reference";
  const Deck deck = parse_deck(kBlocks, {}, "test", ".");
  SilentProgress silent;
  DeviceTeam team({GetParam()});
  const Calculation found = run_calculation(
                        deck, {.team = team, .memory_budget_bytes = std::int64_t{1} << 30}, silent),
                    expected = run_on_cpus(deck);
  const auto rows = [](const Calculation& of) {
    return summary_of(of, find_device("cpu"), 1).at("perturbations").at("rows");
  };
  const auto here = rows(found), there = rows(expected);
  ASSERT_EQ(here.size(), there.size());
  for (std::size_t i = 0; i < here.size(); ++i)
    for (const char* name : {"sigma_ev_per_bohr", "sigma_half_width_ev_per_bohr"})
      EXPECT_NEAR(here[i].at(name).get<double>(), there[i].at(name).get<double>(), 1e-6) << i;
}

}  // namespace
}  // namespace quasi::gw
