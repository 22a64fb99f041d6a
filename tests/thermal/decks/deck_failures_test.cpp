// Decks that cannot be run, each with the sentence that says why and what to do
// (docs/theory/thermal.md 12.4), and valid decks broken at random.

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <sstream>

#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/input/deck.hpp"
#include "workers/thermal/input/namelist.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"

namespace quasi::thermal {
namespace {

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  EXPECT_TRUE(in) << file;
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

/// A small valid deck in a fresh directory: two atoms, one cell, a few blocks.
class SmallDeck {
 public:
  SmallDeck() {
    write(path() / "CONTROL",
          "&allocations\n nelements=1, natoms=2, ngrid(:)=2 2 2\n/\n"
          "&crystal\n lfactor=0.27, lattvec(:,1)=0 1 1, lattvec(:,2)=1 0 1, lattvec(:,3)=1 1 0,\n"
          " elements=\"Si\", types=2*1 ! both silicon\n positions(:,1)=3*0.0\n positions(:,2)=0.25 "
          "0.25 0.25\n scell(:)=1 1 1\n/\n"
          "&parameters\n T=300. scalebroad=1.d0\n/\n&flags\n nonanalytic=.false. "
          "convergence=.T.\n&end\n");
    std::string second = "2\n";
    for (int p = 1; p <= 2; ++p)
      for (int q = 1; q <= 2; ++q) {
        second += std::to_string(p) + " " + std::to_string(q) + "\n";
        for (int a = 0; a < 3; ++a) {
          for (int b = 0; b < 3; ++b) second += a != b ? " 0.0" : p == q ? " 13.0" : " -13.0";
          second += "\n";
        }
      }
    write(path() / "FORCE_CONSTANTS_2ND", second);
    std::string third = "2\n";
    for (int block = 1; block <= 2; ++block) {
      third += "\n" + std::to_string(block) + "\n 0.0 0.0 0.0\n 0.0 0.0 0.0\n 1 1 " +
               std::to_string(block) + "\n";
      for (int a = 1; a <= 3; ++a)
        for (int b = 1; b <= 3; ++b)
          for (int c = 1; c <= 3; ++c)
            third += std::to_string(a) + " " + std::to_string(b) + " " + std::to_string(c) +
                     (block == 1 ? " 30.5\n" : " -0.305E+02\n");
    }
    write(path() / "FORCE_CONSTANTS_3RD", third);
  }
  const std::filesystem::path& path() const { return directory_.path(); }
  void replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = read(path() / file);
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write(path() / file, text.replace(at, from.size(), to));
  }
  Deck load(const std::vector<Setting>& settings = {}) const { return read_deck(path(), settings); }

 private:
  quasi::test::TemporaryDirectory directory_;
};

/// The deck is refused with a message that holds every one of the words.
void expect_refused(const std::function<void()>& body, const std::vector<std::string>& words) {
  try {
    body();
    FAIL() << "accepted; expected a refusal naming " << words.front();
  } catch (const InvalidInput& failure) {
    for (const std::string& word : words)
      EXPECT_NE(std::string(failure.what()).find(word), std::string::npos)
          << failure.what() << "\n lacks: " << word;
  }
}

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
  expect_refused([&] { deck.load({{"T", "0"}}); }, {"temperatures", "0"});
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
        deck.load({{"precision", "mixed"}, {"strategy", "list-host"}});
      },
      {"precision", "factorised"});
  expect_refused([&] { deck.load({{"grain_sizes_nm", "10 0"}}); }, {"grain_sizes_nm", "above 0"});
  expect_refused(
      [&] {
        deck.load({{"isotope_factors", "0 1"}, {"isotopes", "F"}});
      },
      {"isotope_factors", "isotopes"});
  deck.replace("CONTROL", "types=2*1 ", " ");
  expect_refused([&] { deck.load(); }, {"types(1)", "required"});
}

// Hotter than anything that holds together: the limit is named, and what is just below it is taken.
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

// What is found out from several keys, or after all are read, names where they stand: the file and
// its line, or --set.
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
      {{"precision", "mixed"}, {"strategy", "list-host"}},
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

TEST(DeckFailures, TdepAndEwaldAreNotRead) {
  const SmallDeck deck;
  expect_refused([&] { deck.load({{"tdep", ".true."}}); }, {"tdep", "FORCE_CONSTANTS_2ND"});
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

// The published silicon deck's mistake: atom 2 at (1/4,1/4,1/4) of the primitive cell.
TEST(DeckFailures, InconsistentPosition) {
  const auto silicon = quasi::test::source_dir() / "examples/thermal/silicon";
  const std::vector<Setting> wrong{{"positions(:,2)", "0.25 0.25 0.25"}, {"ngrid", "4 4 4"}};
  expect_refused([&] { read_deck(silicon, wrong); },
                 {"positions", "atom 2", "allow_inconsistent_position"});
  auto anyway = wrong;
  anyway.push_back({"allow_inconsistent_position", "T"});
  const Deck deck = read_deck(silicon, anyway);
  SilentProgress silent;
  const Modes modes =
      solve_harmonic(deck.crystal, deck.second_order, deck.symmetry, deck.control, silent);
  EXPECT_GT(modes.star_deviation_rad_ps, 0.3);
  EXPECT_FALSE(modes.warnings.empty());
  // Without the header of espresso.ifc2 to compare with, the broken symmetry of ω gives it away.
  Control control = deck.control;
  control.allow_inconsistent_position = false;
  expect_refused(
      [&] { solve_harmonic(deck.crystal, deck.second_order, deck.symmetry, control, silent); },
      {"positions", "allow_inconsistent_position", "rad/ps"});
}

TEST(DeckFailures, ImaginaryModes) {
  const SmallDeck small;
  small.replace("FORCE_CONSTANTS_2ND", "1 1\n 13.0", "1 1\n -13.0");
  small.replace("FORCE_CONSTANTS_2ND", "2 2\n 13.0", "2 2\n -13.0");
  const Deck deck = small.load({{"symmetry", "F"}, {"allow_inconsistent_position", "T"}});
  SilentProgress silent;
  expect_refused(
      [&] { solve_harmonic(deck.crystal, deck.second_order, deck.symmetry, deck.control, silent); },
      {"imaginary", "q = (", "allow_imaginary"});
  Control control = deck.control;
  control.allow_imaginary = true;
  EXPECT_FALSE(solve_harmonic(deck.crystal, deck.second_order, deck.symmetry, control, silent)
                   .warnings.empty());
}

// A mesh that the symmetry does not map onto itself: operations are dropped and listed.
TEST(DeckFailures, MeshWithoutTheSymmetry) {
  const auto silicon = quasi::test::source_dir() / "examples/thermal/silicon";
  const Deck deck = read_deck(silicon, {{"ngrid", "4 4 3"}});
  ASSERT_FALSE(deck.warnings.empty());
  EXPECT_NE(deck.warnings.front().find("operations are dropped: ["), std::string::npos)
      << deck.warnings.front();
}

TEST(Namelist, ReadsWhatFortranWrites) {
  const auto read_one = [](const std::string& line) {
    return parse_namelists("&a " + line + " /", "test");
  };
  EXPECT_EQ(read_one("x=1,,3")[0].values.size(), 3u);
  EXPECT_FALSE(read_one("x=1,,3")[0].values[1].text.has_value());
  EXPECT_EQ(read_one("x = 3*0.5 2*'a b'")[0].values.size(), 5u);
  EXPECT_EQ(*read_one("x=\"it\"\"s\"")[0].values[0].text, "it\"s");
  EXPECT_EQ(read_one("Y(2:3,:)=1\tZ=.TRUE.")[0].subscripts.size(), 2u);
  const NamelistAssignment a = read_one("x=1.d0 1E-3 +.5 -2")[0];
  EXPECT_EQ(namelist_real(a.values[0], a), 1.0);
  EXPECT_EQ(namelist_real(a.values[1], a), 1e-3);
  EXPECT_EQ(namelist_real(a.values[2], a), 0.5);
  EXPECT_EQ(namelist_real(a.values[3], a), -2.0);
  EXPECT_THROW(parse_namelists("&a x=1", "test"), InvalidInput);
  EXPECT_THROW(parse_namelists("&a x=999999999*1 /", "test"), InvalidInput);
  // T_min … T_max in steps; T_max itself when the last step overshoots by more than 1 K.
  const SmallDeck deck;
  deck.replace("CONTROL", "T=300.", "T_min=100 T_max=450 T_step=100");
  EXPECT_EQ(deck.load().control.temperatures_k, (std::vector<double>{100, 200, 300, 400, 450}));
  EXPECT_EQ(deck.load({{"T", "77,300"}}).control.temperatures_k, (std::vector<double>{77, 300}));
}

/// One random change to a text.
std::string mutate(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t n) {
    return static_cast<std::size_t>(random() % std::max<std::size_t>(n, 1));
  };
  static const char* const kTokens[] = {"nan",    "1e999",   "-1",       "99999999999999999999",
                                        "0",      "&",       "/",        "=",
                                        "(",      ")",       "\"",       "'",
                                        "*",      ",,",      "1000",     "\xff\xfe",
                                        ".true.", "T_min=1", "natoms=3", "1d400",
                                        "-inf",   "\n\n",    "!"};
  switch (below(6)) {
    case 0:
      text[below(text.size())] = static_cast<char>(random() % 256);
      break;
    case 1:
      text.erase(below(text.size()), 1 + below(40));
      break;
    case 2:
      text.insert(below(text.size()), kTokens[below(std::size(kTokens))]);
      break;
    case 3:
      text.resize(below(text.size()));
      break;
    case 4: {  // a number becomes something else
      const auto at = text.find_first_of("0123456789", below(text.size()));
      if (at != std::string::npos) text.replace(at, 1, kTokens[below(std::size(kTokens))]);
      break;
    }
    default: {  // two pieces change places
      const std::size_t a = below(text.size()), b = below(text.size());
      std::swap(text[a], text[b]);
      text.insert(below(text.size()), text.substr(b, below(30)));
    }
  }
  return text.empty() ? " " : text;
}

// 500 refused decks, none of which may do anything but throw InvalidInput with a message that names
// a line, a key or a file. Seeds are printed with a failure: QUASI_FUZZ_SEED repeats one.
TEST(DeckFailures, BrokenAtRandomTheySayWhere) {
  const char* given = std::getenv("QUASI_FUZZ_SEED");
  const unsigned first_seed = given != nullptr ? static_cast<unsigned>(std::stoul(given)) : 20251u;
  const SmallDeck deck;
  const char* const files[] = {"CONTROL", "FORCE_CONSTANTS_2ND", "FORCE_CONSTANTS_3RD"};
  std::map<std::string, std::string> whole;
  for (const char* file : files) whole[file] = read(deck.path() / file);
  int refused = 0;
  unsigned seed = first_seed;
  for (; refused < 500 && seed < first_seed + 5000; ++seed) {
    std::mt19937 random(seed);
    const char* file = files[random() % 3];
    std::string text = whole[file];
    for (unsigned n = 1 + random() % 3; n > 0; --n) text = mutate(std::move(text), random);
    write(deck.path() / file, text);
    try {
      deck.load();
    } catch (const InvalidInput& failure) {
      ++refused;
      const std::string message = failure.what();
      EXPECT_TRUE(message.find("line ") != std::string::npos ||
                  message.find('\'') != std::string::npos ||
                  message.find("FORCE_CONSTANTS") != std::string::npos)
          << "seed " << seed << ": " << message;
      EXPECT_GT(message.size(), 15u) << "seed " << seed;
    } catch (const std::exception& failure) {
      ADD_FAILURE() << "seed " << seed << ", " << file << ": " << failure.what();
    }
    write(deck.path() / file, whole[file]);
    if (given != nullptr) break;
  }
  if (given == nullptr) {
    EXPECT_EQ(refused, 500);
  }
  std::printf("    %d refused of %u decks, seeds %u to %u\n", refused, seed - first_seed,
              first_seed, seed - 1);
}

}  // namespace
}  // namespace quasi::thermal
