#include "workers/gw/model/empirical_crystal.hpp"

#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

constexpr FormFactors kTable[] = {
    {"silicon", 10.2612, {-0.224, 0.0, 0.055, 0.072}, {0, 0, 0, 0}, {14, 14}},
    {"germanium", 10.6930, {-0.238, 0.0, 0.004, 0.068}, {0, 0, 0, 0}, {32, 32}},
    {"gaas", 10.6770, {-0.23, 0.0, 0.01, 0.055}, {0.07, 0.05, 0.0, 0.01}, {31, 33}},
    {"zns", 10.2233, {-0.22, 0.0, 0.03, 0.07}, {0.24, 0.14, 0.0, 0.04}, {30, 16}},
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
                     "\" has no form factors; choose silicon, germanium, gaas or zns");
}

std::vector<std::string> empirical_crystal_names() {
  std::vector<std::string> names;
  for (const FormFactors& entry : kTable) names.emplace_back(entry.name);
  names.emplace_back(kMonolayer.name);
  return names;
}

}  // namespace quasi::gw
