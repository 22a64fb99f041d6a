// Broken modes are refused before Σ with the file, the field, the limit and a remedy.

#include <gtest/gtest.h>

#include <functional>
#include <span>

#include "tests/gw/support/phonon_mode_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {
namespace {

using quasi::test::TemporaryDirectory;
using test::GalliumArsenideModes;

const std::string kDeck =
    "[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 3.0\nbands = 8\n"
    "[epsilon]\ncutoff_ry = 2.0\n[perturbation]\nmodes = \"modes\"\n";

/// Returns the message with which `use` refuses; empty if it does not.
std::string message_of(const std::function<void()>& use) {
  try {
    use();
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

/// Returns the message with which `validate` refuses the deck. A run refuses it with the same.
std::string refusal_in(const TemporaryDirectory& directory, const std::string& more = "") {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  DeviceTeam team(*kernels);
  SilentProgress silent;
  const Workplace place{.team = team, .memory_budget_bytes = std::int64_t{1} << 30};
  const auto deck = [&] { return parse_deck(kDeck + more, {}, "test", directory.path()); };
  const std::string validated = message_of([&] { validated_plan(deck(), place, silent); });
  if (validated.empty()) return "";
  EXPECT_EQ(message_of([&] { run_calculation(deck(), place, silent); }), validated);
  return validated;
}

std::string refusal_of(const GalliumArsenideModes& modes) {
  const TemporaryDirectory directory;
  modes.write_text(directory.path() / "modes");
  return refusal_in(directory);
}

/// A change that breaks a file, and the words of its refusal.
struct BrokenModes {
  std::function<void(GalliumArsenideModes&)> change;
  const char *field, *remedy;
};

/// Expects that each file of modes is refused with its field and its remedy.
void expect_refusals(std::span<const BrokenModes> cases) {
  for (const BrokenModes& broken : cases) {
    GalliumArsenideModes modes;
    broken.change(modes);
    const std::string message = refusal_of(modes);
    EXPECT_NE(message.find(broken.field), std::string::npos) << broken.field << "\n" << message;
    EXPECT_NE(message.find(broken.remedy), std::string::npos) << broken.remedy << "\n" << message;
  }
}

TEST(PhononModesRefused, ModesOfAnotherCrystal) {
  EXPECT_EQ(refusal_of({}), "");
  const BrokenModes cases[] = {
      {[](auto& m) {
         m.element = {"Si", "Si"};
       },
       "atoms are Si Si, but those of the job are", "use the modes of the crystal of the job"},
      {[](auto& m) { m.element[0] = "Gax"; }, "the element \"Gax\"", "use its symbol"},
      {[](auto& m) { m.lattice_parameter_bohr *= 1.05; }, "lattice vector 1 is (0.0000, 1.0500",
       "use the modes of the same crystal"},
      {[](auto& m) {
         m.lattice[0] = {0, 1, 1};
       },
       "2 times the volume", "in the cell of the job"},
      {[](auto& m) {
         m.position[1] = {.3, .25, .25};
       },
       "no shift of the origin", "correct the positions"},
      {[](auto& m) {
         m.position[1] = {.75, .75, .75};
       },
       "no shift of the origin", "correct the positions"},
      {[](auto& m) {
         m.element.emplace_back("As");
         m.mass_amu.push_back(74.9);
         m.position.push_back({.5, .5, .5});
         for (auto& e : m.eigenvector) e.resize(9);
       },
       "its cell has 3 atoms, but the cell of the job has 2", "calculate the modes"}};
  expect_refusals(cases);
}

TEST(PhononModesRefused, BrokenModes) {
  const BrokenModes cases[] = {
      {[](auto& m) { m.energy_mev.pop_back(); }, "it holds 5 modes, but 2 atoms have 6",
       "list all of them"},
      {[](auto& m) { m.eigenvector[4].resize(3); }, "mode 5.eigenvector holds 1 vectors",
       "one for each atom"},
      {[](auto& m) { m.eigenvector[3][0] *= 1.1; }, "eigenvectors 4 and 1 is 0.0",
       "orthonormal eigenvectors"},
      {[](auto& m) { m.eigenvector[5] = m.eigenvector[4]; }, "eigenvectors 6 and 5 is 1.0000",
       "orthonormal eigenvectors"},
      {[](auto& m) { m.mass_amu[0] = 10.0; }, "mode 1 is to 0.", "with the masses"},
      {[](auto& m) { m.mass_amu[0] = 0.0; }, "mass_amu = 0 is outside 0.5", "400"},
      {[](auto& m) { m.energy_mev[4] = -12.0; }, "mode 5 is no rigid shift and has -12 meV",
       "relax the crystal"},
      {[](auto& m) { m.energy_mev[4] = 0.0; }, "mode 5 is no rigid shift and has 0 meV",
       "relax the crystal"},
      {[](auto& m) { m.energy_mev[0] = 20.0; }, "mode 1 is a rigid shift, but has 20 meV",
       "impose the acoustic sum rule"},
      {[](auto& m) {
         m.unit = "THz";
         for (double& e : m.energy_mev) e *= 8.065;
       },
       "mode 4 has", "correct the unit of the frequencies"},
      {[](auto& m) { m.unit = "eV"; }, "frequency_unit = \"eV\" is not one of", "rad/ps"},
      {[](auto& m) { m.unit = ""; }, "frequency_unit is missing", "set \"meV\""},
      {[](auto& m) { m.further = "q = [0.5, 0, 0]\n"; }, "q is not 0", "add this q"},
      {[](auto& m) { m.further = "frequencies = 1\n"; }, "frequencies", "modes"}};
  expect_refusals(cases);
}

TEST(PhononModesRefused, BrokenThermalResults) {
  const std::tuple<GalliumArsenideModes::ThermalResult, const char*, const char*> cases[] = {
      {{.kind = "gw"}, "is no result of a thermal job", "give the result.h5"},
      {{.has_vectors = false}, "holds no /modes/eigenvector", "eigenvector_limit_mib"},
      {{.omega_unit = "THz"}, "/modes/omega is in THz, but rad/ps", "thermal job"},
      {{.shift = 0.25}, "/mesh/qpoint holds no q = 0", "a mesh that holds Gamma"},
      {{.n_q = 3}, "/modes/omega does not have the shape 2 x 6", "damaged"}};
  for (const auto& [result, field, remedy] : cases) {
    const TemporaryDirectory directory;
    GalliumArsenideModes{}.write_thermal(directory.path() / "modes", result);
    const std::string message = refusal_in(directory);
    EXPECT_NE(message.find(field), std::string::npos) << message;
    EXPECT_NE(message.find(remedy), std::string::npos) << message;
  }
}

TEST(PhononModesRefused, MissingFilesAndPartsOfTheDisplacements) {
  const TemporaryDirectory directory;
  EXPECT_NE(refusal_in(directory).find("does not exist"), std::string::npos);
  GalliumArsenideModes{}.write_text(directory.path() / "modes");
  EXPECT_EQ(refusal_in(directory), "");
  for (const char* key : {"atoms = [1]", "directions = [\"x\"]"})
    EXPECT_NE(refusal_in(directory, key).find("is not allowed with perturbation.modes"),
              std::string::npos);
}

}  // namespace
}  // namespace quasi::gw
