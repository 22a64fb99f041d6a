// Tests that κ with four phonons does not depend on the primitive cell, the orientation and the
// order of axes and atoms that describe a crystal (docs/theory/thermal.md 4 and 12.3).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/four_phonon/solved_deck_4ph.hpp"
#include "tests/thermal/support/other_description.hpp"

namespace quasi::thermal {
namespace {

using test::OtherDescription;

/// Returns the largest difference of two tensors over the largest element of the first.
double difference(const Mat3& a, const Mat3& b) {
  double apart = 0.0, largest = 0.0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      apart = std::max(apart, std::fabs(a[i][j] - b[i][j]));
      largest = std::max(largest, std::fabs(a[i][j]));
    }
  return apart / largest;
}

struct Case {
  const char* name;
  OtherDescription other;
};

/// Expects κ and the counts of four-phonon processes of a crystal in every description.
void expect_same_physics(const char* crystal, const std::vector<std::string>& settings,
                         const std::vector<Case>& cases, double tolerance) {
  std::vector<std::string> all{"four_phonon=T", "four_phonon_iteration=T", "coherence=F",
                               "scalebroad=0.2", "eps=1e-12"};
  all.insert(all.end(), settings.begin(), settings.end());
  const Deck deck = read_deck(test::model(crystal), test::settings_of(all));
  const auto reference = test::solve_model_4ph(deck);
  const TemperatureResult& a = reference->at();
  EXPECT_GT(a.kappa_w_per_mk[0][0], 0.1);
  for (const Case& c : cases) {
    Deck changed = deck;
    test::describe_otherwise(c.other, changed);
    const auto solved = test::solve_model_4ph(changed);
    const TemperatureResult& b = solved->at();
    const Mat3& r = c.other.rotation;
    const auto back = [&](const Mat3& t) { return transpose(r) * t * r; };
    const double rta = difference(a.kappa_rta_w_per_mk, back(b.kappa_rta_w_per_mk));
    const double bte = difference(a.kappa_w_per_mk, back(b.kappa_w_per_mk));
    EXPECT_LT(rta, tolerance) << c.name;
    EXPECT_LT(bte, tolerance) << c.name;
    std::printf("    %s, %s: κ differs by %.1e (RTA), %.1e (BTE)\n", crystal, c.name, rta, bte);
  }
}

constexpr IntMat3 kPlusFirst{Index3{1, 0, 0}, Index3{0, 1, 0}, Index3{1, 0, 1}};
constexpr IntMat3 kTwoChanges{Index3{1, 1, 0}, Index3{0, 1, 0}, Index3{0, -1, 1}};
constexpr IntMat3 kInPlane{Index3{1, 0, 0}, Index3{2, 1, 0}, Index3{0, 0, 1}};
constexpr IntMat3 kCyclic{Index3{0, 1, 0}, Index3{0, 0, 1}, Index3{1, 0, 0}};

TEST(Description4ph, SiliconConductsAlikeInEveryCell) {
  expect_same_physics("silicon-sw", {"ngrid=4,4,4"},
                      {{"a3 + a1", {.cell = kPlusFirst}},
                       {"a1 + a2, a3 - a2", {.cell = kTwoChanges}},
                       {"rotated", {.rotation = test::generic_rotation()}},
                       {"atoms reversed", {.reverse_atoms = true}},
                       {"all", {kPlusFirst, test::generic_rotation(), true, {0, 0, 0}, {0, 0, 0}}}},
                      1e-9);
}

// Four atoms, a hexagonal lattice and unequal divisions. The files are rounded at 1e-9 eV/Åⁿ, which
// breaks the hexagonal symmetry: κ depends by 1.5e-9 on the irreducible points. The second call
// computes every point of the mesh.
TEST(Description4ph, WurtziteConductsAlikeInEveryCell) {
  constexpr Index3 kTurned{3, 2, 3};
  const Index3 cells = read_deck(test::model("wurtzite-sw"), {}).second_order.supercell;
  const std::vector<Case> cases{
      {"a2 + 2 a1", {.cell = kInPlane}},
      {"cyclic axes",
       {.cell = kCyclic, .mesh = kTurned, .supercell = {cells[1], cells[2], cells[0]}}},
      {"rotated", {.rotation = test::generic_rotation()}},
      {"atoms reversed", {.reverse_atoms = true}}};
  expect_same_physics("wurtzite-sw", {"ngrid=3,3,2"}, cases, 5e-9);
  std::vector<Case> of_every_point{cases[0], cases[1]};
  of_every_point[1].other.mesh = {3, 1, 3};
  expect_same_physics("wurtzite-sw", {"ngrid=3,3,1", "symmetry=F"}, of_every_point, 1e-9);
}

}  // namespace
}  // namespace quasi::thermal
