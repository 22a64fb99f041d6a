// Tests the derivative of κ by fourth-order force constants: sums over processes, whose squares
// make central differences exact, κ itself, and Euler's relation (docs/theory/thermal.md 16).

#include <gtest/gtest.h>

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <random>

#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/four_phonon/solved_deck_4ph.hpp"
#include "workers/thermal/kernels/four_phonon/derivative/element_gradient_4ph_cpu.hpp"
#include "workers/thermal/solver/transport/derivative/fourth_order_derivative.hpp"

namespace quasi::thermal {
namespace {

constexpr Mat3 kMeanOfTrace{Vec3{1.0 / 3, 0, 0}, Vec3{0, 1.0 / 3, 0}, Vec3{0, 0, 1.0 / 3}};

double mean_of_trace(const Mat3& kappa) { return (kappa[0][0] + kappa[1][1] + kappa[2][2]) / 3.0; }

/// Settings without scattering other than that of phonons, and whose iteration ends at rounding.
std::vector<std::string> settings(const std::string& mesh) {
  return {"ngrid=" + mesh,  "T=300,900",    "isotopes=F",
          "scalebroad=0.5", "solver=gmres", "eps=1e-14"};
}

std::unique_ptr<test::SolvedDeck4ph> solved(const std::string& name, const std::string& mesh) {
  return test::solve_deck_4ph(test::model(name), settings(mesh));
}

/// Returns a change of the constants that obeys the space group: each block times a random function
/// of the distances between its four atoms.
std::vector<double> random_direction(const Crystal& crystal, const SparseForceConstants& constants,
                                     unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  double wave[3];
  for (double& w : wave) w = 40.0 * normal(random);  // 1/nm
  std::vector<double> direction = constants.tensor;
  for (std::int64_t block = 0; block < constants.n_blocks(); ++block) {
    std::array<Vec3, 4> place;
    for (int leg = 0; leg < 4; ++leg) {
      Index3 cell{0, 0, 0};
      if (leg > 0) std::copy_n(&constants.cell[9 * block + 3 * (leg - 1)], 3, cell.begin());
      place[leg] = crystal.cartesian_nm(crystal.position[constants.atom[4 * block + leg]]) +
                   crystal.lattice_vector_nm(cell);
    }
    double sum = 0.0;
    for (int a = 0; a < 4; ++a)
      for (int b = 0; b < a; ++b)
        for (const double w : wave) sum += std::cos(w * length(place[a] - place[b]));
    for (int e = 0; e < 81; ++e) direction[static_cast<std::size_t>(81 * block + e)] *= sum;
  }
  return direction;
}

/// Σ_rows by_row Σ_p m W|V|² at one temperature.
double weighted_sum(const Problem4ph& problem, int temperature, const std::vector<double>& by_row) {
  const auto kernels = make_scattering_kernels_4ph_cpu();
  kernels->load(problem);
  const auto sums = kernels->sums(0, static_cast<std::int32_t>(problem.mesh.size()));
  const SumLayout4ph layout{static_cast<int>(problem.temperatures_k.size())};
  double total = 0.0;
  for (std::size_t row = 0; row < by_row.size(); ++row)
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const double* own = &sums[(row * 3 + channel) * static_cast<std::size_t>(layout.size())];
      total += by_row[row] * (own[layout.normal(temperature)] + own[layout.umklapp(temperature)]);
    }
  return total;
}

// Sums are quadratic in the constants, so that a central difference has no error but rounding.
// Silicon has a centre of inversion that exchanges its atoms, and half of the pairs; wurtzite has
// none, and complex elements.
TEST(FourthOrderDerivative, SumsOverProcessesHaveTheirExactDifferences) {
  for (const auto& [name, mesh] : {std::pair{"silicon-sw", "4,4,4"}, {"wurtzite-sw", "2,2,1"}}) {
    SCOPED_TRACE(name);
    const auto base = solved(name, mesh);
    const Problem4ph& problem = base->four_phonon->problem;
    const ContractionPlan4ph& plan = problem.plan;
    EXPECT_EQ(plan.real_elements, std::string(name) == "silicon-sw");
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    std::vector<double> by_row(static_cast<std::size_t>(base->n_rows()));
    for (double& x : by_row) x = normal(random);
    average_over_subspaces(base->run.modes, base->deck.symmetry.irreducible, 1, by_row.data());
    constexpr int kTemperature = 1;
    const auto gradient = ElementGradient4phCpu(problem).gradient(kTemperature, by_row);
    ASSERT_EQ(gradient.size(), plan.tensor.size());
    for (int draw = 0; draw < 2; ++draw) {
      Problem4ph above = problem, below = problem;
      double wanted = 0.0;
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        const double along = normal(random) * plan.tensor[i];
        above.plan.tensor[i] += along;
        below.plan.tensor[i] -= along;
        wanted += gradient[i] * along;
      }
      const double difference = 0.5 * (weighted_sum(above, kTemperature, by_row) -
                                       weighted_sum(below, kTemperature, by_row));
      EXPECT_NEAR(difference / wanted, 1.0, 1e-10);
    }
  }
}

using OfKappa = ::testing::TestWithParam<KappaSolution>;

std::vector<double> derivative_of(const test::SolvedDeck4ph& base, int temperature,
                                  KappaSolution solution) {
  const Transport transport = base.transport();
  return fourth_order_derivative(
      {transport, base.problem, base.at(static_cast<std::size_t>(temperature))},
      {base.four_phonon->problem, temperature, *base.deck.fourth_order}, solution, kMeanOfTrace);
}

double kappa_of(const TemperatureResult& result, KappaSolution solution) {
  return mean_of_trace(solution == KappaSolution::kIterated ? result.kappa_w_per_mk
                                                            : result.kappa_rta_w_per_mk);
}

// κ bends along the directions: with steps of 1e-4 the error is 5e-6 of the derivative, and it
// falls with their square. That of rounding is below 1e-8.
TEST_P(OfKappa, EqualsCentralDifferences) {
  constexpr double kStep = 1e-5;
  const auto base = solved("silicon-sw", "4,4,4");
  const SparseForceConstants& constants = *base->deck.fourth_order;
  const auto derivative = derivative_of(*base, 1, GetParam());
  ASSERT_EQ(derivative.size(), constants.tensor.size());
  for (unsigned seed = 0; seed < 2; ++seed) {
    const auto direction = random_direction(base->deck.crystal, constants, seed);
    double wanted = 0.0, kappa[2];
    for (std::size_t i = 0; i < direction.size(); ++i) wanted += derivative[i] * direction[i];
    for (const int side : {0, 1}) {
      Deck deck = base->deck;
      for (std::size_t i = 0; i < direction.size(); ++i)
        deck.fourth_order->tensor[i] += (side == 0 ? kStep : -kStep) * direction[i];
      kappa[side] = kappa_of(test::solve_model_4ph(std::move(deck))->at(1), GetParam());
    }
    EXPECT_GT(std::fabs(wanted), 1e-3 * kappa[0]);
    EXPECT_NEAR((kappa[0] - kappa[1]) / (2.0 * kStep) / wanted, 1.0, 1e-6);
  }
}

// Without other scattering κ falls with the square of all constants.
TEST_P(OfKappa, ObeysTheRelationOfEuler) {
  const auto base = solved("silicon-sw", "4,4,4");
  const Transport transport = base->transport();
  const auto third =
      kappa_derivative({transport, base->problem, base->at(0)}, GetParam(), kMeanOfTrace);
  const auto fourth = derivative_of(*base, 0, GetParam());
  double sum = 0.0, of_fourth = 0.0;
  for (std::size_t i = 0; i < third.size(); ++i) sum += third[i] * base->problem.fc3.tensor[i];
  for (std::size_t i = 0; i < fourth.size(); ++i)
    of_fourth += fourth[i] * base->deck.fourth_order->tensor[i];
  const double kappa = kappa_of(base->at(0), GetParam());
  EXPECT_LT(of_fourth, -0.01 * kappa);
  EXPECT_NEAR((sum + of_fourth) / (-2.0 * kappa), 1.0, 1e-9);
}

TEST(FourthOrderDerivative, HasTheSameBitsWithAnyNumberOfThreads) {
  const auto base = solved("silicon-sw", "3,3,3");
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const auto one = derivative_of(*base, 0, KappaSolution::kIterated);
  omp_set_num_threads(3);
  const auto three = derivative_of(*base, 0, KappaSolution::kIterated);
  omp_set_num_threads(threads);
  EXPECT_EQ(one, three);
}

// The derivative takes at most three times the sums over processes. A busy machine may disturb one
// of three tries.
TEST(FourthOrderDerivative, TakesAtMostThreeTimesTheSums) {
  const auto base = solved("silicon-sw", "4,4,4");
  const Problem4ph& problem = base->four_phonon->problem;
  const std::vector<double> by_row(static_cast<std::size_t>(base->n_rows()), 1.0);
  const auto seconds_of = [](const auto& work) {  // of the processor
    const std::clock_t start = std::clock();
    work();
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  double best = INFINITY;
  for (int attempt = 0; attempt < 3 && best > 3.0; ++attempt) {
    const double sums = seconds_of([&] { weighted_sum(problem, 0, by_row); });
    const double own = seconds_of([&] { ElementGradient4phCpu(problem).gradient(0, by_row); });
    std::printf("    derivative over sums %.2f (%.2f s)\n", own / sums, own);
    best = std::min(best, own / sums);
  }
  EXPECT_LT(best, 3.0);
}

std::string name_of(const ::testing::TestParamInfo<KappaSolution>& solution) {
  return solution.param == KappaSolution::kIterated ? "iterated" : "relaxationtime";
}

INSTANTIATE_TEST_SUITE_P(FourthOrderDerivative, OfKappa,
                         ::testing::Values(KappaSolution::kRelaxationTime,
                                           KappaSolution::kIterated),
                         name_of);

}  // namespace
}  // namespace quasi::thermal
