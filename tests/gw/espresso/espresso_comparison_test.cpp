// Compares jobs from the files of pw2bgw.x with jobs from PREFIX.save of the same runs of pw.x,
// which the test makes. The runs have four functionals, two spins, several grids, a polar and a
// non-polar crystal, and one with screw axes. The test needs Quantum ESPRESSO and Python and runs
// nightly.

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/gw/espresso/save_fixture.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/gw/solver/mean_field/espresso/save_potentials.hpp"

namespace quasi::gw {
namespace {

namespace fs = std::filesystem;

/// Describes one run of Quantum ESPRESSO and the largest errors that its data may have.
struct EspressoRun {
  std::string arguments;           ///< arguments of make_fixture.py after the folder
  double potential_ry = 1e-9;      ///< largest error of V_xc and of the local potential
  double quasiparticle_ev = 1e-7;  ///< largest error of E_qp
};

class EspressoComparison : public testing::TestWithParam<EspressoRun> {
 protected:
  void SetUp() override {
    for (const char* program : {"pw.x", "pw2bgw.x", "/usr/bin/python3"})
      if (std::system(("command -v " + std::string(program) + " >/dev/null").c_str()) != 0)
        GTEST_SKIP() << program << " is not installed on this machine";
    if (!test::has_libxc()) GTEST_SKIP() << "libxc is not installed on this machine";
    if (GetParam().arguments.ends_with("silicon") &&
        !fs::exists("/usr/share/espresso/pseudo/Si.pz-vbc.UPF"))
      GTEST_SKIP() << "the package quantum-espresso-data is not installed on this machine";
    const fs::path script = quasi::test::source_dir() / "tests/gw/espresso/fixture/make_fixture.py";
    const std::string command = "/usr/bin/python3 " + script.string() + " " +
                                directory_.path().string() + " " + GetParam().arguments;
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    if (!test::reads_saves(path("x.save")))
      GTEST_SKIP() << "this program was built without pugixml";
  }
  fs::path path(const std::string& name) const { return directory_.path() / name; }
  std::vector<Quasiparticle> energies(const std::string& mean_field) {
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    // The few bands of these runs hold a small part of the f-sum.
    const std::string text = "kind = \"gw\"\nchecks.accept = [\"f_sum\"]\n[meanfield]\n" +
                             mean_field +
                             "long_wave = \"kp\"\nmax_projector_residual = 0.01\n"
                             "[epsilon]\ncutoff_ry = 4.0\n[sigma]\nband_max = 6\n";
    return run_calculation(parse_deck(text, {}, "deck.toml", directory_.path()), *kernels,
                           std::int64_t{1} << 30, silent)
        .quasiparticles;
  }
  quasi::test::TemporaryDirectory directory_;
};

TEST_P(EspressoComparison, DataAreThoseOfTheConverter) {
  const EspressoSave save = read_espresso_save(path("x.save"));
  const Wavefunctions found = read_espresso_states(save, {}),
                      wanted = read_wavefunctions(path("WFN"));
  EXPECT_EQ(found.k_grid, wanted.k_grid);
  EXPECT_EQ(found.last_occupied, wanted.last_occupied);
  EXPECT_LT(test::largest_difference_of_lists(found.energy_ry, wanted.energy_ry), 1e-13);
  for (std::size_t ik = 0; ik < found.waves.size(); ++ik)
    for (std::size_t spin = 0; spin < found.waves[ik].coefficients.size(); ++spin)
      EXPECT_TRUE(found.waves[ik].coefficients[spin] == wanted.waves[ik].coefficients[spin]);
  const auto &a = found.header.crystal.symmetries, &b = wanted.header.crystal.symmetries;
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t s = 0; s < a.size(); ++s) {
    EXPECT_EQ(a[s].rotation, b[s].rotation);
    const Vec3 turns = (0.5 / kPi) * (a[s].translation - b[s].translation);
    IVec3 whole{};  // Translations are equal if they differ by a lattice vector.
    EXPECT_TRUE(nearest_lattice_point(turns, &whole, 1e-9)) << s;
  }
  EXPECT_LT(test::largest_difference(read_espresso_density(save), read_field(path("RHO"), "RHO")),
            1e-12);
  const double limit = GetParam().potential_ry;
  for (const auto& [of, name] :
       {std::pair{XcDensity::kValence, "VXC"}, {XcDensity::kWithCore, "VXC_CORE"}})
    EXPECT_LT(test::largest_difference(exchange_correlation_of_save(save, of),
                                       read_field(path(name), "VXC")),
              limit)
        << name;
  const PlaneWaveField potential = read_field(path("VSC"), "VSC");
  EXPECT_LT(test::largest_difference(local_potential_of_save(save), potential), limit);
  const Projectors of_save = projectors_of_save(save), of_file = read_projectors(path("VKB"));
  for (int spin = 0; spin < found.header.n_spins; ++spin)
    EXPECT_LT(
        test::largest_difference_of_lists(dense_hamiltonian(found, 0, spin, potential, of_save),
                                          dense_hamiltonian(found, 0, spin, potential, of_file)),
        1e-9);
}

TEST_P(EspressoComparison, QuasiparticlesAreThoseOfTheFiles) {
  const double limit = GetParam().quasiparticle_ev;
  const auto direct = energies("source = \"quantum-espresso\"\nsave = \"x.save\"\n"),
             files = energies(
                 "wfn = \"WFN\"\nrho = \"RHO\"\nvxc = \"VXC\"\nvsc = \"VSC\"\nvkb = \"VKB\"\n");
  ASSERT_EQ(direct.size(), files.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < direct.size(); ++i)
    largest = std::max(largest, std::abs(*direct[i].qp1_ev - *files[i].qp1_ev));
  EXPECT_LT(largest, limit);
  RecordProperty("largest_difference_ev", std::to_string(largest));
}

// Local functionals agree in all digits. The constants of PBE and PBEsol in pw.x 6.7 and libxc
// differ by 1e-6 of the gradient terms.
INSTANTIATE_TEST_SUITE_P(Runs, EspressoComparison,
                         testing::Values(EspressoRun{"PZ 1 8 2 16 zincblende"},
                                         EspressoRun{"PW 1 8 3 16 zincblende"},
                                         EspressoRun{"PBE 1 8 2 16 zincblende", 1e-6, 1e-5},
                                         EspressoRun{"PBESOL 1 8 2 16 zincblende", 1e-6, 1e-5},
                                         EspressoRun{"PZ 2 6 2 10 zincblende"},
                                         EspressoRun{"PBE 2 6 2 10 zincblende", 2e-6, 1e-4},
                                         EspressoRun{"PBE 1 6 2 20 wurtzite", 1e-6, 1e-5},
                                         EspressoRun{"PZ 1 12 2 16 silicon"},
                                         EspressoRun{"PZ 1 12 3 16 silicon"}),
                         [](const auto& run) {
                           std::string name = run.param.arguments;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

}  // namespace
}  // namespace quasi::gw
