// Tests masses and isotope factors of the elements. Values of the deck win; the table supplies the
// others.

#include <gtest/gtest.h>

#include <cmath>

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
