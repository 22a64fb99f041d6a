// Files of BerkeleyGW with two-component states (docs/theory/gw.md 1, 15.4): both formats return
// what was written, jobs from files equal those of the built-in crystal, and what is not built is
// refused by name.

#include <gtest/gtest.h>

#include "tests/gw/support/silicon_files.hpp"
#include "tests/gw/support/small_silicon.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {
namespace {

const std::string kSums =
    "[epsilon]\ncutoff_ry = 2.0\nbands = 18\n[sigma]\nbands = 18\nband_max = 8\n";
const std::string kFiles =
    "kind = \"gw\"\n[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\nrho = \"RHO\"\n";

/// Holds GaAs with spin–orbit coupling on a 2×2×2 grid and its files.
class SpinorFiles : public ::testing::Test {
 protected:
  static MeanField make() {
    EmpiricalCrystal crystal;
    crystal.name = "gaas";
    crystal.spin_orbit_ry_bohr2 = {1e-2, 2e-2};
    crystal.wavefunction_cutoff_ry = 4.0;
    crystal.k_grid = {2, 2, 2};
    crystal.bands = 24;
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    return empirical_mean_field(crystal, *kernels, silent);
  }
  std::filesystem::path path(const std::string& name) const { return directory_.path() / name; }
  Calculation run(const std::string& text) {
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    return run_calculation(parse_deck(text, {}, "deck.toml", directory_.path()), *kernels,
                           std::int64_t{1} << 30, silent);
  }
  /// Runs and validates a deck and expects both to refuse it with all of `words`.
  void expect_refusal(const std::string& text, const std::vector<std::string>& words) {
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    DeviceTeam alone(*kernels);
    for (const bool validates : {false, true}) {
      try {
        const Deck deck = parse_deck(text, {}, "deck.toml", directory_.path());
        if (validates)
          validated_plan(deck, {.team = alone, .memory_budget_bytes = std::int64_t{1} << 30},
                         silent);
        else
          run(text);
        FAIL() << "accepted";
      } catch (const InvalidInput& failure) {
        for (const std::string& word : words)
          EXPECT_NE(std::string(failure.what()).find(word), std::string::npos) << failure.what();
      }
    }
  }
  quasi::test::TemporaryDirectory directory_;
};

// Both formats return every number, also where the states are read piece by piece into a file.
TEST_F(SpinorFiles, BothFormatsReturnWhatWasWritten) {
  const MeanField field = make();
  write_wavefunctions(path("WFN"), field.waves);
  write_wavefunctions_hdf5(path("WFN.h5"), field.waves);
  for (const char* name : {"WFN", "WFN.h5"})
    for (const std::int64_t memory_bytes : {std::int64_t{0}, std::int64_t{1} << 16}) {
      StateStorage storage;
      storage.memory_bytes = memory_bytes;
      const Wavefunctions found = read_wavefunctions(path(name), storage);
      EXPECT_EQ(found.header.n_spins, 1);
      EXPECT_EQ(found.header.n_spinor, 2);
      EXPECT_EQ(found.waves[0].coefficients[0].is_mapped(), memory_bytes > 0);
      for (std::size_t ik = 0; ik < found.waves.size(); ++ik)
        EXPECT_TRUE(found.waves[ik].coefficients[0] == field.waves.waves[ik].coefficients[0]);
      EXPECT_EQ(found.energy_ry, field.waves.energy_ry);
    }
}

// A job from files equals that of the built-in crystal which wrote them: 1e-10 eV in Σ.
TEST_F(SpinorFiles, AJobFromFilesEqualsTheCrystal) {
  const std::string crystal =
      "kind = \"gw\"\n[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\nlong_wave = \"states\"\n"
      "spin_orbit_ry_bohr2 = [0.01, 0.02]\ncutoff_ry = 4.0\nk_grid = [2, 2, 2]\nbands = 24\n";
  test::write_files_of(make(), directory_.path());
  const Calculation own = run(crystal + kSums), files = run(kFiles + kSums);
  EXPECT_EQ(files.field.n_occupied, 8);
  ASSERT_EQ(own.quasiparticles.size(), files.quasiparticles.size());
  for (std::size_t i = 0; i < own.quasiparticles.size(); ++i)
    EXPECT_NEAR(files.quasiparticles[i].sigma_ev, own.quasiparticles[i].sigma_ev, 1e-10);
}

// A magnetic part of the density, and occupied levels at Γ without Kramers partner, are refused by
// name. A magnetic part of 0 is no obstacle.
TEST_F(SpinorFiles, NonCollinearMagnetismIsRefused) {
  const MeanField field = make();
  test::write_files_of(field, directory_.path());
  PlaneWaveField density = field.density;
  density.values.resize(4, std::vector<Cplx>(density.values[0].size()));
  write_field(path("RHO"), density);
  EXPECT_EQ(read_field(path("RHO"), "RHO").values, field.density.values);
  density.values[2][0] = 1e-4;
  write_field(path("RHO"), density);
  expect_refusal(kFiles + kSums, {"RHO", "component 3", "non-collinear magnetism"});

  write_field(path("RHO"), field.density);
  Wavefunctions split = field.waves;
  split.energy_ry[1] += 2e-4;
  write_wavefunctions(path("WFN"), split);
  expect_refusal(kFiles + kSums, {"band 1", "k-point 1", "1e-4 Ry", "non-collinear magnetism"});
}

// `run` and `validate` refuse options that are not built for spinors, with key and remedy.
TEST_F(SpinorFiles, OptionsThatAreNotBuiltAreRefused) {
  const MeanField field = make();
  test::write_files_of(field, directory_.path());
  const std::string vsc = kFiles + "vsc = \"VSC\"\nvkb = \"VKB\"\n";
  for (const char* solver : {"", "solver = \"operator\"\n"})
    expect_refusal(vsc + solver + kSums, {"meanfield.vsc", "wfnq"});
  const std::string crystal =
      "kind = \"gw\"\n[meanfield]\nsource = \"epm\"\ncutoff_ry = 4.0\nbands = 24\n";
  expect_refusal(kFiles + kSums + "[perturbation]\ndisplaced = [\".\", \".\"]\n",
                 {"[perturbation]", "nspinor = 2", "meanfield.source = \"epm\""});
  expect_refusal(kFiles + "[epsilon]\ncutoff_ry = 2.0\n[pseudobands]\nvectors = 3\n",
                 {"pseudobands.vectors", "nspinor = 2", "meanfield.source = \"epm\""});
  expect_refusal(crystal + "spin_orbit_ry_bohr2 = [1e-3, 1e-3, 1e-3]\n" + kSums,
                 {"spin_orbit_ry_bohr2", "holds 3 numbers"});
  expect_refusal(crystal + "spin_orbit_ry_bohr2 = 2.0\n" + kSums, {"spin_orbit_ry_bohr2", "1"});
  expect_refusal(crystal + "crystal = \"monolayer\"\nspin_orbit_ry_bohr2 = 1e-3\n" + kSums,
                 {"spin_orbit_ry_bohr2", "monolayer"});
  expect_refusal(kFiles + "spin_orbit_ry_bohr2 = 1e-3\n" + kSums,
                 {"spin_orbit_ry_bohr2", "source = \"epm\""});
}

}  // namespace
}  // namespace quasi::gw
