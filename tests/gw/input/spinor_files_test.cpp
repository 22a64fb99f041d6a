// Files of BerkeleyGW with two-component states (docs/theory/gw.md 1, 15.4): both formats return
// what was written, jobs from files equal those of the built-in crystal, and what is not built is
// refused by name.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/gw/support/silicon_files.hpp"
#include "tests/gw/support/small_silicon.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/eigensolver/operator_states.hpp"
#include "workers/gw/solver/mean_field/empirical_structure.hpp"
#include "workers/gw/solver/mean_field/spinors/spin_orbit.hpp"

namespace quasi::gw {
namespace {

const std::string kSums =
    "[epsilon]\ncutoff_ry = 2.0\nbands = 18\n[sigma]\nbands = 18\nband_max = 8\n";
const std::string kFiles =
    "kind = \"gw\"\n[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\nrho = \"RHO\"\n";
const std::string kCrystal =
    "kind = \"gw\"\n[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\nlong_wave = \"states\"\n"
    "spin_orbit_ry_bohr2 = [0.01, 0.02]\ncutoff_ry = 4.0\nk_grid = [2, 2, 2]\n";

/// Holds GaAs with spin–orbit coupling on a 2×2×2 grid and its files.
class SpinorFiles : public ::testing::Test {
 protected:
  static EmpiricalCrystal crystal_of(int bands) {
    EmpiricalCrystal crystal;
    crystal.name = "gaas";
    crystal.spin_orbit_ry_bohr2 = {1e-2, 2e-2};
    crystal.wavefunction_cutoff_ry = 4.0;
    crystal.k_grid = {2, 2, 2};
    crystal.bands = bands;
    return crystal;
  }
  static MeanField make(int bands = 24) {
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    return empirical_mean_field(crystal_of(bands), *kernels, silent);
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
  test::write_files_of(make(), directory_.path());
  const Calculation own = run(kCrystal + "bands = 24\n" + kSums), files = run(kFiles + kSums);
  EXPECT_EQ(files.field.n_occupied, 8);
  ASSERT_EQ(own.quasiparticles.size(), files.quasiparticles.size());
  for (std::size_t i = 0; i < own.quasiparticles.size(); ++i)
    EXPECT_NEAR(files.quasiparticles[i].sigma_ev, own.quasiparticles[i].sigma_ev, 1e-10);
}

// Random vectors of files stand for the whole multiplets of WFN, 42 of its 46 bands, because
// partners of the last level may lie beyond the file. Σ and its bars equal those of a built-in
// crystal with 42 bands within 1e-10 eV. With as many vectors as states they are those of all
// bands.
TEST_F(SpinorFiles, PseudobandsStandForTheWholeMultiplets) {
  test::write_files_of(make(46), directory_.path());
  const std::string outer = "[epsilon]\ncutoff_ry = 2.0\n[sigma]\nband_max = 8\n",
                    random = outer + "[pseudobands]\nvectors = 3\nblocks = 3\nratio = 0.5\n";
  const Calculation own = run(kCrystal + "bands = 42\n" + random), files = run(kFiles + random);
  ASSERT_TRUE(own.pseudoband_errors && files.pseudoband_errors);
  EXPECT_EQ(files.pseudobands->given, 42);
  EXPECT_LT(files.pseudobands->kept, 42);
  const auto says = [](const std::string& note) {
    return note.find("stand for 42 of 46 bands") != std::string::npos;
  };
  EXPECT_TRUE(std::any_of(files.plan.notes.begin(), files.plan.notes.end(), says));
  ASSERT_EQ(own.quasiparticles.size(), files.quasiparticles.size());
  for (std::size_t i = 0; i < own.quasiparticles.size(); ++i) {
    EXPECT_NEAR(files.quasiparticles[i].sigma_ev, own.quasiparticles[i].sigma_ev, 1e-10);
    EXPECT_NEAR(files.pseudoband_errors->half_width_ev[i], own.pseudoband_errors->half_width_ev[i],
                1e-10);
  }

  const Calculation all = run(kFiles + outer),
                    full = run(kFiles + outer + "[pseudobands]\nvectors = 1000\n");
  ASSERT_TRUE(full.pseudobands->keeps_all());
  for (std::size_t i = 0; i < all.quasiparticles.size(); ++i)
    EXPECT_NEAR(full.quasiparticles[i].sigma_ev, all.quasiparticles[i].sigma_ev, 1e-10);
}

// VKB holds no D between both components, so that VSC and VKB carry H without the spin–orbit
// term. Without it the states of WFN leave residuals beyond 1e-2 Ry; with it, below 1e-8 Ry.
TEST_F(SpinorFiles, StatesNeedTheTermThatVkbCannotHold) {
  const MeanField field = make();
  write_wavefunctions(path("WFN"), field.waves);
  const Wavefunctions found = read_wavefunctions(path("WFN"), {});
  const PotentialElements potential = empirical_potential(crystal_of(24));
  for (const bool couples : {false, true}) {
    double largest = 0.0;
    for (std::size_t ik = 0; ik < found.k.size(); ++ik) {
      const std::vector<IVec3>& g = found.waves[ik].g;
      HamiltonianParts parts = local_parts(found.header.crystal, found.k[ik], g, potential);
      if (couples) field.spin_orbit->add_to(found.k[ik], g, parts);
      const HamiltonianOperator h(std::move(parts));
      // H without the term acts on each component as on a state of its own.
      const std::int64_t n = h.size(), row = 2 * std::ssize(g), rows = found.n_bands * row / n;
      std::vector<Cplx> image(static_cast<std::size_t>(found.n_bands * row));
      const Cplx* const states = found.waves[ik].coefficients[0].data();
      h.apply({states, {rows, n}}, view<Cplx>(image, rows, n));
      for (int band = 0; band < found.n_bands; ++band) {
        double sum = 0.0;
        for (std::int64_t i = band * row; i < (band + 1) * row; ++i)
          sum += std::norm(image[static_cast<std::size_t>(i)] -
                           found.energy(0, static_cast<int>(ik), band) * states[i]);
        largest = std::max(largest, std::sqrt(sum));
      }
    }
    if (couples)
      EXPECT_LT(largest, 1e-8);
    else
      EXPECT_GT(largest, 1e-2);
  }
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
    expect_refusal(vsc + solver + kSums,
                   {"meanfield.vsc", "VKB", "no D between both components", "wfnq"});
  const std::string crystal =
      "kind = \"gw\"\n[meanfield]\nsource = \"epm\"\ncutoff_ry = 4.0\nbands = 24\n";
  expect_refusal(kFiles + kSums + "[perturbation]\ndisplaced = [\".\", \".\"]\n",
                 {"[perturbation]", "nspinor = 2", "no D between both components",
                  "meanfield.source = \"epm\""});
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
