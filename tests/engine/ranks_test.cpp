// One job on several processes, started by the MPI launcher. It gives the bits of one process, and
// a failure in one rank ends all of them with its message.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/engine/ranks_job.hpp"
#include "tests/gw/support/loop_files.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi {
namespace {

namespace fs = std::filesystem;
using namespace test;

// A thermal job on 1, 2 and 4 ranks gives the bits of the engine started alone.
TEST_F(Ranks, ThermalGivesTheSameBitsOnAnyNumber) {
  const TemporaryDirectory place;
  const Words mesh{"ngrid=4 4 4"};
  ASSERT_EQ(run({{0, silicon(place.path() / "alone", mesh)}}, place.path() / "log"), 0)
      << text_of(place.path() / "log");
  for (const int n : {1, 2, 4}) {
    const fs::path output = place.path() / ("ranks" + std::to_string(n));
    ASSERT_EQ(run({{n, silicon(output, mesh)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    SCOPED_TRACE(std::to_string(n) + " ranks");
    expect_same_bits(place.path() / "alone", output, kThermal);
    EXPECT_NE(text_of(output / "summary.json").find("\"ranks\": " + std::to_string(n)),
              std::string::npos);
  }
}

// So does the ladder: every rank renormalises the phonons, and all share the processes of each
// case.
TEST_F(Ranks, TheLadderGivesTheSameBitsOnAnyNumber) {
  const TemporaryDirectory place;
  const fs::path deck = source_dir() / "examples/thermal/quartic-cubic",
                 alone = place.path() / "alone";
  const Words settings{"renormalise=.true.", "T=300 600"};
  ASSERT_EQ(run({{0, engine("thermal", deck, alone, settings)}}, place.path() / "log"), 0)
      << text_of(place.path() / "log");
  for (const int n : {2, 3}) {
    SCOPED_TRACE(std::to_string(n) + " ranks");
    const fs::path shared = place.path() / std::to_string(n);
    ASSERT_EQ(run({{n, engine("thermal", deck, shared, settings)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    expect_same_bits(alone, shared, {"/ladder/kappa", "/ladder/omega", "/ladder/correction/value"});
    expect_same_bits(alone / "renormalised_300K", shared / "renormalised_300K",
                     {"/rates/4ph_total", "/kappa/converged"});
    EXPECT_FALSE(fs::exists(shared / "checkpoint") && !fs::is_empty(shared / "checkpoint"))
        << "a finished job leaves no checkpoint";
  }
}

// Sampled rates: draws are shared among ranks as tiles are, and the bits do not change.
TEST_F(Ranks, SampledRatesToo) {
  const TemporaryDirectory place;
  for (const Words& sampling :
       {Words{"ngrid=4 4 4", "sampling=by-weight", "num_sample_process_4ph=64",
              "four_phonon_iteration=.false."},
        Words{"ngrid=3 3 3", "sampling=uniform", "num_sample_process_4ph=40000",
              "four_phonon_iteration=.false."}}) {
    SCOPED_TRACE(sampling[1]);
    const fs::path alone = place.path() / ("alone" + sampling[1]),
                   shared = place.path() / ("shared" + sampling[1]);
    ASSERT_EQ(run({{0, silicon(alone, sampling)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    ASSERT_EQ(run({{3, silicon(shared, sampling)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    expect_same_bits(alone, shared, {"/rates/4ph_total", "/kappa/rta"});
  }
}

// gw jobs on 2 and 4 ranks give the bits of the engine started alone, and leave no checkpoint.
TEST_F(Ranks, GwGivesTheSameBitsOnAnyNumber) {
  const TemporaryDirectory place;
  for (const std::string& text : kGwDecks) {
    const fs::path deck = write_deck(place.path() / std::to_string(text == kGwDecks[1]), text),
                   alone = deck.parent_path() / "alone";
    ASSERT_EQ(run({{0, engine("gw", deck, alone)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    for (const int n : {2, 4}) {
      SCOPED_TRACE(text + std::to_string(n) + " ranks");
      const fs::path output = deck.parent_path() / std::to_string(n);
      ASSERT_EQ(run({{n, engine("gw", deck, output)}}, place.path() / "log"), 0)
          << text_of(place.path() / "log");
      expect_same_bits(alone, output, kGw);
      EXPECT_EQ(text_of(alone / "epsmat.h5").size(), text_of(output / "epsmat.h5").size());
      EXPECT_FALSE(fs::exists(output / "checkpoint") && !fs::is_empty(output / "checkpoint"))
          << "a finished job leaves no checkpoint";
    }
  }
}

// Steady and transient sweeps on 2 and 4 ranks give the bits of the engine started alone.
TEST_F(Ranks, MosfetSweepsGiveTheSameBitsOnAnyNumber) {
  const TemporaryDirectory place;
  for (const std::string mode : {"steady", "transient"}) {
    const fs::path deck = write_sweep(place.path() / mode, mode),
                   alone = deck.parent_path() / "alone";
    ASSERT_EQ(run({{0, engine("mosfet", deck, alone)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    for (const int n : {2, 4}) {
      SCOPED_TRACE(mode + ", " + std::to_string(n) + " ranks");
      const fs::path output = deck.parent_path() / std::to_string(n);
      ASSERT_EQ(run({{n, engine("mosfet", deck, output)}}, place.path() / "log"), 0)
          << text_of(place.path() / "log");
      expect_same_bits(alone, output, mosfet_datasets());
      EXPECT_EQ(text_of(alone / "iv.csv"), text_of(output / "iv.csv"));
      for (int point = 0; mode == "transient" && point < 6; ++point) {
        const std::string name = "pdf_" + std::to_string(point) + "_0.h5";
        EXPECT_EQ(H5Reader(alone / name).doubles("/pdf"), H5Reader(output / name).doubles("/pdf"));
      }
    }
  }
}

// So do the points of the beam scheme.
TEST_F(Ranks, BeamSweepsGiveTheSameBitsOnAnyNumber) {
  const TemporaryDirectory place;
  const fs::path
      deck = write_deck(
          place.path() / "beam",
          "kind = \"mosfet\"\nparameters = \"paper\"\n[mesh]\nnx = 33\nnz = 17\nsubbands = 1\n"
          "dh_ev = 0.025\nnkappa = 4\n[bias]\nvgs = [0.0, 0.2]\n"
          "vds = [0.1, 0.2]\n[run]\nscheme = \"beam\"\n"),
      alone = deck.parent_path() / "alone", output = deck.parent_path() / "3";
  for (const auto& [n, directory] : {std::pair{0, alone}, {3, output}})
    ASSERT_EQ(run({{n, engine("mosfet", deck, directory)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
  expect_same_bits(
      alone, output,
      {"/iv/I_mid", "/points/0/potential", "/points/3/current_x", "/points/3/phonon_power"});
  EXPECT_EQ(text_of(alone / "iv.csv"), text_of(output / "iv.csv"));
}

// Every iteration of an outer loop is a sum over all ranks, and every rank continues with the
// result. The full matrix is shared as well.
TEST_F(Ranks, GwLoopsAndTheFullMatrixGiveTheSameBits) {
  const TemporaryDirectory place;
  for (const auto& [name, more, datasets] :
       {std::tuple{"evgw0", kEigenvalueLoop, kGw},
        std::tuple{"qsgw0", kStateLoop,
                   Words{"/quasiparticles/mean_field_ev", "/quasiparticles/x_ev",
                         "/quasiparticles/sigma_ev"}},
        std::tuple{
            "matrix", kFullMatrix,
            Words{"/quasiparticles/sigma_ev", "/quasiparticles/qp1_ev", "/quasiparticles/z"}}}) {
    SCOPED_TRACE(name);
    const fs::path deck = write_loop_job(place.path() / name, more),
                   alone = deck.parent_path() / "alone", shared = deck.parent_path() / "shared";
    ASSERT_EQ(run({{0, engine("gw", deck, alone)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    ASSERT_EQ(run({{2, engine("gw", deck, shared)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    expect_same_bits(alone, shared, datasets);
  }
}

// One rank does not find the deck. The job ends with the message and the status of that rank, and
// no rank is left waiting.
TEST_F(Ranks, AFailureInOneEndsAllWithItsMessage) {
  const TemporaryDirectory place;
  const Words good = silicon(place.path() / "out", {"ngrid=8 8 8"});
  const int status = run(
      {{1, good}, {1, engine("thermal", place.path() / "absent", place.path() / "out")}, {1, good}},
      place.path() / "log");
  const std::string log = text_of(place.path() / "log");
  EXPECT_EQ(status, 10) << log;
  EXPECT_NE(log.find("error: rank 1: deck '" + (place.path() / "absent").string() + "'"),
            std::string::npos)
      << log;
  EXPECT_EQ(log.find("error: rank 0"), std::string::npos) << log;
  EXPECT_FALSE(fs::exists(place.path() / "out" / "result.h5"));
}

// Ranks that read different decks would add up sums of different problems. The job is refused.
TEST_F(Ranks, DifferentDecksAreNoticed) {
  const TemporaryDirectory place;
  const int status = run({{1, silicon(place.path() / "out", {"ngrid=4 4 4"})},
                          {1, silicon(place.path() / "out", {"ngrid=4 4 4", "scalebroad=0.4"})}},
                         place.path() / "log");
  const std::string log = text_of(place.path() / "log");
  EXPECT_EQ(status, 10) << log;
  EXPECT_NE(log.find("rank 1 found other bits for the phonon modes"), std::string::npos) << log;
}

// `validate` takes --device as `run` does: a list of devices, none of them unknown or empty.
TEST(EngineCommand, ValidateTakesSeveralDevicesAsRunDoes) {
  const TemporaryDirectory place;
  const Words validate{QUASI_ENGINE, "validate", "mosfet",
                       (source_dir() / "examples/mosfet/iv_coarse.toml").string(), "--device"};
  for (const auto& [devices, status] : {std::pair{"cpu,cpu", 0}, {"cpu,gpu", 10}, {"", 10}}) {
    Words words = validate;
    words.emplace_back(devices);
    EXPECT_EQ(run({{0, words}}, place.path() / "log"), status) << text_of(place.path() / "log");
  }
}

// An equilibrium runs in one process: two ranks are refused.
TEST_F(Ranks, AModeThatCannotBeSharedIsRefused) {
  const TemporaryDirectory place;
  const int status = run({{2, engine("mosfet", source_dir() / "examples/mosfet/equilibrium.toml",
                                     place.path() / "out")}},
                         place.path() / "log");
  const std::string log = text_of(place.path() / "log");
  EXPECT_EQ(status, 10) << log;
  EXPECT_NE(log.find("runs in one process, 2 ranks were started"), std::string::npos) << log;
}

}  // namespace
}  // namespace quasi
