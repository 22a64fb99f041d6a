#include "workers/mosfet/input/deck.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"

namespace quasi::mosfet {
namespace {

Deck parse(const std::string& text, const std::vector<Setting>& settings = {}) {
  return parse_deck(text, settings, "deck.toml", ".");
}

std::string error_of(const std::string& text, const std::vector<Setting>& settings = {}) {
  try {
    parse(text, settings);
  } catch (const InvalidInput& failure) {
    return failure.what();
  }
  return "no error";
}

TEST(Deck, DefaultsAreTheStandardDevice) {
  const Deck deck = parse("kind = \"mosfet\"");
  EXPECT_EQ(deck.mesh.nx, 65);
  EXPECT_EQ(deck.mesh.nphi, 48);
  EXPECT_DOUBLE_EQ(deck.doping.contact_nm3, 0.1);
  EXPECT_DOUBLE_EQ(deck.mesh.wmax_ev, 1.0);  // V_DS + 0.6 exceeds 0.9
  ASSERT_EQ(deck.valleys.size(), 3u);
  EXPECT_EQ(deck.valleys[0].mx_m0, 0.98);
  EXPECT_EQ(deck.valleys[2].mz_m0, 0.98);
  ASSERT_EQ(deck.scattering.processes.size(), 7u);
  EXPECT_DOUBLE_EQ(deck.scattering.processes[3].energy_ev, 0.0612);
  EXPECT_DOUBLE_EQ(deck.scattering.processes[3].coupling_ev_per_nm, 110.0);
}

TEST(Deck, SweepIsTheProductOfItsTwoLists) {
  const Deck deck = parse("[bias]\nvgs = [0.0, 0.3, 0.6]\nvds = [0.05, 0.4]");
  ASSERT_EQ(deck.points.size(), 6u);
  EXPECT_EQ(deck.points[3].vgs_v, 0.3);
  EXPECT_EQ(deck.points[3].vds_v, 0.4);
}

TEST(Deck, SettingsOverrideTheFile) {
  const Deck deck = parse("[mesh]\nnx = 33", {{"mesh.nx", "129"}, {"run.mode", "equilibrium"}});
  EXPECT_EQ(deck.mesh.nx, 129);
  EXPECT_EQ(deck.run.mode, RunMode::kEquilibrium);
}

// Steady states have the beam scheme. The other modes and what the scheme lacks have weno.
TEST(Deck, TheSchemeFollowsFromTheMode) {
  const auto scheme = [](const char* text) { return parse(text).run.scheme; };
  EXPECT_EQ(scheme(""), StreamingScheme::kBeam);
  EXPECT_EQ(scheme("[run]\ntransport = \"ballistic\""), StreamingScheme::kBeam);
  EXPECT_EQ(scheme("[run]\nscheme = \"weno\""), StreamingScheme::kWeno);
  for (const char* text :
       {"[run]\nmode = \"transient\"", "[run]\nmode = \"mobility\"",
        "[run]\nmode = \"equilibrium\"", "[run]\ntransport = \"drift-diffusion\"",
        "[scattering]\nscheme = \"paper\""}) {
    EXPECT_EQ(scheme(text), StreamingScheme::kWeno) << text;
  }
}

// A key that weno alone has chooses weno, and the deck notes it. With a named beam scheme the deck
// notes that the key has no effect.
TEST(Deck, AKeyOfWenoAloneChoosesWeno) {
  for (const char* text : {"[mesh]\nnw = 24", "[run]\ncfl = 0.5", "[mesh]\nrange = \"full\""}) {
    SCOPED_TRACE(text);
    const Deck deck = parse(text);
    EXPECT_EQ(deck.run.scheme, StreamingScheme::kWeno);
    ASSERT_EQ(deck.notes.size(), 1u);
    EXPECT_NE(deck.notes[0].find("run.scheme = \"weno\" follows from "), std::string::npos);
    EXPECT_TRUE(parse(text, {{"run.scheme", "weno"}}).notes.empty());
    const Deck beam = parse(text, {{"run.scheme", "beam"}});
    EXPECT_EQ(beam.run.scheme, StreamingScheme::kBeam);
    ASSERT_EQ(beam.notes.size(), 1u);
    EXPECT_NE(beam.notes[0].find(" has no effect with run.scheme = \"beam\""), std::string::npos);
  }
  EXPECT_NE(parse("[mesh]\nnw = 24").notes[0].find("mesh.nw"), std::string::npos);
  const std::string transient = "[run]\nmode = \"transient\"\ncfl = 0.5\n";
  EXPECT_TRUE(parse(transient + "[mesh]\nnw = 24").notes.empty());
  const std::vector<Setting> beam{{"run.scheme", "beam"}};
  EXPECT_TRUE(parse(transient, beam).notes.empty());
  EXPECT_NE(parse(transient + "[mesh]\nnw = 24", beam).notes.at(0).find("mesh.nw has no effect"),
            std::string::npos);
}

// The published set is that of [mantas2020]. Every key that it sets can be set beside it.
TEST(Deck, ParametersChooseThePublishedSetOrThatOfFilms) {
  const auto acoustic_ev = [](const Deck& deck) {
    return deck.scattering.processes[0].coupling_ev_per_nm;
  };
  const Deck films = parse("");
  EXPECT_EQ(films.parameters, ParameterSet::kFilms);
  EXPECT_EQ(acoustic_ev(films), 14.6);
  EXPECT_TRUE(films.neutral_inflow);
  EXPECT_EQ(acoustic_ev(parse("parameters = \"films\"")), 14.6);
  const Deck paper = parse("parameters = \"paper\"");
  EXPECT_EQ(paper.parameters, ParameterSet::kPaper);
  EXPECT_EQ(acoustic_ev(paper), 9.0);
  EXPECT_FALSE(paper.neutral_inflow);
  const Deck mixed = parse(
      "parameters = \"paper\"\n[scattering]\nacoustic_ev = 12.0\n[contact]\ninflow = \"neutral\"");
  EXPECT_EQ(acoustic_ev(mixed), 12.0);
  EXPECT_TRUE(mixed.neutral_inflow);
  EXPECT_FALSE(parse("[contact]\ninflow = \"fixed\"").neutral_inflow);
  const std::string message = error_of("parameters = \"papr\"");
  EXPECT_NE(message.find("did you mean \"paper\""), std::string::npos) << message;
}

// With Maxwell statistics the mobility of Brooks and Herring rises with the doping beyond
// 1e19 cm⁻³. A deck notes it. The default model falls with either statistics.
TEST(Deck, ImpuritiesBeyondMaxwellStatisticsGetANote) {
  EXPECT_TRUE(parse("[scattering]\nimpurities = true\n").notes.empty());
  const std::string impurities =
      "[scattering]\nimpurities = true\nimpurity_model = \"brooks-herring\"\n";
  const Deck deck = parse(impurities);
  ASSERT_EQ(deck.notes.size(), 1u);
  EXPECT_EQ(deck.notes[0],
            "scattering.impurities is too weak beyond 1e19 cm-3 with Maxwell statistics, and the "
            "doping is up to 1e+20 cm-3; use statistics.kind = \"fermi\"");
  EXPECT_TRUE(parse(impurities + "[doping]\ncontact_cm3 = 1e19\n").notes.empty());
  EXPECT_TRUE(parse(impurities + "[statistics]\nkind = \"fermi\"\n").notes.empty());
  EXPECT_TRUE(parse("").notes.empty());
}

TEST(Deck, MeshThatMissesAnInterfaceNamesItsNeighbours) {
  const std::string message = error_of("[mesh]\nnx = 60");
  EXPECT_NE(message.find("33 and 65"), std::string::npos) << message;
  EXPECT_NE(error_of("[mesh]\nnz = 64").find("57 and 65"), std::string::npos)
      << error_of("[mesh]\nnz = 64");
}

TEST(Deck, SnapRoundsTheGeometryAndSaysSo) {
  const Deck deck = parse("[mesh]\nnx = 61\nsnap = true");
  ASSERT_EQ(deck.notes.size(), 3u);
  EXPECT_NE(deck.notes[1].find("geometry.channel_nm was rounded from 10 to "), std::string::npos)
      << deck.notes[1];
  EXPECT_NE(deck.notes[1].find(" %) for mesh.nx = 61"), std::string::npos) << deck.notes[1];
  EXPECT_NEAR(deck.geometry.length_nm(), 32.0, 1e-12);
  const double cell = deck.geometry.length_nm() / 60;
  EXPECT_NEAR(deck.geometry.source_nm / cell, std::round(deck.geometry.source_nm / cell), 1e-9);
}

TEST(Deck, OrientationKeepsTheDensityOfStates) {
  const Deck deck = parse("orientation = \"110\"");
  EXPECT_NEAR(deck.valleys[0].mx_m0 * deck.valleys[0].my_m0, 0.98 * 0.19, 1e-15);
  EXPECT_EQ(deck.valleys[0].mx_m0, deck.valleys[1].mx_m0);
}

struct BadDeck {
  const char* text;
  const char* must_contain;
};
void PrintTo(const BadDeck& deck, std::ostream* out) {
  *out << "deck to be refused for: " << deck.must_contain;
}

class Malformed : public testing::TestWithParam<BadDeck> {};

// A wrong deck is refused with the key, the value and the remedy before any computation.
TEST_P(Malformed, IsRefusedByName) {
  const std::string message = error_of(GetParam().text);
  EXPECT_NE(message.find(GetParam().must_contain), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Decks, Malformed,
    testing::Values(
        BadDeck{"[mesh]\nnx = ", "line 2"},
        // The parser asks if these letters are white space.
        BadDeck{"[mesh]\nnx = \xC3\xA9", "line 2"}, BadDeck{"[mesh]\n\xC5\x82 = 1", "line 2"},
        BadDeck{"[mseh]\nnx = 65", "did you mean 'mesh'"},
        BadDeck{"[mesh]\nnxx = 65", "did you mean 'nx'"},
        BadDeck{"kind = \"gw\"", "is not \"mosfet\""},
        BadDeck{"[mesh]\nnx = 65.5", "mesh.nx must be a whole number, got 65.5"},
        BadDeck{"convergence_study = true\n[run]\nmode = \"transient\"",
                "(--converge) needs run.mode"},
        BadDeck{"[mesh]\nnx = 5", "mesh.nx = 5 is outside"},
        BadDeck{"[mesh]\nnphi = 46", "nearest are 44 and 48"},
        BadDeck{"[mesh]\nsubbands = 0", "mesh.subbands = 0 is outside"},
        BadDeck{"[mesh]\nwmax_ev = \"big\"", "must be a number or \"auto\""},
        BadDeck{"[mesh]\nwmax_ev = -1.0", "mesh.wmax_ev = -1 is outside"},
        BadDeck{"[mesh]\nrange = \"full\"\nphi_flux = \"upwind\"", "needs range = \"half\""},
        BadDeck{"[geometry]\nchannel_nm = \"ten\"",
                "geometry.channel_nm must be a number, got 'ten'"},
        BadDeck{"[geometry]\nchannel_nm = -10.0", "geometry.channel_nm = -10 is outside"},
        BadDeck{"[geometry]\nsilicon_nm = nan", "must be finite"},
        BadDeck{"[geometry]\nchannel_nm = 10.1", "nearest admissible"},
        // Both axes are named at once, each with the lengths in cells and a size that would do.
        BadDeck{"[geometry]\nchannel_nm = 12.0\nsilicon_nm = 5.0",
                "mesh.nx = 65: the gate edges fall between nodes (geometry.source_nm = 11 nm is "
                "20.706 cells, geometry.channel_nm = 12 nm is 22.588 cells"},
        BadDeck{"[geometry]\nchannel_nm = 12.0\nsilicon_nm = 5.0", " and mesh.nz = "},
        BadDeck{"[doping]\ncontact_cm3 = 1e3", "doping.contact_cm3 = 1000 is outside"},
        BadDeck{"[doping]\nprofile = \"absent.csv\"", "cannot be opened"},
        BadDeck{"[material]\nml = 0.0", "material.ml = 0 is outside"},
        BadDeck{"[material]\ntemperature_k = -3", "material.temperature_k = -3 is outside"},
        BadDeck{"[scattering]\nenabled = [\"ac\", \"g4\"]", "names 'g4'"},
        BadDeck{"[scattering]\nenabled = [\"ac\", \"ac\"]", "twice"},
        BadDeck{"[scattering]\nscheme = \"balancd\"", "did you mean \"balanced\""},
        BadDeck{"[scattering]\nset = \"custom\"", "needs at least one [[scattering.process]]"},
        BadDeck{"[[scattering.process]]\nname = \"x\"", "needs set = \"custom\""},
        BadDeck{"[bias]\nvgs = []", "names no bias point"},
        BadDeck{"[bias]\nvgs = [50.0]", "holds 50, outside"},
        BadDeck{"[bias]\npoints = [[0.6]]", "list of pairs of numbers"},
        BadDeck{"[bias]\npoints = [[0.6, 0.1]]\nvgs = 0.6", "exclude each other"},
        BadDeck{"[run]\nmode = \"stedy\"", "did you mean \"steady\""},
        BadDeck{"[run]\ncfl = 1.5", "run.cfl = 1.5 is outside"},
        BadDeck{"[run]\nprecision = \"fp32\"", "is not offered"},
        BadDeck{"[output]\nfields = [\"curent\"]", "did you mean 'current'"},
        BadDeck{"[[valley]]\nmx = 0.2\nmy = 0.2", "mz is missing"},
        BadDeck{"[material]\nml = 0.92\n[[valley]]\nmx = 0.2\nmy = 0.2\nmz = 0.9",
                "material.ml = 0.92 is a mass of silicon's own valleys"},
        BadDeck{"[material]\nmt = 0.2\n[[valley]]\nmx = 0.2\nmy = 0.2\nmz = 0.9",
                "[[valley]] replaces them with mx, my and mz"},
        BadDeck{"[mesh]\nwmaxev = 1.0", "did you mean 'wmax_ev'"},
        BadDeck{"[statistics]\nkind = \"fermi\"\npauli = false",
                "statistics.pauli = false contradicts"},
        BadDeck{"[statistics]\npauli = true", "statistics.pauli = true needs kind = \"fermi\""},
        BadDeck{"[statistics]\nkind = \"fermi\"\n[scattering]\nscheme = \"paper\"",
                "needs scattering.scheme = \"balanced\""},
        BadDeck{"[scattering]\nscheme = \"paper\"\nimpurities = true",
                "has no impurities and no roughness"},
        BadDeck{"[scattering.roughness]\nheigth_nm = 0.3", "did you mean 'height_nm'"},
        BadDeck{"[scattering.roughness]\nheight_nm = 30.0",
                "scattering.roughness.height_nm = 30 is outside"},
        BadDeck{"[bias]\nwaveform_vgs = [[0.0, 0.0], [5.0, 0.1]]",
                "run.mode must be \"transient\""},
        BadDeck{"[run]\nmode = \"transient\"\n[bias]\nwaveform_vgs = [[5.0, 0.0], [5.0, 0.1]]",
                "times must be 0 or later and increase"},
        BadDeck{"[run]\nmode = \"transient\"\n[bias]\nwaveform_vds = [[0.0, 9.0]]", "outside ±2 V"},
        BadDeck{"[output]\npdf_at_fs = [10.0]", "needs run.mode = \"transient\""},
        BadDeck{"[run]\nmode = \"transient\"\nt_end_fs = 5.0\n[output]\npdf_at_fs = [10.0]",
                "lies after run.t_end_fs = 5"},
        BadDeck{"[run]\nmode = \"transient\"\ntransport = \"drift-diffusion\"",
                "is a steady solution"},
        BadDeck{"[run]\nmode = \"mobility\"\n[scattering]\nscheme = \"none\"",
                "the mobility comes from it"},
        BadDeck{"[run]\nmode = \"transient\"\nconverge = true",
                "run.converge = true needs run.mode = \"steady\""},
        BadDeck{"[contact]\ninflow = \"neutrl\"", "did you mean \"neutral\""},
        BadDeck{"[run]\nmode = \"transient\"\nplasma_damping = 1.0",
                "changes the way to the steady state"},
        BadDeck{"orientation = \"111\"", "is not one of"}));

// A point of a mode without drain bias has V_DS = 0, and any other drain bias is refused.
TEST(Deck, EquilibriumAndMobilityRefuseADrainBias) {
  for (const char* mode : {"equilibrium", "mobility"}) {
    const std::string run = std::string("[run]\nmode = \"") + mode + "\"\n";
    for (const BiasPoint& point : parse(run + "[bias]\nvgs = [0.2, 0.4]").points)
      EXPECT_EQ(point.vds_v, 0.0);
    EXPECT_EQ(parse(run + "[bias]\nvds = 0.0").points.size(), 1u);
    for (const char* bias : {"vds = [0.0, 0.4]", "points = [[0.2, 0.0], [0.2, 0.4]]"}) {
      const std::string message = error_of(run + "[bias]\n" + bias);
      EXPECT_NE(message.find("0.4 V, but run.mode = \"" + std::string(mode) +
                             "\" is without drain bias; set it to 0"),
                std::string::npos)
          << message;
    }
  }
  EXPECT_EQ(parse("").points[0].vds_v, 0.4);
}

TEST(Deck, APointThatIsGivenTwiceIsRefused) {
  for (const char* bias :
       {"vgs = [0.2, 0.3, 0.2]\nvds = 0.1", "points = [[0.2, 0.1], [0.3, 0.1], [0.2, 0.1]]"}) {
    const std::string message = error_of(std::string("[bias]\n") + bias);
    EXPECT_NE(message.find("the point V_GS = 0.2 V, V_DS = 0.1 V twice"), std::string::npos)
        << message;
  }
}

TEST(Deck, AnOrientationMayBeANumber) {
  EXPECT_EQ(parse("", {{"orientation", "110"}}).valleys[0].mx_m0,
            parse("orientation = \"110\"").valleys[0].mx_m0);
  EXPECT_EQ(parse("orientation = 100").valleys[0].mx_m0, 0.98);
  EXPECT_NE(error_of("orientation = 105").find("must be 100 or 110"), std::string::npos);
  EXPECT_NE(error_of("orientation = 111").find("orientation = 111 is outside"), std::string::npos);
}

// 1e19 is a usual doping of a channel in m⁻³, and almost that of a contact in cm⁻³.
TEST(Deck, AChannelDopedLikeAContactIsNoted) {
  EXPECT_TRUE(parse("").notes.empty());
  const Deck deck = parse("[doping]\nchannel_cm3 = 1e19");
  ASSERT_EQ(deck.notes.size(), 1u);
  EXPECT_NE(deck.notes[0].find("1e19 m-3 are 1e13 cm-3"), std::string::npos) << deck.notes[0];
}

TEST(Deck, ProfileFileMustCoverTheDevice) {
  const test::TemporaryDirectory directory;
  std::ofstream(directory.path() / "p.csv") << "x_nm,N_D_cm3\n0,1e20\n10,1e20\n";
  try {
    parse_deck("[doping]\nprofile = \"p.csv\"", {}, "deck.toml", directory.path());
    FAIL();
  } catch (const InvalidInput& failure) {
    EXPECT_NE(std::string(failure.what()).find("must cover 0 … 32 nm"), std::string::npos)
        << failure.what();
  }
}

TEST(Deck, IsAFileOrADirectoryWithOneAndNoLargeFile) {
  const test::TemporaryDirectory directory;
  std::ofstream(directory.path() / "deck.toml") << "[mesh]\nnx = 33\n";
  EXPECT_EQ(read_deck(directory.path(), {}).mesh.nx, 33);
  EXPECT_EQ(read_deck(directory.path() / "deck.toml", {{"mesh.nx", "65"}}).mesh.nx, 65);
  std::ofstream(directory.path() / "WFN") << "x";
  std::filesystem::resize_file(directory.path() / "WFN", (16u << 20) + 1);
  for (const auto& [name, words] :
       {std::pair{"WFN", "has more than 16 MiB"}, {"none", "does not exist or cannot be read"}}) {
    try {
      read_deck(directory.path() / name, {});
      ADD_FAILURE() << name;
    } catch (const InvalidInput& failure) {
      EXPECT_NE(std::string(failure.what()).find(words), std::string::npos) << failure.what();
    }
  }
}

TEST(Deck, ProfileFileIsReadLineByLine) {
  const test::TemporaryDirectory directory;
  const auto profile = [&](const std::string& text) {
    std::ofstream(directory.path() / "p.csv") << text;
    return parse_deck("[doping]\nprofile = \"p.csv\"", {}, "deck.toml", directory.path()).doping;
  };
  const auto doping = profile("# from a process simulator\n\nx_nm,N_D_cm3\n0,1e20\n32,2e20\n");
  EXPECT_EQ(doping.profile_x_nm, (std::vector<double>{0.0, 32.0}));
  EXPECT_EQ(doping.profile_nm3, (std::vector<double>{0.1, 0.2}));
  for (const auto& [line, words] :
       {std::pair{"10,1e20,5", "\"p.csv\", line 2 is not 'x_nm,N_D_cm3'"},
        {"10", "line 2 is not"},
        {"10,2e22", "line 2: N_D = 2e+22 cm-3 must be above 0 and at most 1e+22"},
        {"10,0", "line 2: N_D = 0 cm-3"},
        {"0,1e20", "line 2: x = 0 nm must be above the 0 nm before it"}}) {
    SCOPED_TRACE(line);
    try {
      profile(std::string("0,1e20\n") + line + "\n32,1e20\n");
      ADD_FAILURE() << "accepted";
    } catch (const InvalidInput& failure) {
      EXPECT_NE(std::string(failure.what()).find(words), std::string::npos) << failure.what();
    }
  }
}

// Decks of earlier versions run unchanged, with a note for each old name.
TEST(Deck, OldNamesOfKeysAreReadWithANote) {
  const Deck deck = parse(R"(kind = "mosfet"
[gate]
workfunction_eV = 4.5
[mesh]
wmax_eV = 0.8
[[scattering.process]]
kind = "elastic"
potential_eV = 7.0
[[scattering.process]]
kind = "g"
energy_meV = 60.0
coupling_1e8_eV_cm = 2.0
[scattering]
set = "custom"
[run]
scheme = "weno"
tol_V = 1e-7
checkpoint_s = 5.0
)");
  EXPECT_EQ(deck.gate.workfunction_top_ev, 4.5);
  EXPECT_EQ(deck.mesh.wmax_ev, 0.8);
  EXPECT_EQ(deck.scattering.processes.at(0).coupling_ev_per_nm, 7.0);
  EXPECT_EQ(deck.scattering.processes.at(1).energy_ev, 0.06);
  EXPECT_EQ(deck.run.tol_v, 1e-7);
  EXPECT_EQ(deck.common.checkpoint_interval_s, 5.0);
  ASSERT_EQ(deck.notes.size(), 7u);
  EXPECT_EQ(deck.notes.back(),
            "deck.toml: the key run.checkpoint_s is now called checkpoint_interval_s; the old name "
            "is still read");
}

TEST(Deck, ASettingByAnOldNameWinsOverTheDeck) {
  EXPECT_EQ(
      parse("kind = \"mosfet\"\n[mesh]\nwmax_ev = 0.8\n", {{"mesh.wmax_eV", "0.7"}}).mesh.wmax_ev,
      0.7);
  EXPECT_EQ(
      parse("kind = \"mosfet\"\n[mesh]\nwmax_eV = 0.8\n", {{"mesh.wmax_ev", "0.7"}}).mesh.wmax_ev,
      0.7);
  EXPECT_NE(error_of("kind = \"mosfet\"\n[mesh]\nwmax_eV = 0.8\nwmax_ev = 0.7\n")
                .find("mesh.wmax_eV is the old name of mesh.wmax_ev, and both are given"),
            std::string::npos);
}

}  // namespace
}  // namespace quasi::mosfet
