// Tests decks whose key `forces` names a potential: they hold a structure and no force constants.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "examples/thermal/generate/stillinger_weber.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/solver/displacements/computed_constants.hpp"

namespace quasi::thermal {
namespace {

/// A TOML deck of diamond-structure silicon alone in its directory.
class ComputedConstantsDeck : public ::testing::Test {
 protected:
  void SetUp() override {
    const model::Structure silicon = model::diamond({});
    std::ofstream out(file());
    out.precision(17);
    out << "kind = \"thermal\"\ndirectory = \".\"\nnelements = 1\nnatoms = 2\nelements = \"Si\"\n"
        << "types = [1, 1]\nlfactor = 0.1\nlattvec = [";
    for (const Vec3& a : silicon.lattice_angstrom)
      out << '[' << a[0] << ", " << a[1] << ", " << a[2] << "], ";
    out << "]\npositions = [";
    for (const Vec3& p : silicon.position)
      out << '[' << p[0] << ", " << p[1] << ", " << p[2] << "], ";
    out << "]\nscell = [3, 3, 3]\nngrid = [4, 4, 4]\nT = 300\nisotopes = false\n"
        << "autoisotopes = false\nmasses = 28.0855\ngfactors = 0\n"
        << "forces = \"stillinger-weber\"\ncutoff_3rd_angstrom = 4.0\n";
  }

  std::filesystem::path file() const { return directory_.path() / "deck.toml"; }
  Deck deck(const std::vector<std::string>& settings) const {
    return read_deck(file(), test::settings_of(settings), computed_constants);
  }
  void expect_refusal(const std::vector<std::string>& settings, const std::string& part) const {
    try {
      deck(settings);
      ADD_FAILURE() << "no refusal; expected: " << part;
    } catch (const InvalidInput& refusal) {
      EXPECT_NE(std::string(refusal.what()).find(part), std::string::npos) << refusal.what();
    }
  }

  quasi::test::TemporaryDirectory directory_;
};

// From atoms to κ with no file of constants. The analytic derivatives are those of the model deck.
// The error of a difference is some h²/(0.5 Å)², 1e-6 of the constants with the default step.
TEST_F(ComputedConstantsDeck, KappaIsThatOfTheAnalyticDerivatives) {
  const auto own = test::solve_model(deck({"eps=1e-10"}));
  const auto analytic = test::solve_deck(test::model("silicon-sw"),
                                         {"ngrid=4,4,4", "T=300", "isotopes=F", "autoisotopes=F",
                                          "masses=28.0855", "gfactors=0", "eps=1e-10"});
  const TemperatureResult& found = own->run.by_temperature.front();
  const TemperatureResult& wanted = analytic->run.by_temperature.front();
  EXPECT_GT(wanted.kappa_rta_w_per_mk[0][0], 1.0);
  for (int i = 0; i < 3; ++i) {
    const double rta = found.kappa_rta_w_per_mk[i][i] / wanted.kappa_rta_w_per_mk[i][i] - 1.0;
    const double bte = found.kappa_w_per_mk[i][i] / wanted.kappa_w_per_mk[i][i] - 1.0;
    EXPECT_NEAR(rta, 0.0, 1e-5);
    EXPECT_NEAR(bte, 0.0, 1e-5);
    std::printf("    κ differs by %.1e (RTA), %.1e (BTE)\n", rta, bte);
  }
  EXPECT_LT(own->deck.second_order.raw_acoustic_sum, 1e-8);
}

// The error of κ falls with the square of the displacement, which a wrong step would not do.
TEST_F(ComputedConstantsDeck, ErrorFallsWithTheSquareOfTheDisplacement) {
  const auto kappa = [&](const std::string& step) {
    const auto s = test::solve_model(deck({"convergence=F", "displacement_angstrom=" + step}));
    return s->run.by_temperature[0].kappa_rta_w_per_mk[0][0];
  };
  const double exact = kappa("5e-4");
  const double error = kappa("0.04") / exact - 1.0;
  EXPECT_GT(std::fabs(error), 1e-4);
  EXPECT_NEAR((kappa("0.02") / exact - 1.0) / error, 0.25, 0.02);
}

// Every block of the fourth order is that of the model deck. Its files are rounded at 1e-9 eV/Å⁴.
TEST_F(ComputedConstantsDeck, FourthOrderIsThatOfTheAnalyticDerivatives) {
  const Deck own = deck({"four_phonon=T", "cutoff_4th_angstrom=4"});
  const Deck analytic =
      read_deck(test::model("silicon-sw"), test::settings_of({"four_phonon=T", "ngrid=4,4,4"}));
  ASSERT_TRUE(own.fourth_order);
  std::map<std::vector<int>, const double*> wanted;
  const auto key_of = [](const SparseForceConstants& c, std::int64_t block) {
    std::vector<int> key(&c.atom[4 * block], &c.atom[4 * block] + 4);
    key.insert(key.end(), &c.cell[9 * block], &c.cell[9 * block] + 9);
    return key;
  };
  const SparseForceConstants& exact = *analytic.fourth_order;
  double largest = 0.0, apart = 0.0;
  for (std::int64_t block = 0; block < exact.n_blocks(); ++block)
    wanted[key_of(exact, block)] = &exact.tensor[81 * block];
  for (const double x : exact.tensor) largest = std::max(largest, std::fabs(x));
  std::size_t n_found = 0;
  for (std::int64_t block = 0; block < own.fourth_order->n_blocks(); ++block) {
    const auto found = wanted.find(key_of(*own.fourth_order, block));
    n_found += found == wanted.end() ? 0 : 1;
    for (int e = 0; e < 81; ++e)
      apart = std::max(apart, std::fabs(own.fourth_order->tensor[81 * block + e] -
                                        (found == wanted.end() ? 0.0 : found->second[e])));
  }
  EXPECT_EQ(n_found, wanted.size());
  EXPECT_LT(apart / largest, 1e-5);
  std::printf("    fourth order differs by %.1e of its largest element\n", apart / largest);
}

// Wurtzite has blocks that are not symmetric, so their two indices and atoms must not be exchanged.
TEST(ComputedConstants, SecondOrderOfWurtziteIsThatOfItsFile) {
  const auto path = test::model("wurtzite-sw");
  const Deck file = read_deck(path, test::settings_of({"onlyharmonic=T"}));
  const Deck own = read_deck(
      path, test::settings_of({"onlyharmonic=T", "forces=stillinger-weber", "elements=Si,Si"}),
      computed_constants);
  ASSERT_EQ(own.second_order.value.size(), file.second_order.value.size());
  double largest = 0.0, apart = 0.0, asymmetry = 0.0;
  for (std::size_t e = 0; e < file.second_order.value.size(); ++e) {
    const std::size_t transposed = e / 9 * 9 + e % 3 * 3 + e / 3 % 3;
    const double wanted = file.second_order.value[e];
    largest = std::max(largest, std::fabs(wanted));
    apart = std::max(apart, std::fabs(own.second_order.value[e] - wanted));
    asymmetry = std::max(asymmetry, std::fabs(file.second_order.value[transposed] - wanted));
  }
  EXPECT_LT(apart / largest, 1e-5);
  EXPECT_GT(asymmetry / largest, 1e-3);
  std::printf("    second order differs by %.1e, its blocks are asymmetric by %.1e\n",
              apart / largest, asymmetry / largest);
}

TEST_F(ComputedConstantsDeck, WrongKeysNameTheRemedy) {
  expect_refusal({"cutoff_3rd_angstrom=9"}, "half of the shortest period");
  expect_refusal({"elements=Ge"}, "describes Si");
  expect_refusal({"espresso=T"}, "set one of them");
  expect_refusal({"four_phonon=T"}, "needs 'cutoff_4th_angstrom'");
  expect_refusal({"displacement_angstrom=0.6"}, "above the limit of 0.5");
  expect_refusal({"forces=files"}, "set forces = stillinger-weber");
  expect_refusal({"forces=tersoff"}, "stillinger-weber");
  try {
    read_deck(file(), {});
    ADD_FAILURE() << "a program without potentials must refuse";
  } catch (const InvalidInput& refusal) {
    EXPECT_NE(std::string(refusal.what()).find("set forces = files"), std::string::npos);
  }
}

}  // namespace
}  // namespace quasi::thermal
