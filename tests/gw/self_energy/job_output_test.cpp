// Tables and summaries of whole jobs: which columns, labels and notes they carry.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "tests/gw/support/silicon_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/output/sigma_results.hpp"
#include "workers/gw/output/summary.hpp"
#include "workers/gw/physics/interpolation.hpp"
#include "workers/gw/solver/calculation/cost/cost_estimate.hpp"

namespace quasi::gw {
namespace {

class JobOutput : public testing::Test {
 protected:
  std::filesystem::path path(const std::string& name) const { return directory_.path() / name; }
  Calculation run(const std::string& deck) const {
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    return run_calculation(parse_deck(deck, {}, "test", directory_.path()), *kernels,
                           std::int64_t{1} << 30, silent);
  }
  /// Lines of spectra.dat that the job writes.
  std::vector<std::string> spectra_of(const Calculation& run) const {
    write_sigma_tables(directory_.path(), run);
    std::ifstream in(path("spectra.dat"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  static std::size_t columns(const std::string& line) {
    std::istringstream words(line);
    std::size_t count = 0;
    for (std::string word; words >> word;) ++count;
    return count;
  }
  static bool notes_hold(const Calculation& run, const std::string& part) {
    return std::any_of(run.plan.notes.begin(), run.plan.notes.end(), [&](const std::string& note) {
      return note.find(part) != std::string::npos;
    });
  }

  quasi::test::TemporaryDirectory directory_;
};

constexpr const char* kSums =
    "[epsilon]\ncutoff_ry = 2.0\nbands = 8\n[sigma]\nbands = 8\nband_max = 5\n"
    "spectrum_window_ev = 2.0\n";

// A(ω) needs V_xc. Without it the column is absent, and a note says why; it is never zero.
TEST_F(JobOutput, TheSpectralFunctionIsAbsentWithoutVxc) {
  const Calculation without =
      run(std::string("[meanfield]\nsource = \"epm\"\ncutoff_ry = 4.0\nbands = 8\n") + kSums);
  const auto lines = spectra_of(without);
  EXPECT_NE(lines.at(0).find("A is absent because V_xc is unknown"), std::string::npos);
  EXPECT_EQ(columns(lines.at(2)), 3u);
  EXPECT_TRUE(notes_hold(without, "A(ω) is absent"));

  const MeanField field = test::silicon_for_files(4.0, 8);
  test::write_files_of(field, directory_.path());
  PlaneWaveField zero = field.density;
  zero.header.title = "VXC-Complex";
  for (Cplx& value : zero.values[0]) value = 0.0;
  write_field(path("VXC"), zero);
  const Calculation with = run(
      std::string("[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\nrho = \"RHO\"\nvxc = \"VXC\"\n") +
      kSums);
  const auto full = spectra_of(with);
  EXPECT_NE(full.at(0).find("A (1/eV)"), std::string::npos);
  EXPECT_EQ(columns(full.at(2)), 4u);
  EXPECT_FALSE(notes_hold(with, "A(ω) is absent"));
  EXPECT_TRUE(notes_hold(with, "sigma.spectrum_step_ev = 0.25 exceeds"));
}

// The table shows what the bands beyond sigma.bands hold of the static Coulomb hole.
TEST_F(JobOutput, TheTableShowsTheTruncationOfTheBandSum) {
  const Calculation job = run(
      "[meanfield]\nsource = \"epm\"\ncutoff_ry = 4.0\nbands = 8\n[epsilon]\ncutoff_ry = 2.0\n");
  auto summary = summary_of(job, find_device("cpu"), 1);
  EXPECT_NE(table_of(summary).find("static CH of the bands beyond sigma.bands:"),
            std::string::npos);
  EXPECT_EQ(table_of(summary).find("violated:"), std::string::npos);
  summary["self_test"][0]["passed"] = false;
  EXPECT_NE(table_of(summary).find("7 of 8 laws hold\nviolated: hermiticity\n"), std::string::npos);
}

// The gap of a job over some k-points is labelled as theirs, in the summary and in the table.
TEST_F(JobOutput, AGapOverSomeKPointsIsLabelled) {
  const std::string deck =
      "[meanfield]\nsource = \"epm\"\ncutoff_ry = 4.0\nbands = 8\nk_grid = [2, 2, 2]\n"
      "[epsilon]\ncutoff_ry = 2.0\nbands = 8\n[sigma]\nbands = 8\nband_max = 5\n";
  const auto summary = [&](const std::string& text) {
    return summary_of(run(text), find_device("cpu"), 1);
  };
  const auto some = summary(deck + "kpoints = [[0, 0, 0], [0, 0, 0.5]]\n"), all = summary(deck);
  EXPECT_FALSE(some.at("gap").at("over_all_k").get<bool>());
  EXPECT_NE(table_of(some).find("gaps are those of the 2 listed k-points of 3"), std::string::npos);
  EXPECT_TRUE(all.at("gap").at("over_all_k").get<bool>());
  EXPECT_EQ(table_of(all).find("listed k-points"), std::string::npos);
}

// All states share one list of energies, and Σ(E) on it is that of the energies around the state:
// the interpolation between points 0.05 eV apart errs by less than 1e-4 eV away from poles.
TEST_F(JobOutput, SpectraOnSharedEnergies) {
  const std::string deck =
      "[meanfield]\nsource = \"epm\"\ncutoff_ry = 4.0\nbands = 8\n[epsilon]\ncutoff_ry = 2.0\n"
      "[sigma]\nband_min = 4\nband_max = 5\nspectrum_step_ev = 0.05\n";
  const Calculation own = run(deck + "spectrum_window_ev = 2.0\n");
  const Spectrum& around = own.spectra.at(0);
  const double first_ev = std::floor(around.energy_ev.front() + 0.5);
  const Calculation shared =
      run(deck + "spectrum_origin = \"zero\"\nspectrum_points = 21\nspectrum_first_ev = " +
          std::to_string(first_ev) + "\n");
  for (const Spectrum& s : shared.spectra) {
    ASSERT_EQ(s.energy_ev.size(), 21u);
    EXPECT_NEAR(s.energy_ev.front(), first_ev, 1e-9);
    EXPECT_NEAR(s.energy_ev.back(), first_ev + 1.0, 1e-9);
  }
  for (std::size_t i = 0; i < 21; ++i)
    EXPECT_LT(std::abs(shared.spectra.at(0).sigma_ev[i] -
                       cubic_at(around.energy_ev, around.sigma_ev, first_ev + 0.05 * i).value),
              1e-4);
  // From the middle of the gap.
  const Calculation midgap =
      run(deck + "spectrum_origin = \"midgap\"\nspectrum_points = 4\nspectrum_first_ev = -0.1\n");
  const auto& waves = midgap.field.waves;
  const double middle_ev = 0.5 * kRydberg_ev * (waves.energy(0, 0, 3) + waves.energy(0, 0, 4));
  EXPECT_NEAR(midgap.spectra.at(0).energy_ev.front(), middle_ev - 0.1, 1e-9);
}

// ε⁻¹ alone needs no RHO: the density of the states serves.
TEST_F(JobOutput, EpsilonAloneNeedsNoDensityFile) {
  test::write_files_of(test::silicon_for_files(4.0, 10), directory_.path());
  const std::string deck =
      "stop_after = \"epsilon\"\n[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\n";
  const Calculation with = run(deck + "rho = \"RHO\"\n[epsilon]\ncutoff_ry = 2.0\n");
  std::filesystem::remove(path("RHO"));
  std::ofstream(path("epsilon.inp")) << "epsilon_cutoff 2.0\n";
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const Calculation without =
      run_calculation(read_deck(directory_.path(), {}), *kernels, std::int64_t{1} << 30, silent);
  ASSERT_EQ(without.epsilon.size(), with.epsilon.size());
  for (std::size_t q = 0; q < with.epsilon.size(); ++q)
    EXPECT_EQ(without.epsilon[q].inverse[0], with.epsilon[q].inverse[0]);
  EXPECT_THROW(run("[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\n[epsilon]\ncutoff_ry = 2.0\n"),
               InvalidInput);
}

// A job that ends with ε⁻¹ speaks neither of bands of Σ nor of gaps, which it does not compute.
TEST_F(JobOutput, EpsilonAloneSpeaksOfNoSigma) {
  const std::string deck =
      "[meanfield]\nsource = \"epm\"\ncutoff_ry = 4.0\nbands = 8\n[epsilon]\ncutoff_ry = 2.0\n"
      "[sigma]\nband_max = 6\n";
  const Calculation whole = run(deck), alone = run("stop_after = \"epsilon\"\n" + deck);
  EXPECT_TRUE(notes_hold(whole, "sigma.band_max")) << "the deck must have a note to leave out";
  EXPECT_FALSE(notes_hold(alone, "sigma."));
  EXPECT_NE(cost_line(whole.plan).find("Σ"), std::string::npos);
  EXPECT_EQ(cost_line(alone.plan).find("Σ"), std::string::npos);
  const Device cpu = find_device("cpu");
  EXPECT_NE(table_of(summary_of(whole, cpu, 1)).find("gap"), std::string::npos);
  EXPECT_EQ(table_of(summary_of(alone, cpu, 1)).find("gap"), std::string::npos);
}

// A folder without V_xc is refused by its own name, and before anything is computed.
TEST_F(JobOutput, AFolderWithoutVxcIsRefusedWithBothNames) {
  test::write_files_of(test::silicon_for_files(4.0, 10), directory_.path());
  std::filesystem::remove(path("VXC"));
  std::ofstream(path("epsilon.inp")) << "epsilon_cutoff 2.0\n";
  std::ofstream(path("sigma.inp")) << "number_bands 8\nband_index_max 5\n";
  try {
    read_deck(directory_.path(), {});
    FAIL() << "a folder without V_xc was accepted";
  } catch (const InvalidInput& refusal) {
    EXPECT_NE(std::string(refusal.what()).find("neither vxc.dat nor VXC"), std::string::npos)
        << refusal.what();
  }
}

// The refusal of a truncation names the keyword of BerkeleyGW, too.
TEST_F(JobOutput, ATruncationIsRefusedInTheWordsOfBothDecks) {
  try {
    run("[meanfield]\nsource = \"epm\"\ncutoff_ry = 4.0\nbands = 8\nk_grid = [1, 1, 2]\n[epsilon]\n"
        "cutoff_ry = 2.0\n[coulomb]\ntruncation = \"slab\"\n");
    FAIL() << "a slab with two k-points along its axis was accepted";
  } catch (const InvalidInput& refusal) {
    for (const char* part : {"coulomb.truncation = \"slab\"", "cell_slab_truncation", "1 point"})
      EXPECT_NE(std::string(refusal.what()).find(part), std::string::npos) << refusal.what();
  }
}

}  // namespace
}  // namespace quasi::gw
