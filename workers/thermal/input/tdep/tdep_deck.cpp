#include "workers/thermal/input/tdep/tdep_deck.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/thermal/input/deck/crystal_input.hpp"
#include "workers/thermal/input/phonopy/phonopy_cells.hpp"
#include "workers/thermal/input/phonopy/phonopy_deck.hpp"
#include "workers/thermal/input/tdep/tdep_force_constants.hpp"

namespace quasi::thermal {
namespace {

namespace fs = std::filesystem;

constexpr double kOtherTemperature_k = 50.0;
constexpr double kSameCharge = 1e-4;

double largest_difference(const Mat3& a, const Mat3& b) {
  double largest = 0.0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) largest = std::max(largest, std::fabs(a[i][j] - b[i][j]));
  return largest;
}

/// Compares the charges of the constants with those of infile.lotosplitting.
void check_charges(const fs::path& directory, const std::optional<TdepCharges>& charges,
                   int n_atoms, std::vector<std::string>& warnings) {
  const fs::path file = tdep_file(directory, "lotosplitting");
  if (file.empty()) return;
  const TdepCharges stated = read_tdep_charges(file, n_atoms);
  if (!charges) {
    warnings.push_back(file.filename().string() +
                       " holds charges, but the dipoles were not taken out of the constants: they "
                       "are not used; extract the constants with --polar");
    return;
  }
  double apart = largest_difference(stated.epsilon, charges->epsilon);
  for (int atom = 0; atom < n_atoms; ++atom)
    apart = std::max(apart, largest_difference(stated.born[atom], charges->born[atom]));
  if (apart > kSameCharge)
    warnings.push_back(file.filename().string() + " differs by up to " + std::to_string(apart) +
                       " from the dielectric tensor and the charges of the constants, which are "
                       "used");
}

/// Warns of temperatures far from the one at which the constants were fitted.
void check_temperatures(const fs::path& directory, const Control& control,
                        std::vector<std::string>& warnings) {
  const fs::path file = tdep_file(directory, "meta");
  if (file.empty()) return;
  const double fitted_k = read_tdep_temperature_k(file);
  for (const double t : control.temperatures_k)
    if (std::fabs(t - fitted_k) > kOtherTemperature_k) {
      warnings.push_back("the constants were fitted at " + std::to_string(std::lround(fitted_k)) +
                         " K (" + file.filename().string() +
                         "), and 'T' = " + std::to_string(std::lround(t)) +
                         " K is more than 50 K away: they hold near their own temperature");
      return;
    }
}

fs::path required_file(const fs::path& directory, const std::string& name,
                       const std::string& remedy) {
  const fs::path file = tdep_file(directory, name);
  if (file.empty())
    throw InvalidInput("'" + directory.string() + "' has neither infile." + name + " nor outfile." +
                       name + "; " + remedy);
  return file;
}

}  // namespace

fs::path tdep_file(const fs::path& directory, const std::string& name) {
  for (const char* prefix : {"infile.", "outfile."})
    if (const fs::path file = directory / (prefix + name); fs::exists(file)) return file;
  return {};
}

bool is_tdep_deck(const fs::path& directory) {
  return !fs::exists(directory / "CONTROL") && !tdep_file(directory, "ucposcar").empty() &&
         !tdep_file(directory, "forceconstant").empty();
}

SecondOrder read_tdep_second_order_of(const fs::path& directory, Control& control, Crystal& crystal,
                                      std::vector<std::string>& warnings) {
  const fs::path file =
      required_file(directory, "forceconstant", "'tdep' = .true. takes the second order from it");
  TdepSecondOrder read =
      read_tdep_second_order(file, crystal.n_atoms(), control.constants().ev_per_a2_amu_to_omega2);
  check_charges(directory, read.charges, crystal.n_atoms(), warnings);
  control.tdep = true;
  if (!read.charges) {
    if (control.born_given)
      warnings.push_back(file.filename().string() +
                         " holds constants with their dipoles: 'born' is not used");
    control.nonanalytic = false;
  } else if (control.born_given) {
    warnings.push_back("'born' and 'epsilon' of " + control.deck_name + " replace those of " +
                       file.filename().string());
  } else {
    crystal.epsilon = control.epsilon = read.charges->epsilon;
    crystal.born = control.born = read.charges->born;
    control.born_given = true;
  }
  return std::move(read.constants);
}

TdepDeck read_tdep_deck(const fs::path& directory,
                        const std::vector<NamelistAssignment>& overrides) {
  TdepDeck deck;
  PhonopyCells cells;
  const fs::path poscar = tdep_file(directory, "ucposcar");
  cells.primitive = read_poscar(poscar);
  deck.files.push_back(poscar);
  require_mesh(overrides);
  deck.control = parse_control(control_text(cells), poscar.filename().string(), overrides);
  deck.crystal = make_crystal(deck.control);
  if (const fs::path isotopes = tdep_file(directory, "isotopes"); !isotopes.empty()) {
    read_tdep_isotopes(isotopes, deck.crystal);
    deck.files.push_back(isotopes);
  }
  deck.second = read_tdep_second_order_of(directory, deck.control, deck.crystal, deck.warnings);
  deck.files.push_back(tdep_file(directory, "forceconstant"));
  check_temperatures(directory, deck.control, deck.warnings);
  if (deck.control.only_harmonic) return deck;
  const int n_atoms = deck.crystal.n_atoms();
  deck.files.push_back(
      required_file(directory, "forceconstant_thirdorder", "add it, or set onlyharmonic = .true."));
  deck.third = read_tdep_anharmonic(deck.files.back(), 3, n_atoms);
  if (!deck.control.four_phonon) return deck;
  deck.files.push_back(required_file(directory, "forceconstant_fourthorder",
                                     "add it, or set four_phonon = .false."));
  deck.fourth = read_tdep_anharmonic(deck.files.back(), 4, n_atoms);
  return deck;
}

}  // namespace quasi::thermal
