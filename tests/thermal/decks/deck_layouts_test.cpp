// Tests one crystal in several layouts of deck: CONTROL, TOML, phono3py. The task gives equal
// results for them.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/decks/phonopy_twin.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/thermal_task.hpp"

namespace quasi {
namespace {

namespace fs = std::filesystem;

nlohmann::json run(const fs::path& deck, const std::vector<std::string>& settings = {}) {
  const test::TemporaryDirectory out;
  DeckSource source{.path = deck, .settings = {}};
  for (const auto& text : settings) source.settings.push_back(parse_setting(text));
  SilentProgress silent;
  return make_thermal_task()->run({.deck = source,
                                   .devices = {Device{}},
                                   .output_directory = out.path(),
                                   .checkpoint_directory = out.path(),
                                   .exports = {}},
                                  silent);
}
fs::path example(const char* name) { return test::source_dir() / "examples/thermal" / name; }
void write(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

/// The message with which a TOML deck is refused; "" if it is accepted.
std::string refusal(const std::string& text, const std::vector<Setting>& settings = {}) {
  const test::TemporaryDirectory place;
  write(place.path() / "si.toml", text);
  try {
    thermal::read_deck(place.path() / "si.toml", settings);
  } catch (const InvalidInput& failure) {
    return failure.what();
  }
  return "";
}

// Equal keys by --set and by TOML give equal bits.
TEST(DeckLayouts, TomlLaysItsKeysOverControl) {
  const test::TemporaryDirectory place;
  write(place.path() / "si.toml",
        "kind = \"thermal\"\ndirectory = \"" + example("silicon-sw").string() +
            "\"\nngrid = [4, 4, 4]\n[parameters]\nT = [200, 300.0]\n[flags]\nisotopes = "
            "false\n[job]\nname = \"x\"\npriority = 3\n");
  const auto toml = run(place.path() / "si.toml");
  const auto control = run(example("silicon-sw"), {"ngrid=4,4,4", "T=200,300", "isotopes=F"});
  EXPECT_EQ(toml["kappa_w_per_mk"], control["kappa_w_per_mk"]);
  EXPECT_EQ(toml["temperatures_k"], nlohmann::json({200.0, 300.0}));
  // --set overrides both, in the form of a namelist or of TOML lists.
  const auto finer = run(place.path() / "si.toml", {"ngrid=[3,3,3]", "t=300"});
  EXPECT_EQ(finer["mesh"], nlohmann::json({3, 3, 3}));
  EXPECT_EQ(finer["kappa_rta_w_per_mk"].size(), 1u);
}

// Without a CONTROL the whole crystal is given in TOML.
TEST(DeckLayouts, TomlMaySayEverything) {
  const test::TemporaryDirectory place;
  for (const char* name : {"FORCE_CONSTANTS_2ND", "FORCE_CONSTANTS_3RD"})
    fs::copy(example("silicon-sw") / name, place.path() / name);
  const thermal::Control c = thermal::read_control(example("silicon-sw"), std::vector<Setting>{});
  std::ostringstream deck;
  deck.precision(17);
  const auto list = [&](const thermal::Vec3& v) {
    deck << "[" << v[0] << ", " << v[1] << ", " << v[2] << "]";
  };
  deck
      << std::showpoint
      << "kind = \"thermal\"\ndirectory = \".\"\nnatoms = 2\nnelements = 1\nngrid = [3, 3, 3]\nT = "
         "300\nlfactor = "
      << c.lfactor_nm
      << "\nelements = [\"Si\"]\ntypes = [1, 1]\nautoisotopes = false\nisotopes = false\nmasses = ["
      << c.masses_amu[0] << "]\nscell = [" << c.supercell[0] << ", " << c.supercell[1] << ", "
      << c.supercell[2] << "]\nlattvec = [";
  for (const auto& row : c.lattvec) list(row), deck << ",";
  deck << "]\npositions = [";
  for (const auto& position : c.positions) list(position), deck << ",";
  deck << "]\n";
  write(place.path() / "deck.toml", deck.str());
  const auto whole = run(place.path());  // a directory with deck.toml
  const auto control = run(example("silicon-sw"), {"ngrid=3,3,3", "T=300"});
  EXPECT_EQ(whole["kappa_w_per_mk"], control["kappa_w_per_mk"]);
}

TEST(DeckLayouts, RefusedTomlDecksNameLineKeyAndNearest) {
  const std::string head = "kind = \"thermal\"\ndirectory = \".\"\n";
  const auto contains = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
  };
  const std::string typo = refusal(head + "scalebraod = 0.5\n");
  contains(typo, "'scalebraod'");
  contains(typo, "si.toml line 3");
  contains(typo, "'scalebroad'");
  contains(refusal(head + "[flags]\nisotope = true\n"), "'isotopes'");
  contains(refusal("kind = \"thermal\"\ndirektory = \".\"\n"), "directory is required");
  contains(refusal(head + "drectory = \"x\"\n"), "'directory'");
  contains(refusal("kind = \"gw\"\ndirectory = \".\"\n"), "\"gw\" is not \"thermal\"");
  contains(refusal("kind = \"thermal\"\ndirectory = \"gone\"\n"), "no directory");
  contains(refusal(head + "natoms = 2\nnelements = 1\n[crystal]\nT = 300\n"), "&parameters");
  contains(refusal(head + "T = \n"), "line 3");
  contains(refusal(head + "natoms = 2\nnelements = 1\nT = \"hot\"\n"), "'t'");
  contains(refusal(head + "natoms = 2\nnelements = 1\nT = inf\n"), "finite");
  contains(refusal(head + "natoms = 2\nnelements = 1\nT = -3\n"), "above 0");
  contains(refusal(head + "natoms = 2\nnelements = 1\nT = 1979-05-27\n"), "'T' must be a number");
  contains(refusal(head + "natoms = 2\nnelements = 1\nT = 300\n"), "'ngrid' is required");
}

// Random changes to the bytes of a valid TOML deck: it is read or refused with a sentence, without
// any other exception.
TEST(DeckLayouts, TomlBrokenAtRandomIsReadOrRefused) {
  const std::string valid = "kind = \"thermal\"\ndirectory = \"" + example("silicon-sw").string() +
                            "\"\nngrid = [2, 2, 2]\nT = [200, 300.0]\nscalebroad = "
                            "0.5\nonlyharmonic = true\nsolver = \"cg\"\n"
                            "isotope_factors = [0, 1]\nisotopes = true\n[flags]\nconvergence = "
                            "true\n[job]\nname = \"x\"\n";
  ASSERT_EQ(refusal(valid), "");
  std::mt19937 random(31);
  int refused = 0;
  for (int seed = 0; seed < 300; ++seed) {
    std::string text = valid;
    for (int change = 0; change < 1 + seed % 3; ++change) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text.erase(at, 1 + random() % 5);
          break;
        case 1:
          text.insert(at, 1, static_cast<char>(random() % 256));
          break;
        case 2:
          text[at] = "0123456789-.=[]\"eE,\n"[random() % 20];
          break;
        default:
          std::swap(text[at], text[random() % text.size()]);
          break;
      }
    }
    const test::TemporaryDirectory place;
    write(place.path() / "si.toml", text);
    try {
      thermal::read_deck(place.path() / "si.toml", {});
    } catch (const InvalidInput& failure) {
      EXPECT_GT(std::string(failure.what()).size(), 10u);
      ++refused;
    }  // any other exception ends the test
  }
  EXPECT_GT(refused, 150);
}

TEST(DeckLayouts, TheShippedTomlExampleIsValid) {
  const auto report = make_thermal_task()->validate(
      {.path = example("silicon.toml"), .settings = {{"ngrid", "6 6 6"}}}, Device{});
  EXPECT_TRUE(report["ok"].get<bool>());
  EXPECT_EQ(report["plan"]["temperatures_k"], nlohmann::json({200.0, 300.0, 400.0}));
}

// A ShengBTE deck rewritten in the form of phono3py (cubic supercell, shuffled atoms, yaml and
// HDF5) gives an equal κ to 1e-8, the accuracy of the 15 digits in the yaml.
TEST(DeckLayouts, Phono3pyGivesTheSameConductivity) {
  const test::TemporaryDirectory place;
  const thermal::test::OwnDeck own;
  const thermal::test::PhonopyTwin twin(own, place.path(), true);
  write(place.path() / "deck.toml",
        "kind = \"thermal\"\ndirectory = \".\"\nngrid = [4, 4, 4]\nT = [150, 300]\nisotopes = "
        "false\n");
  const auto phono3py = run(place.path());
  const auto control = run(example("silicon-sw"), {"ngrid=4,4,4", "T=150,300"});
  EXPECT_EQ(phono3py["processes_3ph"], control["processes_3ph"]);
  for (const char* name : {"kappa_rta_w_per_mk", "kappa_w_per_mk"})
    for (int t = 0; t < 2; ++t)
      for (int i = 0; i < 3; ++i) {
        const double expected = control[name][t][i][i];
        EXPECT_NEAR(phono3py[name][t][i][i].get<double>(), expected, 1e-8 * expected) << name;
      }
  const auto report =
      make_thermal_task()->validate({.path = place.path(), .settings = {}}, Device{});
  EXPECT_TRUE(report["ok"].get<bool>());
}

// Text constants and sparse files of higher orders stand beside a yaml of phono3py. The second
// order comes from fc2.hdf5 or FORCE_CONSTANTS, the others from FORCE_CONSTANTS_3RD and _4TH.
TEST(DeckLayouts, SparseAndTextConstantsStandBesideAYaml) {
  const thermal::test::OwnDeck own;
  const std::vector<std::string> four{"ngrid=3,3,3", "T=300", "four_phonon=T", "scalebroad=0.5"};
  const double expected = run(example("silicon-sw"), four)["kappa_w_per_mk"][0][0][0].get<double>();
  for (const bool compact : {true, false}) {
    const test::TemporaryDirectory place;
    const thermal::test::PhonopyTwin twin(own, place.path(), compact);
    fs::rename(place.path() / "phono3py_disp.yaml", place.path() / "phono3py_params.yaml");
    for (const char* name : {"FORCE_CONSTANTS_3RD", "FORCE_CONSTANTS_4TH"})
      fs::copy(example("silicon-sw") / name, place.path() / name);
    auto settings = four;
    settings.push_back("isotopes=F");
    // The third order of fc3.hdf5, then that of the sparse file.
    for (const bool dense : {true, false}) {
      if (!dense) fs::remove(place.path() / "fc3.hdf5");
      EXPECT_NEAR(run(place.path(), settings)["kappa_w_per_mk"][0][0][0].get<double>(), expected,
                  1e-8 * expected);
    }
    const H5Reader fc2(place.path() / "fc2.hdf5");
    const auto values = fc2.doubles("/force_constants");
    const auto shape = fc2.shape("/force_constants");
    const auto p2s = fc2.integers("/p2s_map");
    std::ostringstream text;
    text.precision(17);
    text << shape[0] << " " << shape[1] << "\n";
    for (std::int64_t i = 0; i < shape[0]; ++i)
      for (std::int64_t j = 0; j < shape[1]; ++j) {
        text << (compact ? p2s[static_cast<std::size_t>(i)] : i) + 1 << " " << j + 1 << "\n";
        for (int e = 0; e < 9; ++e)
          text << values[static_cast<std::size_t>((i * shape[1] + j) * 9 + e)]
               << (e % 3 == 2 ? "\n" : " ");
      }
    fs::remove(place.path() / "fc2.hdf5");
    write(place.path() / "FORCE_CONSTANTS", text.str());
    EXPECT_NEAR(run(place.path(), settings)["kappa_w_per_mk"][0][0][0].get<double>(), expected,
                1e-8 * expected);
  }
}

// One crystal in Å and eV, in bohr and Ry, and in bohr and hartree gives one κ to 1e-10, the
// rounding of the factors. Read as Å and eV, the second and third would be crystals of another
// size.
TEST(DeckLayouts, UnitsOfTheCalculatorGiveOneConductivity) {
  constexpr double kBohr_angstrom = 0.529177210903;  // CODATA 2018
  constexpr double kHartree_per_bohr2 = 27.211386245988 / (kBohr_angstrom * kBohr_angstrom);
  const thermal::test::OwnDeck own;
  const auto kappa = [&](const thermal::test::TwinUnits& units) {
    const test::TemporaryDirectory place;
    const thermal::test::PhonopyTwin twin(own, place.path(), true, units);
    return run(place.path(), {"ngrid=4,4,4", "T=300"})["kappa_w_per_mk"][0][0][0].get<double>();
  };
  const double vasp = kappa({});
  EXPECT_NEAR(kappa({"phono3py:\n  calculator: qe\n", kBohr_angstrom, 0.5 * kHartree_per_bohr2}),
              vasp, 1e-10 * vasp);
  EXPECT_NEAR(kappa({"phono3py:\n  calculator: elk\n", kBohr_angstrom, kHartree_per_bohr2}), vasp,
              1e-10 * vasp);
}

}  // namespace
}  // namespace quasi
