// Tests decks that cannot be run. Each must be refused with a sentence that gives the reason and
// the remedy (docs/theory/thermal.md 12.4).

#include <gtest/gtest.h>

#include "tests/support/reference_data.hpp"
#include "tests/thermal/decks/small_deck.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"

namespace quasi::thermal {
namespace {

using test::expect_refused;
using test::read;
using test::SmallDeck;
using test::write;

TEST(DeckFailures, TheSmallDeckIsValid) {
  const SmallDeck deck;
  const Deck loaded = deck.load();
  EXPECT_EQ(loaded.control.temperatures_k, std::vector<double>{300.0});
  EXPECT_EQ(loaded.third_order.n_blocks(), 2);
  EXPECT_EQ(loaded.digest_sha256.size(), 64u);
  EXPECT_NE(loaded.digest_sha256, deck.load({{"T", "301"}}).digest_sha256);
}

TEST(DeckFailures, UnknownKeyNamesTheNearest) {
  const SmallDeck deck;
  deck.replace("CONTROL", "scalebroad", "scalbroad");
  expect_refused([&] { deck.load(); }, {"scalbroad", "scalebroad", "line 12"});
  expect_refused([&] { SmallDeck().load({{"broadenin", "symmetric"}}); }, {"--set", "broadening"});
}

TEST(DeckFailures, WordsOfPhono3pyNameTheKey) {
  expect_refused(
      [] {
        SmallDeck().load({{"mesh", "4 4 4"}});
      },
      {"--set", "phono3py's 'mesh' is 'ngrid' here"});
  expect_refused([] { SmallDeck().load({{"tmax", "400"}}); }, {"'tmax' is 't_max' here"});
}

TEST(DeckFailures, WrongGroupTypeOrCount) {
  const SmallDeck deck;
  expect_refused([&] { deck.load({{"ngrid", "4 4 4"}, {"scell(4)", "1"}}); }, {"scell", "outside"});
  expect_refused([&] { deck.load({{"ngrid", "4 4 4 4"}}); }, {"ngrid", "takes 3"});
  expect_refused([&] { deck.load({{"ngrid", "4 0 4"}}); }, {"ngrid", "between 1 and"});
  expect_refused(
      [&] {
        deck.load({{"ngrid", "4"}});
      },
      {"ngrid", "takes 3 values, got 1", "ngrid(1)"});
  expect_refused([&] { deck.load({{"lattvec", "0 1 1"}}); }, {"lattvec", "takes 9 values, got 3"});
  EXPECT_EQ(deck.load({{"ngrid(2)", "4"}}).control.mesh, (Index3{2, 4, 2}));
  expect_refused([&] { deck.load({{"T", "abc"}}); }, {"'t'", "real", "abc"});
  expect_refused([&] { deck.load({{"convergence", "maybe"}}); }, {"convergence", "logical"});
  expect_refused([&] { deck.load({{"solver", "newton"}}); }, {"solver", "cg, gmres"});
  deck.replace("CONTROL", "&parameters\n", "&parameters\n espresso=.true.\n");
  expect_refused([&] { deck.load(); }, {"espresso", "&flags"});
}

TEST(DeckFailures, ImpossibleCombinations) {
  const SmallDeck deck;
  expect_refused(
      [&] {
        deck.load({{"num_sample_process_3ph", "1000"}});
      },
      {"num_sample_process_3ph", "convergence"});
  expect_refused(
      [&] {
        deck.load({{"num_sample_process_4ph", "1000"}});
      },
      {"num_sample_process_4ph", "four_phonon"});
  expect_refused(
      [&] {
        deck.load({{"four_phonon_iteration", "T"}});
      },
      {"four_phonon_iteration", "four_phonon"});
  expect_refused([&] { deck.load({{"T", "0"}}); }, {"temperatures", "above 0, got 0 K", "thermal"});
  expect_refused(
      [&] {
        deck.load({{"autoisotopes", "F"}});
      },
      {"'masses(1)'", "because autoisotopes = .false."});
  expect_refused([&] { deck.load({{"T", "300,-5"}}); }, {"temperatures", "-5"});
  expect_refused([&] { deck.load({{"scell", "1 0 1"}}); }, {"scell"});
  expect_refused(
      [&] {
        deck.load({{"solver", "cg"}, {"compat", "fourphonon"}});
      },
      {"cg", "symmetric"});
  expect_refused([&] { deck.load({{"nanowires", "T"}}); }, {"nanowires", "norientations"});
  expect_refused(
      [&] {
        deck.load({{"nac_method", "gonze-lee"}, {"espresso", "T"}});
      },
      {"nac_method", "gonze-lee", "espresso.ifc2", "auto or none"});
  EXPECT_FALSE(deck.load({{"nac_method", "none"}}).control.nonanalytic);
  expect_refused(
      [&] {
        deck.load({{"target_kappa_error", "0.1"}});
      },
      {"target_kappa_error", "convergence"});
  expect_refused(
      [&] {
        deck.load(
            {{"num_sample_process_3ph", "1000"}, {"convergence", "F"}, {"precision", "mixed"}});
      },
      {"precision", "sampled"});
  expect_refused(
      [&] {
        deck.load({{"nanowires", "T"},
                   {"norientations", "1"},
                   {"orientations", "1 0 0"},
                   {"boundary_length_nm", "9"}});
      },
      {"nanowires", "boundary_length_nm"});
  expect_refused(
      [&] {
        deck.load({{"strategy", "list-host"}});
      },
      {"strategy", "factorised", "list-host", "bench/published_strategies.sh"});
  expect_refused([&] { deck.load({{"grain_sizes_nm", "10 0"}}); }, {"grain_sizes_nm", "above 0"});
  expect_refused(
      [&] {
        deck.load({{"isotope_factors", "0 1"}, {"isotopes", "F"}});
      },
      {"isotope_factors", "isotopes"});
  deck.replace("CONTROL", "types=2*1 ", " ");
  expect_refused([&] { deck.load(); }, {"types(1)", "required"});
}

// A temperature above the limit is refused with the limit, and one just below it is accepted.
TEST(DeckFailures, TemperaturesThatNoCrystalSurvives) {
  const SmallDeck deck;
  for (const char* given : {"1e9", "100001", "300,1e6"})
    expect_refused(
        [&] {
          deck.load({{"T", given}});
        },
        {"'T'", "at 100000 K", "got 1", "melting point"});
  expect_refused(
      [&] {
        deck.load({{"T_min", "100"}, {"T_max", "2e5"}, {"T_step", "50000"}});
      },
      {"'T'", "at 100000 K", "got 100100 K"});
  EXPECT_EQ(deck.load({{"T", "1e5"}}).control.temperatures_k, std::vector<double>{1e5});
}

// An error that involves several keys, or that shows only after all keys are read, names their
// origin: the file and line, or --set.
TEST(DeckFailures, MessagesSayWhereAKeyCameFrom) {
  const auto message = [](const SmallDeck& deck,
                          const std::vector<Setting>& settings) -> std::string {
    try {
      deck.load(settings);
    } catch (const InvalidInput& failure) {
      return failure.what();
    }
    return "accepted";
  };
  const SmallDeck valid;
  const std::vector<std::vector<Setting>> impossible{
      {{"T", "1e9"}},
      {{"T_min", "300"}, {"T_max", "100"}, {"T_step", "10"}},
      {{"T_min", "100"}, {"T_max", "2e5"}, {"T_step", "50000"}},
      {{"T_min", "1"}, {"T_max", "100"}, {"T_step", "1e-9"}},
      {{"ngrid", "1024 1024 1024"}},
      {{"symprec", "7"}},
      {{"positions(1,2)", "1e6"}},
      {{"solver", "cg"}, {"broadening", "adaptive-max"}},
      {{"strategy", "list-host"}},
      {{"nanowires", "T"}},
      {{"four_phonon_iteration", "T"}, {"four_phonon", "F"}},
      {{"grain_sizes_nm", "10"}, {"boundary_length_nm", "5"}},
      {{"rmin", "10"}, {"rmax", "5"}},
      {{"lattvec", "1 0 0 1 0 0 0 0 1"}},
      {{"elements", "'Xx'"}},
      {{"positions(:,2)", "0 0 0"}}};
  for (const auto& settings : impossible) {
    const std::string said = message(valid, settings);
    EXPECT_TRUE(said.starts_with("--set ")) << said;
  }
  const SmallDeck hot;
  hot.replace("CONTROL", "T=300.", "T=1d9");
  EXPECT_TRUE(message(hot, {}).starts_with("CONTROL line 12: ")) << message(hot, {});
  EXPECT_EQ(message(hot, {{"T", "300"}}), "accepted");
  const std::string both = message(valid, {{"num_sample_process_3ph", "100"}});
  EXPECT_TRUE(both.starts_with("--set num_sample_process_3ph=100, CONTROL line ")) << both;
  const SmallDeck bare;
  bare.replace("CONTROL", "T=300.", "");
  EXPECT_TRUE(message(bare, {}).starts_with("CONTROL: 'T' is required")) << message(bare, {});
}

TEST(DeckFailures, TdepAndEwaldNeedTheFilesOfTdep) {
  const SmallDeck deck;
  expect_refused([&] { deck.load({{"tdep", ".true."}}); }, {"tdep", "infile.forceconstant"});
  expect_refused([&] { deck.load({{"Ewald", "0.5"}}); }, {"ewald", "TDEP"});
  EXPECT_NO_THROW(deck.load({{"tdep", ".false."}, {"Ewald", "-1"}}));
}

TEST(DeckFailures, AFileOfTheDeckIsNotTheDeck) {
  const SmallDeck deck;
  expect_refused([&] { read_deck(deck.path() / "CONTROL", {}); },
                 {"CONTROL", "directory", deck.path().string()});
}

TEST(DeckFailures, MissingAndTruncatedFiles) {
  const SmallDeck deck;
  const std::string third = read(deck.path() / "FORCE_CONSTANTS_3RD");
  write(deck.path() / "FORCE_CONSTANTS_3RD", third.substr(0, third.size() / 2));
  expect_refused([&] { deck.load(); }, {"FORCE_CONSTANTS_3RD", "truncated"});
  std::filesystem::remove(deck.path() / "FORCE_CONSTANTS_3RD");
  expect_refused([&] { deck.load(); }, {"FORCE_CONSTANTS_3RD", "missing"});
  std::filesystem::remove(deck.path() / "FORCE_CONSTANTS_2ND");
  expect_refused([&] { deck.load(); }, {"FORCE_CONSTANTS_2ND"});
  std::filesystem::remove(deck.path() / "CONTROL");
  expect_refused([&] { deck.load(); }, {"CONTROL"});
}

TEST(DeckFailures, WrongSupercell) {
  const SmallDeck deck;
  expect_refused([&] { deck.load({{"scell", "2 1 1"}}); }, {"2 supercell atoms", "scell", "4"});
  const auto silicon = quasi::test::source_dir() / "examples/thermal/silicon";
  expect_refused(
      [&] {
        read_deck(silicon, {{"scell", "5 5 5"}});
      },
      {"6 6 6", "5 5 5", "espresso.ifc2"});
}

TEST(DeckFailures, CellVectorsThatAreNone) {
  const SmallDeck deck;
  deck.replace("FORCE_CONSTANTS_3RD", " 0.0 0.0 0.0\n", " 0.9 0.0 0.0\n");
  expect_refused([&] { deck.load(); }, {"lattice vector", "block 1", "0.05"});
}

TEST(DeckFailures, BrokenSumRulePrintsItsSize) {
  const SmallDeck deck;
  deck.replace("FORCE_CONSTANTS_3RD", "-0.305E+02", "-0.300E+02");
  expect_refused([&] { deck.load(); }, {"sum rule", "0.01639", "allow_broken_sum_rule"});
  EXPECT_NO_THROW(deck.load({{"allow_broken_sum_rule", "T"}}));
}

// The mistake of the published silicon deck: atom 2 at (1/4,1/4,1/4) of the primitive cell.
TEST(DeckFailures, InconsistentPosition) {
  const auto silicon = quasi::test::source_dir() / "examples/thermal/silicon";
  const std::vector<Setting> wrong{{"positions(:,2)", "0.25 0.25 0.25"}, {"ngrid", "4 4 4"}};
  expect_refused([&] { read_deck(silicon, wrong); },
                 {"positions", "atom 2", "allow_inconsistent_position"});
  auto anyway = wrong;
  anyway.push_back({"allow_inconsistent_position", "T"});
  const Deck deck = read_deck(silicon, anyway);
  SilentProgress silent;
  const Modes modes = solve_harmonic(deck.crystal, deck.second_order, deck.symmetry,
                                     deck.control.harmonic_options(), silent);
  EXPECT_GT(modes.star_deviation_rad_ps, 0.3);
  EXPECT_FALSE(modes.warnings.empty());
  // Without the header of espresso.ifc2 the broken symmetry of ω reveals the mistake.
  Control control = deck.control;
  control.allow_inconsistent_position = false;
  expect_refused(
      [&] {
        solve_harmonic(deck.crystal, deck.second_order, deck.symmetry, control.harmonic_options(),
                       silent);
      },
      {"positions", "allow_inconsistent_position", "rad/ps"});
}

TEST(DeckFailures, ImaginaryModes) {
  const SmallDeck small;
  small.replace("FORCE_CONSTANTS_2ND", "1 1\n 13.0", "1 1\n -13.0");
  small.replace("FORCE_CONSTANTS_2ND", "2 2\n 13.0", "2 2\n -13.0");
  const Deck deck = small.load({{"symmetry", "F"}, {"allow_inconsistent_position", "T"}});
  SilentProgress silent;
  expect_refused(
      [&] {
        solve_harmonic(deck.crystal, deck.second_order, deck.symmetry,
                       deck.control.harmonic_options(), silent);
      },
      {"imaginary", "q = (", "allow_imaginary"});
  Control control = deck.control;
  control.allow_imaginary = true;
  EXPECT_FALSE(solve_harmonic(deck.crystal, deck.second_order, deck.symmetry,
                              control.harmonic_options(), silent)
                   .warnings.empty());
}

// If the symmetry does not map a mesh onto itself, the offending operations are dropped and listed.
TEST(DeckFailures, MeshWithoutTheSymmetry) {
  const auto silicon = quasi::test::source_dir() / "examples/thermal/silicon";
  const Deck deck = read_deck(silicon, {{"ngrid", "4 4 3"}});
  ASSERT_FALSE(deck.warnings.empty());
  EXPECT_NE(deck.warnings.front().find("operations are dropped: ["), std::string::npos)
      << deck.warnings.front();
}

// A file whose blocks are listed twice doubles the constants. It is refused unless the deck asks
// for the sum. With compat = "fourphonon" it is a warning, because FourPhonon adds them.
TEST(DeckFailures, RepeatedBlocksAreRefused) {
  const test::SmallDeck deck;
  const std::string text = test::read(deck.path() / "FORCE_CONSTANTS_3RD");
  const std::string blocks = text.substr(text.find('\n') + 1);
  test::write(deck.path() / "FORCE_CONSTANTS_3RD", "4\n" + blocks + blocks);
  expect_refused([&] { deck.load(); },
                 {"FORCE_CONSTANTS_3RD", "2 of 4 blocks", "limit 1 %", "allow_repeated_blocks"});
  for (const Setting& setting :
       {Setting{"allow_repeated_blocks", "T"}, Setting{"compat", "fourphonon"}}) {
    const Deck loaded = deck.load({setting});
    EXPECT_EQ(loaded.third_order.n_blocks(), 2);
    EXPECT_EQ(loaded.third_order.tensor[0], 61.0);
    ASSERT_EQ(loaded.warnings.size(), 1u);
    EXPECT_NE(loaded.warnings[0].find("2 of 4 blocks"), std::string::npos) << loaded.warnings[0];
  }
}

}  // namespace
}  // namespace quasi::thermal
