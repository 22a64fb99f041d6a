// Tests the derivative of κ by third-order force constants: central differences in random
// directions, Euler's relation, and the number of threads.

#include <gtest/gtest.h>

#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/solver/transport/derivative/constants_error.hpp"
#include "workers/thermal/solver/transport/derivative/kappa_derivative.hpp"

namespace quasi::thermal {
namespace {

constexpr Mat3 kMeanOfTrace{Vec3{1.0 / 3, 0, 0}, Vec3{0, 1.0 / 3, 0}, Vec3{0, 0, 1.0 / 3}};
constexpr Mat3 kMixed{Vec3{0.7, 0.2, 0}, Vec3{0, 0.1, -0.3}, Vec3{0.4, 0, 0.2}};

double weighted(const Mat3& part, const Mat3& kappa) {
  double sum = 0.0;
  for (int a = 0; a < 3; ++a) sum += dot(part[a], kappa[a]);
  return sum;
}

/// The residual of the iteration is far below the differences of κ. GMRES takes operators that a
/// direction makes slightly asymmetric.
std::unique_ptr<test::SolvedDeck> solved(std::vector<std::string> more,
                                         const std::string& mesh = "3,3,3") {
  std::vector<std::string> settings{"ngrid=" + mesh,  "T=300",          "isotopes=F",
                                    "autoisotopes=F", "masses=28.0855", "gfactors=0",
                                    "solver=gmres",   "eps=1e-14"};
  settings.insert(settings.end(), more.begin(), more.end());
  return test::solve_deck(test::model("silicon-sw"), settings);
}

DerivativeTerms terms_of(const test::SolvedDeck& base, const Transport& transport) {
  return {transport, base.problem, base.run.by_temperature.front()};
}

/// Returns κ with other third-order constants and the modes of `base`.
TemperatureResult with_constants(test::SolvedDeck& base, const Transport& transport,
                                 const std::vector<double>& tensor) {
  SilentProgress silent;
  ThreePhononProblem problem = base.problem;
  problem.fc3.tensor = tensor;
  ConductivityRun run;
  run.modes = base.run.modes;
  add_scattering(transport, base.deck.control.rate_options(), *base.kernels, problem, run,
                 {silent});
  add_conductivity({transport, problem.fc3, *base.kernels, FurtherScattering{}}, run, silent);
  return run.by_temperature.front();
}

Mat3 kappa_of(const TemperatureResult& result, KappaSolution solution) {
  return solution == KappaSolution::kIterated ? result.kappa_w_per_mk : result.kappa_rta_w_per_mk;
}

// Random constants break the sum rule, so κ bends strongly along them: the error of a difference
// is 1e-5 of the derivative with steps of 1e-4, and falls with their square. That of rounding is
// 1e-9 here. The limit is relative to the mean of all directions, because one of them may leave κ
// as it is.
void expect_central_differences(test::SolvedDeck& base, KappaSolution solution, const Mat3& part,
                                int n_directions) {
  constexpr double kStep = 1e-5;
  const Transport transport = base.transport();
  const std::vector<double> derivative =
      kappa_derivative(terms_of(base, transport), solution, part);
  const std::vector<double>& constants = base.problem.fc3.tensor;
  ASSERT_EQ(derivative.size(), constants.size());
  std::mt19937_64 random(17);
  std::normal_distribution<double> normal;
  double squares = 0.0, largest_error = 0.0;
  for (int direction = 0; direction < n_directions; ++direction) {
    std::vector<double> above = constants, below = constants;
    double wanted = 0.0;
    for (std::size_t i = 0; i < constants.size(); ++i) {
      const double along = normal(random) * constants[i];
      above[i] += kStep * along;
      below[i] -= kStep * along;
      wanted += derivative[i] * along;
    }
    const Mat3 higher = kappa_of(with_constants(base, transport, above), solution);
    const Mat3 lower = kappa_of(with_constants(base, transport, below), solution);
    const double difference = (weighted(part, higher) - weighted(part, lower)) / (2.0 * kStep);
    squares += difference * difference;
    largest_error = std::max(largest_error, std::fabs(difference - wanted));
  }
  const double mean = std::sqrt(squares / n_directions);
  EXPECT_GT(mean, 1e-3 * weighted(part, kappa_of(base.run.by_temperature.front(), solution)));
  EXPECT_LT(largest_error / mean, 1e-6);
}

using DerivativeOfKappa = ::testing::TestWithParam<KappaSolution>;

TEST_P(DerivativeOfKappa, EqualsCentralDifferences) {
  const auto base = solved({"boundary_length_nm=200"});
  expect_central_differences(*base, GetParam(), kMeanOfTrace, 200);
  expect_central_differences(*base, GetParam(), kMixed, 10);
}

// A fixed width has a symmetric operator, and weights of tetrahedra do not depend on third-order
// constants.
TEST(DerivativeByTheRulesOfPhono3py, EqualsCentralDifferences) {
  const std::vector<std::string> common{"boundary_length_nm=200", "allow_few_processes=T"};
  std::vector<std::string> settings = common;
  settings.insert(settings.end(), {"broadening=fixed", "sigma_thz=0.5"});
  expect_central_differences(*solved(settings), KappaSolution::kIterated, kMeanOfTrace, 20);
  settings = common;
  settings.insert(settings.end(), {"broadening=tetrahedra", "convergence=F"});
  expect_central_differences(*solved(settings), KappaSolution::kRelaxationTime, kMeanOfTrace, 20);
}

// Without other scattering κ falls with the square of the constants.
TEST_P(DerivativeOfKappa, ObeysTheRelationOfEuler) {
  const auto base = solved({}, "4,4,4");
  const Transport transport = base->transport();
  const std::vector<double> derivative =
      kappa_derivative(terms_of(*base, transport), GetParam(), kMeanOfTrace);
  double sum = 0.0;
  for (std::size_t i = 0; i < derivative.size(); ++i)
    sum += derivative[i] * base->problem.fc3.tensor[i];
  const double kappa =
      weighted(kMeanOfTrace, kappa_of(base->run.by_temperature.front(), GetParam()));
  EXPECT_GT(kappa, 1.0);
  EXPECT_NEAR(sum / (-2.0 * kappa), 1.0, 1e-9);
}

TEST_P(DerivativeOfKappa, HasTheSameBitsWithAnyNumberOfThreads) {
  const auto base = solved({});
  const Transport transport = base->transport();
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const auto one = kappa_derivative(terms_of(*base, transport), GetParam(), kMixed);
  omp_set_num_threads(3);
  const auto three = kappa_derivative(terms_of(*base, transport), GetParam(), kMixed);
  omp_set_num_threads(threads);
  EXPECT_EQ(one, three);
}

/// Two parameters: the size of the constants of a bond with its neighbours, and that of all others.
/// A triple belongs to the first where all its atoms lie within 0.25 nm of the first atom. Both
/// obey the space group.
ConstantsCovariance covariance_of_ranges(const test::SolvedDeck& base) {
  const SparseForceConstants& constants = base.problem.fc3;
  const Crystal& crystal = base.deck.crystal;
  ConstantsCovariance result{
      .n_parameters = 2, .basis = {}, .covariance = {4e-4, -1e-4, -1e-4, 1e-4}};
  for (std::int64_t b = 0; b < constants.n_blocks(); ++b) {
    const int* atom = &constants.atom[static_cast<std::size_t>(3 * b)];
    const int* cell = &constants.cell[static_cast<std::size_t>(6 * b)];
    bool near = true;
    for (int slot = 1; slot < 3; ++slot) {
      const Index3 at{cell[3 * slot - 3], cell[3 * slot - 2], cell[3 * slot - 1]};
      const Vec3 apart = crystal.cartesian_nm(crystal.position[atom[slot]]) +
                         crystal.lattice_vector_nm(at) -
                         crystal.cartesian_nm(crystal.position[atom[0]]);
      near = near && length(apart) < 0.25;
    }
    for (std::int64_t e = 27 * b; e < 27 * b + 27; ++e)
      result.basis.push_back({near ? 0 : 1, e, constants.tensor[static_cast<std::size_t>(e)]});
  }
  return result;
}

// The error bar of κ agrees with central differences along the parameters. One parameter alone
// breaks the sum rule, so that κ is curved along it. With steps of 1e-5 the curvature leaves an
// error of 1e-7 of the derivative.
TEST_P(DerivativeOfKappa, GivesTheErrorBarOfTheConstants) {
  const auto base = solved({"boundary_length_nm=200"});
  const Transport transport = base->transport();
  const ConstantsCovariance covariance = covariance_of_ranges(*base);
  const ConstantsError found = kappa_error_of_constants(
      covariance, kappa_derivative(terms_of(*base, transport), GetParam(), kMeanOfTrace));
  constexpr double kStep = 1e-5;
  std::array<double, 2> gradient{};
  for (std::int64_t parameter = 0; parameter < 2; ++parameter) {
    std::array<double, 2> kappa{};
    for (int side = 0; side < 2; ++side) {
      std::vector<double> tensor = base->problem.fc3.tensor;
      for (const auto& entry : covariance.basis)
        if (entry.parameter == parameter)
          tensor[static_cast<std::size_t>(entry.element)] +=
              (side == 0 ? kStep : -kStep) * entry.value;
      kappa[side] =
          weighted(kMeanOfTrace, kappa_of(with_constants(*base, transport, tensor), GetParam()));
    }
    gradient[parameter] = (kappa[0] - kappa[1]) / (2.0 * kStep);
    EXPECT_GT(std::fabs(gradient[parameter]), 1.0);
    EXPECT_NEAR(found.gradient[parameter] / gradient[parameter], 1.0, 1e-6);
  }
  const double variance = 4e-4 * gradient[0] * gradient[0] + 1e-4 * gradient[1] * gradient[1] -
                          2e-4 * gradient[0] * gradient[1];
  EXPECT_NEAR(found.kappa_w_per_mk / std::sqrt(variance), 1.0, 1e-6);
}

std::string name_of(const ::testing::TestParamInfo<KappaSolution>& solution) {
  return solution.param == KappaSolution::kIterated ? "iterated" : "relaxationtime";
}

INSTANTIATE_TEST_SUITE_P(Solutions, DerivativeOfKappa,
                         ::testing::Values(KappaSolution::kRelaxationTime,
                                           KappaSolution::kIterated),
                         name_of);

TEST(DerivativeOfIteratedKappa, NeedsAConvergedSymmetricOperator) {
  for (const std::string setting : {"convergence=F", "broadening=adaptive-max"}) {
    const auto base = solved({setting});
    const Transport transport = base->transport();
    EXPECT_THROW(
        kappa_derivative(terms_of(*base, transport), KappaSolution::kIterated, kMeanOfTrace),
        InvalidInput)
        << setting;
  }
}

}  // namespace
}  // namespace quasi::thermal
