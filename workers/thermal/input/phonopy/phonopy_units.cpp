#include "workers/thermal/input/phonopy/phonopy_units.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>

#include "workers/backend/error.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

constexpr double kBohr_angstrom = units::kBohr_m * 1e10;
constexpr double kRydberg_ev = units::kRydberg_j / units::kElementaryCharge_c;
constexpr const char* kKnownUnits =
    "eV/angstrom^2, eV/angstrom.au, Ry/au^2, mRy/au^2, hartree/au^2, hartree/angstrom.au";

/// A calculator of phonopy with its unit of length and that of second-order constants.
struct Calculator {
  const char* name;
  const char* length;
  const char* second_order;
};

constexpr std::array kCalculators{
    Calculator{"vasp", "angstrom", "eV/angstrom^2"},
    Calculator{"aims", "angstrom", "eV/angstrom^2"},
    Calculator{"lammps", "angstrom", "eV/angstrom^2"},
    Calculator{"pwmat", "angstrom", "eV/angstrom^2"},
    Calculator{"crystal", "angstrom", "eV/angstrom^2"},
    Calculator{"castep", "angstrom", "eV/angstrom^2"},
    Calculator{"cp2k", "angstrom", "hartree/angstrom.au"},
    Calculator{"abinit", "au", "eV/angstrom.au"},
    Calculator{"siesta", "au", "eV/angstrom.au"},
    Calculator{"abacus", "au", "eV/angstrom.au"},
    Calculator{"qe", "au", "Ry/au^2"},
    Calculator{"qlm", "au", "Ry/au^2"},
    Calculator{"wien2k", "au", "mRy/au^2"},
    Calculator{"elk", "au", "hartree/au^2"},
    Calculator{"dftbp", "au", "hartree/au^2"},
    Calculator{"turbomole", "au", "hartree/au^2"},
    Calculator{"fleur", "au", "hartree/au^2"},
    Calculator{"exciting", "au", "hartree/au^2"},
};

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::optional<double> length_angstrom(const std::string& word) {
  if (word == "angstrom") return 1.0;
  if (word == "au" || word == "bohr") return kBohr_angstrom;
  return {};
}

std::optional<double> energy_ev(const std::string& word) {
  if (word == "ev") return 1.0;
  if (word == "ry") return kRydberg_ev;
  if (word == "mry") return 1e-3 * kRydberg_ev;
  if (word == "hartree") return 2.0 * kRydberg_ev;
  return {};
}

/// Reads factors such as "angstrom.au^2", multiplies `unit` by their inverse and counts powers.
/// @return false for an unknown factor
bool divide_by_lengths(const std::string& text, double* unit, int* powers) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('.', at), text.size());
    const std::string factor = text.substr(at, end - at);
    at = end + 1;
    const std::size_t caret = factor.find('^');
    const auto length = length_angstrom(factor.substr(0, caret));
    int power = 1;
    if (caret != std::string::npos) {
      if (factor.size() != caret + 2 || factor[caret + 1] < '1' || factor[caret + 1] > '9')
        return false;
      power = factor[caret + 1] - '0';
    }
    if (!length) return false;
    for (int i = 0; i < power; ++i) *unit /= *length;
    *powers += power;
  }
  return true;
}

std::string text_of(const YAML::Node& node, const char* key) {
  return node.IsMap() && node[key] && node[key].IsScalar() ? node[key].as<std::string>() : "";
}

/// Returns the calculator's name, or "" where the yaml names none.
std::string calculator_of(const YAML::Node& root) {
  for (const char* program : {"phono3py", "phonopy"})
    if (root[program])
      if (const std::string name = text_of(root[program], "calculator"); !name.empty()) return name;
  return text_of(root, "calculator");
}

}  // namespace

double PhonopyUnits::constants(int order) const {
  return second_order_ev_per_a2 / std::pow(length_angstrom, order - 2);
}

double force_constant_unit(std::string_view text, int order, const std::string& place) {
  const std::string word = lower(text);
  const std::size_t slash = word.find('/');
  const auto energy = energy_ev(word.substr(0, slash));
  double unit = energy.value_or(0.0);
  int powers = 0;
  if (slash == std::string::npos || !energy ||
      !divide_by_lengths(word.substr(slash + 1), &unit, &powers))
    throw InvalidInput(place + ": the unit '" + std::string(text.substr(0, 40)) +
                       "' of force constants is not known; known are " + kKnownUnits +
                       ", and the like with higher powers of length");
  if (powers != order)
    throw InvalidInput(place + ": the unit '" + std::string(text.substr(0, 40)) + "' has power " +
                       std::to_string(powers) + " of length, constants of order " +
                       std::to_string(order) + " have power " + std::to_string(order));
  return unit;
}

PhonopyUnits units_of_yaml(const YAML::Node& root, const std::string& file) {
  PhonopyUnits units;
  if (const std::string name = calculator_of(root); !name.empty()) {
    const auto found = std::find_if(kCalculators.begin(), kCalculators.end(),
                                    [&](const Calculator& c) { return lower(name) == c.name; });
    if (found == kCalculators.end()) {
      std::string known;
      for (const Calculator& c : kCalculators)
        known += (known.empty() ? "" : ", ") + std::string(c.name);
      throw InvalidInput(file + ": the calculator '" + name.substr(0, 40) +
                         "' is not known, so its units are not; known are " + known +
                         "; correct 'calculator', or state 'physical_unit'");
    }
    units = {*length_angstrom(found->length), force_constant_unit(found->second_order, 2, file)};
  }
  const YAML::Node stated = root["physical_unit"];
  if (!stated) return units;
  if (const std::string length = text_of(stated, "length"); !length.empty()) {
    const auto known = length_angstrom(lower(length));
    if (!known)
      throw InvalidInput(file + ": 'physical_unit.length' = '" + length.substr(0, 40) +
                         "' is not known; known are angstrom and au");
    units.length_angstrom = *known;
  }
  if (const std::string constants = text_of(stated, "force_constants"); !constants.empty())
    units.second_order_ev_per_a2 =
        force_constant_unit(constants, 2, file + ": 'physical_unit.force_constants'");
  return units;
}

}  // namespace quasi::thermal
