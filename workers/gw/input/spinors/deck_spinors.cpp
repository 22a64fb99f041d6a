#include "workers/gw/input/spinors/deck_spinors.hpp"

#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

constexpr const char* kKey = "spin_orbit_ry_bohr2";

/// Largest strength, Ry Bohr². It splits the top of the valence bands by several eV.
constexpr double kLargest_ry_bohr2 = 1.0;

}  // namespace

void read_spin_orbit(TableReader& reader, EmpiricalCrystal& crystal) {
  const auto strength =
      reader.numbers("spin_orbit_ry_bohr2", -kLargest_ry_bohr2, kLargest_ry_bohr2);
  if (!strength) return;
  if (strength->empty() || strength->size() > 2)
    reader.fail(kKey, "holds " + std::to_string(strength->size()) +
                          " numbers; give one for both kinds of atoms, or one for each");
  if (well_model(crystal.name) != nullptr)
    reader.fail(kKey,
                "belongs to atoms, which crystal = \"monolayer\" has not; choose another crystal");
  crystal.spin_orbit_ry_bohr2 = {strength->front(), strength->back()};
}

void check_spin_orbit(const Deck& deck, const std::string& where) {
  if (!deck.mean_field.crystal.spin_orbit_ry_bohr2) return;
  if (!deck.mean_field.empirical)
    throw InvalidInput(where + ": meanfield." + kKey +
                       " belongs to source = \"epm\"; with files it follows from WFN");
}

}  // namespace quasi::gw
