#include "workers/gw/model/empirical_crystal.hpp"

#include <cmath>
#include <span>

#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

struct Node {
  double g2, value_ry;
};
/// Returns the value at g2 of the straight lines between nodes, and 0 beyond the last one.
double value_between(std::span<const Node> nodes, double g2) {
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const Node &low = nodes[i - 1], &high = nodes[i];
    if (g2 <= high.g2)
      return low.value_ry + (high.value_ry - low.value_ry) * (g2 - low.g2) / (high.g2 - low.g2);
  }
  return 0.0;
}

constexpr FormFactors kTable[] = {
    {"silicon", 10.2612, {-0.224, 0.0, 0.055, 0.072}, {0, 0, 0, 0}, {14, 14}},
    {"germanium", 10.6930, {-0.238, 0.0, 0.004, 0.068}, {0, 0, 0, 0}, {32, 32}},
    {"gaas", 10.6770, {-0.23, 0.0, 0.01, 0.055}, {0.07, 0.05, 0.0, 0.01}, {31, 33}},
    {"zns", 10.2233, {-0.22, 0.0, 0.03, 0.07}, {0.24, 0.14, 0.0, 0.04}, {30, 16}},
    {"insb", 12.2454, {-0.20, 0.0, 0.0, 0.04}, {0.06, 0.05, 0.0, 0.01}, {49, 51}},
};

constexpr WellModel kMonolayer{.name = "monolayer",
                               .lattice_bohr = 6.0,
                               .height_bohr = 16.0,
                               .depth_ry = 3.0,
                               .width_bohr = 1.5};

}  // namespace

const WellModel* well_model(const std::string& name) {
  return name == kMonolayer.name ? &kMonolayer : nullptr;
}

const FormFactors& form_factors(const std::string& name) {
  for (const FormFactors& entry : kTable)
    if (name == entry.name) return entry;
  throw InvalidInput("meanfield.crystal = \"" + name +
                     "\" has no form factors; choose silicon, germanium, gaas, zns or insb");
}

double interpolated_form_factor(const FormFactors& factors, double lattice_bohr, double g2,
                                int kind) {
  // Eight atoms of four electrons each fill a cubic cell. E_F = (3π² n)^(2/3) in Rydberg.
  const double density = 32.0 / std::pow(lattice_bohr, 3),
               fermi_ry = std::pow(3.0 * kPi * kPi * density, 2.0 / 3.0);
  const double* s = factors.symmetric_ry;
  const double* a = factors.antisymmetric_ry;
  const Node symmetric[] = {{0.0, -2.0 / 3.0 * fermi_ry},
                            {3.0, s[0]},
                            {8.0, s[2]},
                            {11.0, s[3]},
                            {kEndOfFormFactors, 0.0}},
             antisymmetric[] = {
                 {0.0, 0.0}, {3.0, a[0]}, {4.0, a[1]}, {11.0, a[3]}, {kEndOfFormFactors, 0.0}};
  return value_between(symmetric, g2) + (kind == 0 ? -1.0 : 1.0) * value_between(antisymmetric, g2);
}

std::vector<std::string> empirical_crystal_names() {
  std::vector<std::string> names;
  for (const FormFactors& entry : kTable) names.emplace_back(entry.name);
  names.emplace_back(kMonolayer.name);
  return names;
}

}  // namespace quasi::gw
