// Jobs with wavefunctions of displaced crystals and W at rest against the first order of Σ.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/small_silicon.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/gw/solver/screening/epsilon_file.hpp"

namespace quasi::gw {
namespace {

const std::string kCrystal =
    "[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 5.0\nk_grid = [1, 1, 1]\n"
    "bands = 59\n[epsilon]\ncutoff_ry = 3.0\n";
const std::string kSigma = "[sigma]\nband_max = 5\nsx_cut = 1e6\npole_half_width_ev = 0\n";

/// Holds the files of GaAs at Γ at rest and with atom 2 displaced along z.
class DisplacedStates : public ::testing::Test {
 protected:
  DisplacedStates() : rest_(run(kCrystal + kSigma + "[perturbation]\n")) {
    write_wavefunctions(path("WFN"), rest_.field.waves);
    write_field(path("RHO"), rest_.field.density);
    const CoulombInteraction coulomb(rest_.field.crystal(), rest_.field.waves.k_grid, {});
    write_epsilon({path("eps0mat.h5"), path("epsmat.h5")}, rest_.field, rest_.epsilon,
                  rest_.plan.epsilon, coulomb);
  }
  std::filesystem::path path(const std::string& name) const { return directory_.path() / name; }
  Calculation run(const std::string& deck) const {
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    return run_calculation(parse_deck(deck, {}, "deck.toml", directory_.path()), *kernels,
                           std::int64_t{1} << 30, silent);
  }
  /// Writes the states of the crystal with atom 2 displaced by a length along z.
  void write_displaced(const std::string& name, double z_bohr) const {
    EmpiricalCrystal wanted = test::SmallSilicon::small_crystal();
    wanted.name = "gaas";
    Wavefunctions waves = rest_.field.waves;
    const Crystal& crystal = rest_.field.crystal();
    const PotentialElements potential = displaced_potential(wanted, crystal, 1, {0, 0, z_bohr});
    const std::vector<IVec3>& g = waves.waves[0].g;
    const GIndex index(g);
    const auto n = static_cast<std::int64_t>(g.size());
    std::vector<Cplx> h(g.size() * g.size()),
        states(static_cast<std::size_t>(waves.n_bands) * g.size());
    for (std::size_t i = 0; i < g.size(); ++i) {
      for (const auto& [difference, value] : potential)
        if (const std::int32_t j = index.find(g[i] - difference); j >= 0)
          h[i * g.size() + static_cast<std::size_t>(j)] = value;
      h[i * g.size() + i] += metric_dot(crystal.bdot, to_real(g[i]), to_real(g[i]));
    }
    const auto kernels = make_gw_kernels(find_device("cpu"));
    kernels->dense().eigen_hermitian(view<const Cplx>(h, n, n),
                                     view<double>(waves.energy_ry, waves.n_bands),
                                     view<Cplx>(states, waves.n_bands, n));
    waves.waves[0].coefficients[0] = states;
    waves.header.crystal.symmetries.resize(1);
    waves.header.crystal.atoms[1].position_alat[2] += z_bohr / crystal.alat_bohr;
    write_wavefunctions(path(name), waves);
  }
  std::string deck_of(const std::string& wfn) const {
    return "[meanfield]\nwfn = \"" + wfn +
           "\"\nwfn_outer = \"WFN\"\nrho = \"RHO\"\ndisplaced = true\n[epsilon]\n"
           "eps0mat = \"eps0mat.h5\"\n" +
           kSigma;
  }
  quasi::test::TemporaryDirectory directory_;
  Calculation rest_;
};

// Differences of h and h/2 together leave the fourth power of h: 1e-6 Ry/Bohr. Coefficients and
// ε⁻¹ pass through files. The diagonal elements are those of the job's first order at E_l.
TEST_F(DisplacedStates, GiveTheFirstOrderOfSigma) {
  std::vector<std::vector<double>> sigma_ry;
  for (const double z_bohr : {0.01, -0.01, 0.005, -0.005}) {
    write_displaced("WFN_displaced", z_bohr);
    const Calculation run = this->run(deck_of("WFN_displaced"));
    sigma_ry.emplace_back();
    for (const Quasiparticle& state : run.quasiparticles)
      sigma_ry.back().push_back(state.sigma_ev / kRydberg_ev);
  }
  const auto n = static_cast<std::size_t>(rest_.displacements->band_max);
  const ElementsAtK& exact = rest_.displacements->at[5][0];
  ASSERT_EQ(sigma_ry[0].size(), n);
  double largest = 0.0;
  // The triplet of the valence top mixes, so that its trace alone is compared.
  const auto trace = [](const std::vector<double>& list) { return list[1] + list[2] + list[3]; };
  const auto derivative = [&](const auto& of) {
    return 4.0 / 3.0 * (of(sigma_ry[2]) - of(sigma_ry[3])) / 0.01 -
           (of(sigma_ry[0]) - of(sigma_ry[1])) / 0.06;
  };
  double exact_trace = 0.0;
  for (std::size_t l = 1; l < 4; ++l) exact_trace += exact.sigma_bra[l * n + l].real();
  EXPECT_NEAR(derivative(trace), exact_trace, 1e-6);
  for (const std::size_t l : {std::size_t{0}, std::size_t{4}}) {
    const double found = derivative([&](const std::vector<double>& list) { return list[l]; });
    EXPECT_NEAR(found, exact.sigma_bra[l * n + l].real(), 1e-6) << l;
    largest = std::max(largest, std::abs(found));
  }
  EXPECT_GT(largest, 1e-3);
}

// Each mistake is refused with the key and the remedy.
TEST_F(DisplacedStates, BrokenDecksAreRefused) {
  const auto message = [&](const std::string& deck) -> std::string {
    try {
      run(deck);
    } catch (const InvalidInput& failure) {
      return failure.what();
    }
    return "";
  };
  write_displaced("WFN_displaced", 0.01);
  write_displaced("WFN_far", 0.3);
  const auto without = [&](const std::string& line) {
    std::string deck = deck_of("WFN_displaced");
    deck.erase(deck.find(line), line.size());
    return deck;
  };
  EXPECT_NE(message(without("displaced = true\n")).find("belong to different calculations"),
            std::string::npos);
  const std::string stored = "eps0mat = \"eps0mat.h5\"\n";
  std::string own = deck_of("WFN_displaced");
  own.replace(own.find(stored), stored.size(), "cutoff_ry = 3.0\n");
  EXPECT_NE(message(own).find("needs epsilon.eps0mat"), std::string::npos);
  EXPECT_NE(message(deck_of("WFN_far")).find("above the limit of 0.2"), std::string::npos);
  EXPECT_NE(message(deck_of("WFN")).find("displaces no atom"), std::string::npos);
  EXPECT_NE(message(deck_of("WFN_displaced") + "[perturbation]\n").find("[perturbation]"),
            std::string::npos);
}

}  // namespace
}  // namespace quasi::gw
