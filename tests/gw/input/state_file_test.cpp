// WFN that exceeds the memory for states is read in pieces: the same states, a bounded resident
// set, and a killed job that goes on where it was.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/gw/support/engine_job.hpp"
#include "tests/gw/support/silicon_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/device/device.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/input/deck.hpp"
#include "workers/gw/input/state_file.hpp"
#include "workers/gw/solver/mean_field/pseudobands.hpp"

namespace quasi::gw {
namespace {

using test::EngineJob;
using test::EngineProcess;
namespace fs = std::filesystem;

constexpr double kMib = 1048576.0;

/// Four atoms of silicon without symmetry on a 2×2×2 grid, with all bands of their plane waves.
MeanField silicon_with_all_bands(double cutoff_ry, int bands) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  EmpiricalCrystal crystal;
  crystal.repeats = {2, 1, 1};
  crystal.wavefunction_cutoff_ry = cutoff_ry;
  crystal.k_grid = {2, 2, 2};
  crystal.bands = bands;
  return empirical_mean_field(crystal, *kernels, silent);
}

double mib_of_states(const Wavefunctions& waves) {
  double numbers = 0.0;
  for (const KPointWaves& at : waves.waves)
    numbers += static_cast<double>(at.coefficients[0].size());
  return 16.0 * numbers / kMib;
}

/// Keeps the log, and cancels at a number of complete k-points.
class Reader : public SilentProgress {
 public:
  explicit Reader(int reports = 1 << 30) : left_(reports) {}
  void log(std::string_view line) override { text_ += std::string(line) + "\n"; }
  bool cancelled() const override { return left_ <= 0; }
  const std::string& text() const { return text_; }

 protected:
  void on_report(std::string_view phase, std::int64_t, std::int64_t) override {
    if (phase == "reading WFN") --left_;
  }

 private:
  int left_;
  std::string text_;
};

void expect_equal(const Wavefunctions& found, const Wavefunctions& expected) {
  ASSERT_EQ(found.waves.size(), expected.waves.size());
  for (std::size_t ik = 0; ik < found.waves.size(); ++ik) {
    EXPECT_EQ(found.waves[ik].g, expected.waves[ik].g);
    EXPECT_TRUE(std::as_const(found.waves[ik]).coefficients == expected.waves[ik].coefficients)
        << ik;
  }
}

/// Returns the resident part of a mapped file, MiB.
double resident_mib(const std::string& name) {
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(name) != std::string::npos) here = true;
    if (here && line.starts_with("Rss:")) return std::stod(line.substr(4)) / 1024.0;
  }
  return -1.0;
}

class StateFiles : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    field_ = std::make_unique<const MeanField>(silicon_with_all_bands(6.0, 120));
  }
  static void TearDownTestSuite() { field_.reset(); }
  StateStorage storage(Reader& reader, std::int64_t bytes = 200000) const {
    return {.memory_bytes = bytes, .directory = directory_.path(), .progress = &reader};
  }
  fs::path states() const { return directory_.path() / "WFN.states"; }
  inline static std::unique_ptr<const MeanField> field_;
  quasi::test::TemporaryDirectory directory_;
};

TEST_F(StateFiles, HoldTheStatesOfBothFormatsWithinTheirMemory) {
  for (const bool hdf5 : {false, true})
    for (const bool real : {false, true}) {
      SCOPED_TRACE(std::string(hdf5 ? "HDF5 " : "binary ") + (real ? "real" : "complex"));
      Wavefunctions waves = field_->waves;
      if (real) {
        waves.header.is_real = true;
        waves.header.title = "WFN-Real";
        for (KPointWaves& at : waves.waves)
          for (Cplx& c : at.coefficients[0]) c = c.real();
        for (KPointWaves& at : waves.waves)
          for (int band = 0; band < waves.n_bands; ++band) {
            Cplx* const c =
                at.coefficients[0].data() + static_cast<std::size_t>(band) * at.g.size();
            double norm = 0.0;
            for (std::size_t g = 0; g < at.g.size(); ++g) norm += std::norm(c[g]);
            for (std::size_t g = 0; g < at.g.size(); ++g) c[g] /= std::sqrt(norm);
          }
      }
      const fs::path file = directory_.path() / "WFN";
      if (hdf5)
        write_wavefunctions_hdf5(file, waves);
      else
        write_wavefunctions(file, waves);
      Reader reader;
      {
        const Wavefunctions found = read_wavefunctions(file, storage(reader));
        EXPECT_TRUE(found.waves[0].coefficients[0].is_mapped());
        expect_equal(found, read_wavefunctions(file));
        // 200,000 bytes are three chunks of 64 KiB; one more may be in use.
        EXPECT_LE(resident_mib("WFN.states"), 5 * 65536 / kMib);
        EXPECT_GT(mib_of_states(waves), 10 * 65536 / kMib);
        EXPECT_TRUE(fs::exists(states()));
      }
      EXPECT_FALSE(fs::exists(states())) << "the file stays after its last use";
      EXPECT_NE(reader.text().find("MiB/s"), std::string::npos) << reader.text();
    }
}

TEST_F(StateFiles, FitIntoMemoryWithoutAFile) {
  write_wavefunctions(directory_.path() / "WFN", field_->waves);
  Reader reader;
  const Wavefunctions found =
      read_wavefunctions(directory_.path() / "WFN", storage(reader, std::int64_t{1} << 30));
  EXPECT_FALSE(found.waves[0].coefficients[0].is_mapped());
  EXPECT_EQ(reader.text(), "");
}

TEST_F(StateFiles, GoOnBehindTheKPointsOfAnEarlierAttempt) {
  for (const bool hdf5 : {false, true}) {
    const fs::path file = directory_.path() / "WFN";
    if (hdf5)
      write_wavefunctions_hdf5(file, field_->waves);
    else
      write_wavefunctions(file, field_->waves);
    Reader first(3);
    EXPECT_THROW(read_wavefunctions(file, storage(first)), Cancelled);
    ASSERT_TRUE(fs::exists(states()));
    Reader second;
    const Wavefunctions found = read_wavefunctions(file, storage(second));
    EXPECT_NE(second.text().find("the states of 3 of 8 k-points were read by an earlier attempt"),
              std::string::npos)
        << second.text();
    expect_equal(found, read_wavefunctions(file));
  }
}

// An attempt that ends at band 101 of the first k-point has counted the bands before it every
// 64 KiB, its memory. The next one, with a sound WFN of the same time, reads the others.
TEST_F(StateFiles, GoOnWithinAKPointOfABinaryFile) {
  const fs::path file = directory_.path() / "WFN";
  Wavefunctions damaged = field_->waves;
  damaged.waves[0].coefficients[0][100 * damaged.waves[0].g.size()] += 0.5;
  write_wavefunctions(file, damaged);
  const auto time = fs::last_write_time(file);
  Reader first;
  EXPECT_THROW(read_wavefunctions(file, storage(first, 65536)), InvalidInput);
  write_wavefunctions(file, field_->waves);
  fs::last_write_time(file, time);
  Reader second;
  const Wavefunctions found = read_wavefunctions(file, storage(second, 65536));
  const auto row = static_cast<std::int64_t>(16 * damaged.waves[0].g.size()),
             step = (65536 + row - 1) / row, counted = 100 / step * step;
  EXPECT_NE(second.text().find("the states of 0 of 8 k-points and " + std::to_string(counted) +
                               " bands of the next were read by an earlier attempt"),
            std::string::npos)
      << second.text();
  expect_equal(found, read_wavefunctions(file));
}

// HDF5 comes in blocks that are larger than this file. The count of an attempt that was killed
// within a k-point is written by hand, and the bands behind it are lost.
TEST_F(StateFiles, GoOnWithinAKPointOfAnHdf5File) {
  const fs::path file = directory_.path() / "WFN";
  write_wavefunctions_hdf5(file, field_->waves);
  Reader first(1);
  EXPECT_THROW(read_wavefunctions(file, storage(first)), Cancelled);
  const std::size_t n_pw = field_->waves.waves[0].g.size();
  {
    std::fstream attempt(states(), std::ios::in | std::ios::out | std::ios::binary);
    const std::int64_t counts[] = {0, 70};
    attempt.seekp(16);
    attempt.write(reinterpret_cast<const char*>(counts), sizeof counts);
    const std::vector<Cplx> lost(50 * n_pw);
    attempt.seekp(static_cast<std::streamoff>(4096 + 16 * 70 * n_pw));
    attempt.write(reinterpret_cast<const char*>(lost.data()),
                  static_cast<std::streamsize>(16 * lost.size()));
  }
  Reader second;
  const Wavefunctions found = read_wavefunctions(file, storage(second));
  EXPECT_NE(second.text().find("0 of 8 k-points and 70 bands of the next"), std::string::npos)
      << second.text();
  expect_equal(found, read_wavefunctions(file));
}

TEST_F(StateFiles, AreReadAnewIfWfnHasChanged) {
  const fs::path file = directory_.path() / "WFN";
  write_wavefunctions(file, field_->waves);
  Reader first(3);
  EXPECT_THROW(read_wavefunctions(file, storage(first)), Cancelled);
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(1));
  Reader second;
  const Wavefunctions found = read_wavefunctions(file, storage(second));
  EXPECT_EQ(second.text().find("earlier attempt"), std::string::npos) << second.text();
  expect_equal(found, read_wavefunctions(file));
}

// Pseudobands sum over all states, which come from the file in parts of 64 KiB and less. Vectors
// and complement have the bits of states in memory, and the states leave memory again.
TEST_F(StateFiles, GivePseudobandsWithinTheirMemory) {
  const fs::path file = directory_.path() / "WFN";
  write_wavefunctions(file, field_->waves);
  Reader reader;
  const Wavefunctions mapped = read_wavefunctions(file, storage(reader));
  ASSERT_TRUE(mapped.waves[0].coefficients[0].is_mapped());
  const PseudobandPlan plan =
      plan_pseudobands(*field_, {.vectors = 3, .protected_ry = 0.5, .ratio = 0.4, .seed = 5}, true);
  ASSERT_FALSE(plan.keeps_all());
  for (const PseudobandUse use : {PseudobandUse::kScreening, PseudobandUse::kSelfEnergy})
    expect_equal(pseudobands(mapped, plan, use), pseudobands(field_->waves, plan, use));
  expect_equal(complement_vectors(mapped, plan, 2.0), complement_vectors(field_->waves, plan, 2.0));
  EXPECT_LE(resident_mib("WFN.states"), 5 * 65536 / kMib);
}

TEST_F(StateFiles, CheckNormsAndNeedRoom) {
  const fs::path file = directory_.path() / "WFN";
  Wavefunctions waves = field_->waves;
  waves.waves[1].coefficients[0][0] += 0.5;
  write_wavefunctions(file, waves);
  Reader reader;
  const auto message = [&](const StateStorage& at) -> std::string {
    try {
      read_wavefunctions(file, at);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message(storage(reader)).find("band 1 at k-point 2 has norm"), std::string::npos);
  StateStorage nowhere = storage(reader);
  nowhere.directory /= "absent";
  const std::string text = message(nowhere);
  EXPECT_NE(text.find("meanfield.state_memory_mib"), std::string::npos) << text;
  EXPECT_NE(text.find("free the disk or raise that limit"), std::string::npos) << text;
}

// The directory is absent, so that any file would fail.
TEST_F(StateFiles, AreCheckedAndForgottenWithoutAFile) {
  const fs::path file = directory_.path() / "WFN";
  for (const bool hdf5 : {false, true}) {
    Wavefunctions waves = field_->waves;
    const auto write = [&] {
      hdf5 ? write_wavefunctions_hdf5(file, waves) : write_wavefunctions(file, waves);
    };
    write();
    Reader reader;
    StateStorage nowhere = storage(reader);
    nowhere.directory /= "absent";
    nowhere.forget = true;
    const Wavefunctions found = read_wavefunctions(file, nowhere);
    EXPECT_TRUE(found.waves[0].coefficients[0].is_mapped());
    EXPECT_EQ(found.waves[1].coefficients[0].size(), waves.waves[1].coefficients[0].size());
    EXPECT_EQ(found.energy_ry, waves.energy_ry);
    EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), {}), 1);
    waves.waves[1].coefficients[0][0] += 0.5;
    write();
    EXPECT_THROW(read_wavefunctions(file, nowhere), InvalidInput);
  }
}

// A validation with little memory for states makes the plan of the job, says what it leaves to the
// job, and needs no directory for temporary files.
TEST(StatesInPieces, AreNotWrittenByAValidation) {
  if (!fs::exists(test::engine_program())) GTEST_SKIP() << "quasi-engine is not built";
  quasi::test::TemporaryDirectory directory;
  const MeanField field = silicon_with_all_bands(6.0, 120);
  test::write_files_of(field, directory.path());
  const fs::path deck = directory.path() / "deck.toml";
  std::ofstream(deck) << "kind = \"gw\"\n[epsilon]\ncutoff_ry = 2.0\n[sigma]\nband_min = 8\n"
                         "band_max = 9\n[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\n"
                         "rho = \"RHO\"\n";
  const auto validate = [&](const std::string& more) {
    const fs::path result = directory.path() / "validated.json";
    const std::string command = "TMPDIR=" + (directory.path() / "absent").string() + " '" +
                                test::engine_program().string() + "' validate gw '" +
                                deck.string() + "' --device cpu --json " + more + " > '" +
                                result.string() + "' 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << more;
    std::ifstream in(result);
    return nlohmann::json::parse(in);
  };
  const auto whole = validate(""), pieces = validate("--set meanfield.state_memory_mib=1");
  for (const char* key : {"epsilon_gflop", "sigma_evaluations", "epsilon_bands", "sigma_bands",
                          "band_min", "band_max", "memory_bytes"})
    EXPECT_EQ(pieces.at("plan").at(key), whole.at("plan").at(key)) << key;
  EXPECT_EQ(whole.at("warnings").dump().find("left to the job"), std::string::npos);
  EXPECT_NE(pieces.at("warnings").dump().find("left to the job"), std::string::npos);
}

// Found: 12 MiB of states, of which 2 stay in memory. The job with all of them in memory has a peak
// that is higher by their difference.
TEST(StatesInPieces, GiveTheSameBitsWithinTheirMemory) {
  if (!fs::exists(test::engine_program())) GTEST_SKIP() << "quasi-engine is not built";
  quasi::test::TemporaryDirectory directory;
  const MeanField field = silicon_with_all_bands(10.0, 270);
  test::write_files_of(field, directory.path());
  const std::string deck =
      "kind = \"gw\"\ncheckpoint_interval_s = 0.0\n[epsilon]\ncutoff_ry = 2.0\nbands = 40\n"
      "[sigma]\nbands = 40\nkpoints = [[0, 0, 0]]\nband_min = 8\nband_max = 9\n"
      "[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\nrho = \"RHO\"\n";
  const EngineJob whole{directory.path(), directory.path() / "whole.toml"},
      pieces{directory.path(), directory.path() / "pieces.toml"};
  std::ofstream(whole.deck) << deck;
  std::ofstream(pieces.deck) << deck << "state_memory_mib = 2\n";

  EngineProcess in_memory = whole.start("whole");
  const double whole_mib = in_memory.wait_for_peak_mib();
  ASSERT_EQ(in_memory.exit_code(), 0) << whole.log_text();
  EngineProcess in_pieces = pieces.start("pieces");
  const double pieces_mib = in_pieces.wait_for_peak_mib();
  ASSERT_EQ(in_pieces.exit_code(), 0) << pieces.log_text();
  EXPECT_NE(pieces.log_text().find("the rest is read in pieces"), std::string::npos)
      << pieces.log_text();
  const auto without_plan = [](const std::string& result) {
    auto document = nlohmann::json::parse(result);
    document.erase("plan");  // The plan of the host's memory differs.
    return document.dump();
  };
  const std::string expected = without_plan(whole.result("whole"));
  EXPECT_EQ(without_plan(pieces.result("pieces")), expected);
  const double states_mib = mib_of_states(field.waves);
  EXPECT_GT(states_mib, 8.0);
  EXPECT_LT(pieces_mib, whole_mib - 0.4 * (states_mib - 2.0))
      << "peaks of " << whole_mib << " and " << pieces_mib << " MiB";
  EXPECT_FALSE(fs::exists(directory.path() / "pieces" / "checkpoint" / "WFN.states"));

  std::mt19937 random(3);
  int killed = 0;
  for (int attempt = 0; killed < 4 && attempt < 20; ++attempt) {
    EngineProcess engine = pieces.start("killed");
    std::this_thread::sleep_for(
        std::chrono::milliseconds(std::uniform_int_distribution<int>(150, 900)(random)));
    if (engine.kill_and_wait())
      ++killed;
    else
      fs::remove_all(directory.path() / "killed");
  }
  EXPECT_EQ(killed, 4);
  ASSERT_EQ(pieces.run("killed"), 0) << pieces.log_text();
  EXPECT_EQ(without_plan(pieces.result("killed")), expected);
}

}  // namespace
}  // namespace quasi::gw
