#include "workers/thermal/model/crystal.hpp"

#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

// Mean mass and g = Σ f_i (1 − m_i/m̄)² of natural isotopic composition
// (docs/theory/thermal.md 9.1): the values that published ShengBTE and FourPhonon results were
// computed with.
constexpr NaturalElement kNatural[] = {
    {"Li", 6.9417396, 1.428072e-3},   {"Be", 9.0121830, 0.0},
    {"B", 10.8120243, 1.348541e-3},   {"C", 12.0110369, 7.591668e-5},
    {"N", 14.0067630, 1.867829e-5},   {"O", 15.9989852, 3.280896e-5},
    {"F", 18.9984030, 0.0},           {"Na", 22.9897700, 0.0},
    {"Mg", 24.3068525, 7.438973e-4},  {"Al", 26.9815410, 0.0},
    {"Si", 28.0855100, 2.009120e-4},  {"P", 30.9737630, 0.0},
    {"S", 32.0643894, 1.652067e-4},   {"Cl", 35.4527382, 5.825444e-4},
    {"K", 39.0757024, 1.645162e-4},   {"Ca", 40.0864647, 2.989615e-4},
    {"Ti", 47.8784257, 2.863541e-4},  {"Co", 58.9331980, 0.0},
    {"Ni", 58.6878904, 4.278181e-4},  {"Cu", 63.5456419, 2.108602e-4},
    {"Zn", 65.3963635, 5.952202e-4},  {"Ga", 69.7232299, 1.971379e-4},
    {"Ge", 72.6322511, 5.873168e-4},  {"As", 74.9215960, 0.0},
    {"Se", 78.9932754, 4.658432e-4},  {"Br", 79.9035271, 1.562775e-4},
    {"Sr", 87.6166578, 6.099685e-5},  {"Zr", 91.2213486, 3.417023e-4},
    {"Mo", 95.9312889, 5.981274e-4},  {"Ag", 107.8681308, 8.579798e-5},
    {"Cd", 112.4115549, 2.716031e-4}, {"In", 114.8178828, 1.248368e-5},
    {"Sn", 118.5489218, 3.333857e-4}, {"Sb", 121.7579939, 6.604202e-5},
    {"Te", 127.5932163, 2.857159e-4}, {"I", 126.9044770, 0.0},
    {"Cs", 132.9054330, 0.0},         {"Ba", 137.3266591, 6.248020e-5},
    {"Hf", 178.4897908, 5.248491e-5}, {"W", 183.8489081, 6.971586e-5},
    {"Pb", 207.2168966, 1.943776e-5}, {"Bi", 208.9803880, 0.0},
};

}  // namespace

const NaturalElement* natural_element(const std::string& symbol) {
  for (const NaturalElement& element : kNatural)
    if (symbol == element.symbol) return &element;
  return nullptr;
}

Mat3 Crystal::reciprocal_per_nm() const {
  const double factor = 2.0 * units::kPi / determinant(lattice_nm);
  return {factor * cross(lattice_nm[1], lattice_nm[2]),
          factor * cross(lattice_nm[2], lattice_nm[0]),
          factor * cross(lattice_nm[0], lattice_nm[1])};
}

}  // namespace quasi::thermal
