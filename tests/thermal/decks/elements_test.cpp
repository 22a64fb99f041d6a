// Tests masses and isotope factors of the elements. Values of the deck win; the table supplies the
// others.

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/thermal/decks/isotopic_compositions.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/input/deck/crystal_input.hpp"

namespace quasi::thermal {
namespace {

/// A crystal of one atom of this element, with nothing given.
Control one_atom(const std::string& element) {
  Control control;
  control.lfactor_nm = 1.0;
  control.lattvec = {Vec3{0.5, 0, 0}, Vec3{0, 0.5, 0}, Vec3{0, 0, 0.5}};
  control.n_atoms = control.n_elements = 1;
  control.elements = {element};
  control.types = {1};
  control.positions = {Vec3{0, 0, 0}};
  control.born = {Mat3{}};
  control.masses_amu = {std::nan("")};
  control.g_factors = {std::nan("")};
  return control;
}

// The values follow from the isotope abundances published by IUPAC and were computed independently
// of the table.
TEST(Elements, TableHoldsEveryElementWithANaturalComposition) {
  const char* all[] = {"H",  "He", "Li", "Be", "B",  "C",  "N",  "O",  "F",  "Ne", "Na", "Mg",
                       "Al", "Si", "P",  "S",  "Cl", "Ar", "K",  "Ca", "Sc", "Ti", "V",  "Cr",
                       "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Ga", "Ge", "As", "Se", "Br", "Kr",
                       "Rb", "Sr", "Y",  "Zr", "Nb", "Mo", "Ru", "Rh", "Pd", "Ag", "Cd", "In",
                       "Sn", "Sb", "Te", "I",  "Xe", "Cs", "Ba", "La", "Ce", "Pr", "Nd", "Sm",
                       "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "Lu", "Hf", "Ta", "W",
                       "Re", "Os", "Ir", "Pt", "Au", "Hg", "Tl", "Pb", "Bi", "Th", "Pa", "U"};
  double before = 0.0;
  for (const char* element : all) {
    const Crystal crystal = make_crystal(one_atom(element));
    // Masses increase along the table, except for the pairs Ar–K, Co–Ni, Te–I and Th–Pa.
    EXPECT_GT(crystal.mass_amu[0], before - 1.1) << element;
    EXPECT_GE(crystal.g_factor[0], 0.0);
    EXPECT_LT(crystal.g_factor[0], 2e-3) << element;
    before = crystal.mass_amu[0];
  }
  EXPECT_NEAR(make_crystal(one_atom("Fe")).mass_amu[0], 55.845144, 1e-6);
  EXPECT_NEAR(make_crystal(one_atom("Fe")).g_factor[0], 8.244412e-5, 1e-9);
  EXPECT_NEAR(make_crystal(one_atom("Xe")).mass_amu[0], 131.292761, 1e-6);
  EXPECT_NEAR(make_crystal(one_atom("Pt")).g_factor[0], 3.428515e-5, 1e-9);
  EXPECT_EQ(make_crystal(one_atom("Nb")).g_factor[0], 0.0);
}

// Every mass and isotope factor agrees with sums over the isotopes of an older compilation. The
// values that ShengBTE tabulates have rounded or coarse masses: seven means differ by up to 1.4e-3.
TEST(Elements, TableAgreesWithSumsOverAnotherCompilation) {
  const std::map<std::string, double> coarse{{"Li", 3e-4},  {"K", 6e-4},  {"Ca", 3e-4},
                                             {"Ti", 3e-4},  {"Ge", 3e-4}, {"Se", 5e-4},
                                             {"Sn", 1.5e-3}};
  ASSERT_EQ(test::kIsotopicCompositions1997.size(), 84u);
  for (const auto& [element, isotopes] : test::kIsotopicCompositions1997) {
    double percent = 0.0, mean = 0.0, variance = 0.0;
    for (const auto& isotope : isotopes) percent += isotope.percent;
    EXPECT_NEAR(percent, 100.0, 1e-4) << element;
    for (const auto& isotope : isotopes) mean += isotope.mass_amu * isotope.percent / percent;
    for (const auto& isotope : isotopes)
      variance += isotope.percent / percent * std::pow(1.0 - isotope.mass_amu / mean, 2);
    const Crystal crystal = make_crystal(one_atom(element));
    const auto found = coarse.find(element);
    const double tolerance = found == coarse.end() ? 1e-4 : found->second;
    EXPECT_NEAR(crystal.mass_amu[0] / mean, 1.0, tolerance) << element;
    if (isotopes.size() == 1)
      EXPECT_EQ(crystal.g_factor[0], 0.0) << element;
    else
      EXPECT_NEAR(crystal.g_factor[0] / variance, 1.0, 0.03) << element;
  }
}

TEST(Elements, ValuesOfTheDeckWinEachForItself) {
  Control control = one_atom("Si");
  control.masses_amu = {30.0};
  EXPECT_EQ(make_crystal(control).mass_amu[0], 30.0);
  EXPECT_NEAR(make_crystal(control).g_factor[0], 2.00912e-4, 1e-9);
  control.g_factors = {0.5};
  EXPECT_EQ(make_crystal(control).g_factor[0], 0.5);
  // ShengBTE and FourPhonon ignore both if autoisotopes is on.
  control.compat = true;
  EXPECT_NEAR(make_crystal(control).mass_amu[0], 28.08551, 1e-9);
}

TEST(Elements, AnElementWithoutIsotopesNeedsAMassAlone) {
  Control control = one_atom("Tc");
  EXPECT_THROW(make_crystal(control), InvalidInput);
  control.masses_amu = {98.0};
  EXPECT_THROW(make_crystal(control), InvalidInput);
  control.isotopes = false;
  EXPECT_EQ(make_crystal(control).mass_amu[0], 98.0);
}

}  // namespace
}  // namespace quasi::thermal
