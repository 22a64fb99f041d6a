#include "examples/thermal/generate/stillinger_weber.hpp"

#include <cmath>

namespace quasi::model {

namespace {

Nilpotent length(std::span<const Nilpotent> r) {
  return sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
}

constexpr double kMassSilicon_amu = 28.0855;
constexpr double kMassGermanium_amu = 72.63;
constexpr double kMassGallium_amu = 69.723;
constexpr double kMassArsenic_amu = 74.921595;

Structure tetrahedral(const StillingerWeber& potential, std::vector<std::string> element,
                      std::vector<double> mass_amu) {
  const double half = 2.0 / std::sqrt(3.0) * potential.bond_length_angstrom();
  return {.lattice_angstrom = {{{0, half, half}, {half, 0, half}, {half, half, 0}}},
          .position = {{0, 0, 0}, {0.25, 0.25, 0.25}},
          .type = {0, static_cast<int>(element.size()) - 1},
          .element = element,
          .mass_amu = mass_amu,
          .charge_e = std::vector<double>(element.size(), 0.0),
          .supercell = {3, 3, 3}};
}

}  // namespace

Nilpotent StillingerWeber::pair_energy_ev(const Nilpotent& r_angstrom) const {
  const Nilpotent r = r_angstrom / sigma_angstrom;
  return Nilpotent(A * epsilon_ev) * (Nilpotent(B) * pow(r, -p) - pow(r, -q)) * exp(inverse(r - a));
}

double StillingerWeber::bond_length_angstrom() const {
  double r = std::cbrt(std::sqrt(2.0)) *
             sigma_angstrom;  // the scaled potential has its minimum next to 2^(1/6) σ
  for (int step = 0; step < 50; ++step) {
    Nilpotent x(r);
    x.seed(0);
    x.seed(1);
    const Nilpotent energy = pair_energy_ev(x);
    const double move = energy.derivative(0b01) / energy.derivative(0b11);
    r -= move;
    if (std::abs(move) < 1e-15 * r) break;
  }
  return r;
}

std::vector<EnergyTerm> StillingerWeber::terms(const Structure& structure) const {
  const double cutoff = a * sigma_angstrom;
  std::vector<EnergyTerm> result;
  for (int atom = 0; atom < structure.n_atoms(); ++atom) {
    const Site centre{atom, {}};
    const std::vector<Site> near = neighbours(structure, atom, cutoff);
    for (const Site& other : near)
      if (centre < other)  // each bond of the crystal once
        result.push_back({{centre, other}, [this](std::span<const Nilpotent> r) {
                            return pair_energy_ev(length(r));
                          }});
    for (std::size_t j = 0; j < near.size(); ++j)
      for (std::size_t k = j + 1; k < near.size(); ++k)
        result.push_back({{centre, near[j], near[k]}, [this](std::span<const Nilpotent> r) {
                            const Nilpotent rj = length(r.first(3)), rk = length(r.last(3));
                            const Nilpotent cosine =
                                (r[0] * r[3] + r[1] * r[4] + r[2] * r[5]) / (rj * rk);
                            const Nilpotent bend = cosine + Nilpotent(1.0 / 3.0);
                            return Nilpotent(lambda * epsilon_ev) *
                                   exp(Nilpotent(gamma) * inverse(rj / sigma_angstrom - a) +
                                       Nilpotent(gamma) * inverse(rk / sigma_angstrom - a)) *
                                   bend * bend;
                          }});
  }
  return result;
}

StillingerWeber scaled_potential(double bond_length_angstrom, double epsilon_ev) {
  StillingerWeber result;
  result.sigma_angstrom *= bond_length_angstrom / result.bond_length_angstrom();
  result.epsilon_ev = epsilon_ev;
  return result;
}

Structure diamond(const StillingerWeber& potential) {
  return tetrahedral(potential, {"Si"}, {kMassSilicon_amu});
}

Structure germanium(const StillingerWeber& potential) {
  return tetrahedral(potential, {"Ge"}, {kMassGermanium_amu});
}

Structure gallium_arsenide(const StillingerWeber& potential) {
  return tetrahedral(potential, {"Ga", "As"}, {kMassGallium_amu, kMassArsenic_amu});
}

Structure wurtzite(const StillingerWeber& potential) {
  const double bond = potential.bond_length_angstrom();
  const double a = bond * std::sqrt(8.0 / 3.0);
  const double c = bond * 8.0 / 3.0;
  const double u = 0.375;
  return {.lattice_angstrom = {{{a, 0, 0}, {-0.5 * a, std::sqrt(0.75) * a, 0}, {0, 0, c}}},
          .position = {{1.0 / 3, 2.0 / 3, 0},
                       {2.0 / 3, 1.0 / 3, 0.5},
                       {1.0 / 3, 2.0 / 3, u},
                       {2.0 / 3, 1.0 / 3, 0.5 + u}},
          .type = {0, 0, 1, 1},
          .element = {"Si", "Ge"},
          .mass_amu = {kMassSilicon_amu, kMassGermanium_amu},
          .charge_e = {0.0, 0.0},
          .supercell = {3, 3, 2}};
}

Structure polytype(const StillingerWeber& potential, int half) {
  const double bond = potential.bond_length_angstrom();
  const double a = bond * std::sqrt(8.0 / 3.0);
  const int layers = 2 * half;
  Structure s{.lattice_angstrom = {{{a, 0, 0},
                                    {-0.5 * a, std::sqrt(0.75) * a, 0},
                                    {0, 0, 4.0 / 3.0 * bond * layers}}},
              .position = {},
              .type = {},
              .element = {"Si"},
              .mass_amu = {kMassSilicon_amu},
              .charge_e = {0.0},
              .supercell = {3, 3, 1}};
  int stack = 0;  // A, B or C: the axis of the cell on which the bilayer stands
  for (int layer = 0; layer < layers; ++layer) {
    const double x = stack / 3.0;
    const double y = (3 - stack) % 3 / 3.0;
    for (const double height : {0.0, 0.75}) {  // the second atom stands one bond above the first
      s.position.push_back({x, y, (layer + height) / layers});
      s.type.push_back(0);
    }
    stack = (stack + (layer < half ? 1 : 2)) % 3;
  }
  return s;
}

}  // namespace quasi::model
