// Tests the projection of constants on the sum rule and on the exchange of atoms.

#include "workers/thermal/input/force_constants/projection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/input/force_constants/force_constants.hpp"
#include "workers/thermal/solver/harmonic/force_constant_checks.hpp"

namespace quasi::thermal {
namespace {

std::filesystem::path example() {
  return quasi::test::source_dir() / "examples/thermal/silicon-sw";
}

double largest_element(const SparseForceConstants& fc) {
  double largest = 0.0;
  for (const double x : fc.tensor) largest = std::max(largest, std::fabs(x));
  return largest;
}

SparseForceConstants disturbed(SparseForceConstants fc, double share) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-share, share);
  const double largest = largest_element(fc);
  for (double& x : fc.tensor) x += largest * uniform(random);
  return fc;
}

class ProjectionOfOrder : public testing::TestWithParam<int> {};

// Constants that obey both rules stay as they are. Disturbed ones obey them afterwards, a second
// projection changes nothing, and no other constants that obey the rules are nearer: the change is
// orthogonal to the step back to the undisturbed ones.
TEST_P(ProjectionOfOrder, FindsTheNearestConstantsThatObeyTheRules) {
  const int order = GetParam();
  const Deck deck = read_deck(example(), test::settings_of({"onlyharmonic=T"}));
  const SparseForceConstants good = read_sparse_force_constants(
      example() / (order == 3 ? "FORCE_CONSTANTS_3RD" : "FORCE_CONSTANTS_4TH"), order,
      deck.crystal);
  SparseForceConstants kept = good;
  const ProjectionChange none = project_rules(kept);
  EXPECT_LT(none.relative, 1e-9);  // the files are rounded at 1e-9
  ASSERT_EQ(kept.atom, good.atom);
  const SparseForceConstants bad = disturbed(good, 0.01);
  EXPECT_GT(sum_rule_violation(bad), 1e-3);
  EXPECT_GT(permutation_violation(bad), 1e-3);
  SparseForceConstants fixed = bad;
  const ProjectionChange change = project_rules(fixed);
  EXPECT_GT(change.relative, 1e-3);
  EXPECT_LT(sum_rule_violation(fixed), 1e-9);
  EXPECT_LT(permutation_violation(fixed), 1e-9);
  SparseForceConstants again = fixed;
  EXPECT_LT(project_rules(again).relative, 1e-9);
  ASSERT_EQ(fixed.tensor.size(), bad.tensor.size());
  double product = 0.0, moved = 0.0, back = 0.0;
  for (std::size_t i = 0; i < bad.tensor.size(); ++i) {
    const double step = bad.tensor[i] - fixed.tensor[i], rest = good.tensor[i] - fixed.tensor[i];
    product += step * rest;
    moved += step * step;
    back += rest * rest;
  }
  EXPECT_LT(std::fabs(product), 1e-7 * std::sqrt(moved * back));
}
INSTANTIATE_TEST_SUITE_P(Orders, ProjectionOfOrder, testing::Values(3, 4));

// sum_rule = project repairs a deck and says how far its constants move.
TEST(Projection, KeyOfTheDeckRepairsAndSays) {
  const quasi::test::TemporaryDirectory place;
  std::filesystem::copy(example(), place.path(), std::filesystem::copy_options::recursive);
  const auto file = place.path() / "FORCE_CONSTANTS_3RD";
  std::ifstream in(file);
  std::ostringstream text;
  std::string line;
  int changed = 0;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    int a = 0, b = 0, c = 0;
    double value = 0.0;
    if (words >> a >> b >> c >> value && a <= 3 && std::fabs(value) > 5.0 && changed < 3) {
      ++changed;
      line = std::to_string(a) + " " + std::to_string(b) + " " + std::to_string(c) + " " +
             std::to_string(1.02 * value);
    }
    text << line << "\n";
  }
  in.close();
  std::ofstream(file) << text.str();
  ASSERT_EQ(changed, 3);
  EXPECT_THROW(read_deck(place.path(), {}), InvalidInput);
  const Deck deck = read_deck(place.path(), test::settings_of({"sum_rule=project"}));
  EXPECT_LT(sum_rule_violation(deck.third_order), 1e-9);
  ASSERT_FALSE(deck.warnings.empty());
  EXPECT_NE(deck.warnings[0].find("sum_rule = project changes the constants by"),
            std::string::npos);
}

// A tuple whose twins are missing gets them.
TEST(Projection, ListsTheTwinsOfATuple) {
  SparseForceConstants one{.order = 3, .atom = {0, 1, 1}, .cell = {0, 0, 0, 1, 0, 0}};
  one.tensor.assign(27, 0.0);
  one.tensor[1] = 1.0;
  project_rules(one);
  EXPECT_EQ(one.n_blocks(), 6);
  EXPECT_LT(permutation_violation(one), 1e-12);
}

}  // namespace
}  // namespace quasi::thermal
