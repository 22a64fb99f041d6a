// Inner states that do not belong to the crystal at rest, and decks that exclude them, are refused
// before Σ with field, value, limit and remedy, by `validate` and by `run` alike.

#include <gtest/gtest.h>

#include <functional>

#include "tests/gw/perturbation/displaced_waves.hpp"
#include "tests/gw/support/displaced_silicon.hpp"
#include "tests/gw/support/planned_deck.hpp"

namespace quasi::gw {
namespace {

using test::DisplacedWaves;
using test::refusal_of_deck;

/// Returns the files that all tests share.
const DisplacedWaves& files() {
  static const DisplacedWaves kFiles;
  return kFiles;
}

/// Returns the message with which a run refuses a deck, or an empty one.
std::string refusal_of_run(const std::string& deck) {
  try {
    files().run(deck);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

/// A change of the states of +0.01 Bohr, and the words of its refusal.
struct BrokenStates {
  const char* name;
  std::function<void(Wavefunctions&)> change;
  const char *field, *remedy;
};

void move_atom(Wavefunctions& waves, std::size_t atom, double z_bohr) {
  Crystal& crystal = waves.header.crystal;
  crystal.atoms[atom].position_alat[2] += z_bohr / crystal.alat_bohr;
}

/// Makes all lengths of the lattice longer by one per cent.
void stretch(Wavefunctions& waves) {
  constexpr double kFactor = 1.01;
  Crystal& crystal = waves.header.crystal;
  crystal.alat_bohr *= kFactor;
  crystal.blat_per_bohr /= kFactor;
  crystal.volume_bohr3 *= kFactor * kFactor * kFactor;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      crystal.adot[i][j] *= kFactor * kFactor;
      crystal.bdot[i][j] /= kFactor * kFactor;
    }
}

/// Keeps the lowest bands.
void keep_bands(Wavefunctions& waves, int bands) {
  std::vector<double> energy, occupation;
  const auto n = static_cast<std::size_t>(waves.n_bands);
  for (std::size_t ik = 0; ik < waves.k.size(); ++ik)
    for (std::size_t band = 0; band < static_cast<std::size_t>(bands); ++band) {
      energy.push_back(waves.energy_ry[ik * n + band]);
      occupation.push_back(waves.occupation[ik * n + band]);
    }
  waves.energy_ry = energy;
  waves.occupation = occupation;
  for (KPointWaves& at : waves.waves) {
    const Cplx* const all = at.coefficients[0].data();
    at.coefficients[0] =
        std::vector<Cplx>(all, all + static_cast<std::size_t>(bands) * at.g.size());
  }
  waves.n_bands = bands;
}

/// Keeps the k-point Γ alone.
void keep_gamma(Wavefunctions& waves) {
  waves.k.resize(1);
  waves.weight = {1.0};
  waves.first_occupied.resize(1);
  waves.last_occupied.resize(1);
  waves.waves.resize(1);
  waves.energy_ry.resize(static_cast<std::size_t>(waves.n_bands));
  waves.occupation.resize(static_cast<std::size_t>(waves.n_bands));
}

class InnerStatesRefused : public testing::TestWithParam<BrokenStates> {};

TEST_P(InnerStatesRefused, BeforeSigma) {
  Wavefunctions waves = files().displaced(0.01);
  GetParam().change(waves);
  write_wavefunctions(files().path("WFN_broken"), waves);
  const std::string deck = files().inner_deck("", "WFN_broken");
  const std::string message = refusal_of_deck(deck, files().path(""));
  EXPECT_NE(message.find(GetParam().field), std::string::npos) << message;
  EXPECT_NE(message.find(GetParam().remedy), std::string::npos) << message;
  EXPECT_EQ(message, refusal_of_run(deck));
}

const BrokenStates kBroken[] = {
    {"OtherLattice", stretch, "the cell volume", "belong to different calculations"},
    {"OtherElement", [](auto& w) { w.header.crystal.atoms[1].atomic_number = 32; },
     "the atomic number of atom 2 is 14 in the first, 32 in the second", "meanfield.wfn_inner"},
    {"OtherNumberOfAtoms",
     [](auto& w) { w.header.crystal.atoms.push_back(w.header.crystal.atoms[0]); },
     "the number of atoms is 2 in the first, 3 in the second", "meanfield.wfn_inner"},
    {"OtherDensityCutoff", [](auto& w) { w.header.density_cutoff_ry *= 1.1; },
     "the density cut-off", "belong to different calculations"},
    {"OtherCutoff", [](auto& w) { w.wavefunction_cutoff_ry = 5.5; },
     "has a cut-off of 5.5 Ry, WFN of 5 Ry", "make both with that of WFN"},
    {"NoDisplacement", [](auto& w) { move_atom(w, 0, -0.01); }, "displaces no atom of WFN",
     "name the WFN of a displaced crystal"},
    {"TooFar", [](auto& w) { move_atom(w, 0, 0.24); },
     "displaces atom 1 of WFN by 0.250000 Bohr, outside 0.0001 … 0.2", "displace it by 0.01"},
    {"TooNear", [](auto& w) { move_atom(w, 0, -0.00995); },
     "displaces atom 1 of WFN by 0.000050 Bohr, outside 0.0001 … 0.2", "displace it by 0.01"},
    {"SecondAtomTooFar", [](auto& w) { move_atom(w, 1, -0.3); },
     "displaces atom 2 of WFN by 0.300000 Bohr", "displace it by 0.01"},
    {"OtherGrid",
     [](auto& w) {
       w.k_grid = {1, 1, 1};
       keep_gamma(w);
     },
     "has the k-grid 1 x 1 x 1, WFN 2 x 2 x 2", "make both with that of WFN"},
    {"MissingPoints", keep_gamma, "WFN_inner", "8"},
    {"OtherElectrons",
     [](auto& w) {
       for (int& n : w.last_occupied) n = 3;
       for (std::size_t i = 3; i < w.occupation.size(); i += static_cast<std::size_t>(w.n_bands))
         w.occupation[i] = 0.0;
     },
     "another number of occupied bands", "with the same electrons"},
    {"FewBands", [](auto& w) { keep_bands(w, 8); }, "meanfield.wfn_inner holds 8 bands",
     "give meanfield.vsc_inner and meanfield.vkb_inner"}};

INSTANTIATE_TEST_SUITE_P(Cases, InnerStatesRefused, testing::ValuesIn(kBroken),
                         [](const auto& one) { return std::string(one.param.name); });

// Decks that ask for more than Σ, or that lack a file, are refused with the key and a remedy. The
// unchanged deck is planned.
TEST(InnerStates, ExcludeOtherTables) {
  files().write_displaced("WFN_inner", 0.01);
  const std::string deck = files().inner_deck("");
  EXPECT_EQ(refusal_of_deck(deck, files().path("")), "");
  const auto with = [&](const std::string& before, const std::string& after) {
    std::string changed = deck;
    changed.replace(changed.find(before), before.size(), after);
    return changed;
  };
  const auto without = [&](const std::string& line) { return with(line, ""); };
  const auto in_mean_field = [&](const std::string& line) {
    return with("[meanfield]\n", "[meanfield]\n" + line);
  };
  const std::vector<std::vector<std::string>> cases{
      {in_mean_field("vxc = \"VXC\"\n"), "meanfield.vxc", "remove vxc"},
      {in_mean_field("wfn_outer = \"WFN\"\n"), "meanfield.wfn_outer", "remove one of them"},
      {in_mean_field("vsc_inner = \"VSC\"\n"), "meanfield.vkb_inner", "is missing"},
      {with("wfn_inner", "vsc_inner = \"V\"\nvkb_inner"), "meanfield.vsc_inner", "name that file"},
      {with("\"WFN_inner\"", "\"WFN_none\""), "WFN_none", "does not exist"},
      {"[meanfield]\nsource = \"epm\"\nwfn_inner = \"WFN\"\n[epsilon]\ncutoff_ry = 2.0\n",
       "meanfield.wfn_inner", "remove it"},
      {deck + "[perturbation]\ndisplaced = [\"p\", \"m\"]\n", "[perturbation]", "remove one"},
      {without("bands = 18\n") + "[pseudobands]\nvectors = 2\n", "[pseudobands]", "remove one"},
      {deck + "static_remainder = true\n", "sigma.static_remainder", "remove one"},
      {deck + "method = \"cohsex\"\nexact_ch = true\n", "sigma.exact_ch", "remove one"},
      {deck + "outer_loop = \"evgw0\"\n", "sigma.outer_loop", "remove one"},
      {without("kpoints = [[0.5, 0, 0]]\n") + "band_path = [[0, 0, 0], [0.5, 0, 0]]\n",
       "sigma.band_path", "remove one"},
      {"convergence_study = true\n" + deck, "--converge", "remove one"},
      {"stop_after = \"epsilon\"\n[meanfield]\nwfn = \"WFN\"\nwfn_inner = \"WFN_inner\"\n"
       "[epsilon]\ncutoff_ry = 2.0\n",
       "stop_after", "remove one"}};
  for (const auto& broken : cases) {
    const std::string message = refusal_of_deck(broken[0], files().path(""));
    EXPECT_NE(message.find(broken[1]), std::string::npos) << broken[0] << message;
    EXPECT_NE(message.find(broken[2]), std::string::npos) << broken[0] << message;
  }
}

// VSC and VKB of +h with WFN of −h are told apart by the displaced atom.
TEST(InnerStates, NeedTheirOwnHamiltonian) {
  QUASI_NEED_REFERENCE("gw/gwpt");
  test::DisplacedSilicon silicon;
  const auto path = [](const std::filesystem::path& p) { return "\"" + p.string() + "\"\n"; };
  const quasi::test::TemporaryDirectory directory;
  const std::string deck =
      "[meanfield]\nwfn = " + path(silicon.rest.file("WFN")) +
      "rho = " + path(silicon.rest.file("RHO")) + "vsc = " + path(silicon.rest.file("VSC")) +
      "vkb = " + path(silicon.rest.file("VKB")) + "wfn_inner = " + path(silicon.minus.file("WFN")) +
      "vsc_inner = " + path(silicon.plus.file("VSC")) +
      "vkb_inner = " + path(silicon.plus.file("VKB")) +
      "[epsilon]\neps0mat = \"eps0mat.h5\"\n[sigma]\nbands = 40\n";
  const std::string message = refusal_of_deck(deck, directory.path());
  EXPECT_NE(message.find("meanfield.wfn_inner and meanfield.vsc_inner"), std::string::npos)
      << message;
  EXPECT_NE(message.find("coordinate 3 of atom 1"), std::string::npos) << message;
}

}  // namespace
}  // namespace quasi::gw
