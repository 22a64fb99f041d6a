// Jobs with inner states of displaced crystals, with W and outer states at rest, against the first
// order of Σ of a job with [perturbation].

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "tests/gw/perturbation/displaced_waves.hpp"
#include "tests/gw/perturbation/tabulated_silicon.hpp"
#include "tests/gw/support/displaced_silicon.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/gw/output/result_file.hpp"
#include "workers/gw/solver/calculation/problem_digest.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw {
namespace {

using test::DisplacedSilicon;
using test::DisplacedSiliconFiles;
using test::DisplacedWaves;
using test::kStates;
using test::kStep_bohr;
using test::TabulatedPoles;

/// Returns ⟨l|∂Σ(E_l)|l⟩ of a job with [perturbation], averaged over multiplets, in the
/// order of the quasiparticles, eV/Bohr.
std::vector<double> first_order(const Calculation& run) {
  const DisplacementElements& found = *run.displacements;
  const auto n = static_cast<std::size_t>(found.band_max - found.band_min + 1);
  std::vector<double> list;
  for (std::size_t i = 0; i < found.k_index.size(); ++i)
    for (const auto& [begin, end] :
         multiplets(run.field.waves, 0, found.k_index[i], found.band_min - 1, found.band_max)) {
      double sum = 0.0;
      for (int band = begin; band < end; ++band) {
        const auto l = static_cast<std::size_t>(band - found.band_min + 1);
        sum += found.at[0][i].sigma_bra[l * n + l].real();
      }
      list.insert(list.end(), static_cast<std::size_t>(end - begin),
                  kRydberg_ev * sum / (end - begin));
    }
  return list;
}

/// Compares differences of two steps with the first order of the same method.
void expect_first_order(const std::string& sigma) {
  const DisplacedWaves files;
  const Calculation exact_run = files.run(files.perturbation_deck(sigma));
  const std::vector<double> exact = first_order(exact_run);
  std::vector<std::vector<double>> slopes;
  for (const double h_bohr : {0.004, 0.002}) {
    std::vector<std::vector<double>> sides;
    for (const double z_bohr : {h_bohr, -h_bohr}) {
      files.write_displaced("WFN_inner", z_bohr);
      sides.emplace_back();
      const Calculation run = files.run(files.inner_deck(sigma));
      for (const Quasiparticle& state : run.quasiparticles) sides.back().push_back(state.sigma_ev);
    }
    slopes.emplace_back();
    for (std::size_t i = 0; i < exact.size(); ++i)
      slopes.back().push_back((sides[0].at(i) - sides[1].at(i)) / (2.0 * h_bohr));
  }
  int falls = 0, large = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR((4.0 * slopes[1][i] - slopes[0][i]) / 3.0, exact[i], 1e-6) << i;
    const double error = slopes[0][i] - exact[i], half = slopes[1][i] - exact[i];
    large += std::abs(exact[i]) > 0.1 ? 1 : 0;
    if (std::abs(half) < 1e-7) continue;
    ++falls;
    EXPECT_NEAR(error / half, 4.0, 0.02) << i;
  }
  EXPECT_GE(falls, 2);
  EXPECT_GE(large, 2);
}

// Silicon on a 2 × 2 × 2 grid, at L, where states without partner have a first order. The job at
// rest adds the states beyond its bands by the Sternheimer equation, since inner states from files
// are whole eigenstates of the displaced H. Errors fall by 4.0 with half of h. Differences of h and
// h/2 together leave the fourth power of h, 1e-6 eV/Bohr.
TEST(InnerStates, GiveTheFirstOrderOfSigmaByPlasmonPoles) {
  expect_first_order("sx_cut = 1e6\npole_half_width_ev = 0\n");
}
TEST(InnerStates, GiveTheFirstOrderOfCohsex) { expect_first_order("method = \"cohsex\"\n"); }

// Energies of outer states are those at rest. A displacement of 0.05 Bohr changes Σ by less than
// 0.25 eV, since first orders are below 5 eV/Bohr. The result names the displaced atom, its note
// forbids to read energies, and there are no files of energies. The law of multiplets is tested at
// rest, since a displaced atom splits them.
TEST(InnerStates, AreNamedInTheResult) {
  const DisplacedWaves files;
  files.write_displaced("WFN_inner", 0.05);
  const std::string sigma = "sx_cut = 1e6\npole_half_width_ev = 0\n";
  const Calculation rest = files.run(files.rest_deck(sigma)),
                    moved = files.run(files.inner_deck(sigma));
  ASSERT_EQ(rest.quasiparticles.size(), moved.quasiparticles.size());
  double change = 0.0;
  for (std::size_t i = 0; i < rest.quasiparticles.size(); ++i) {
    EXPECT_EQ(rest.quasiparticles[i].mean_field_ev, moved.quasiparticles[i].mean_field_ev);
    EXPECT_NEAR(rest.quasiparticles[i].sigma_ev, moved.quasiparticles[i].sigma_ev, 0.25);
    change = std::max(change,
                      std::abs(rest.quasiparticles[i].sigma_ev - moved.quasiparticles[i].sigma_ev));
    EXPECT_FALSE(moved.quasiparticles[i].qp1_ev);
  }
  EXPECT_GT(change, 1e-3);
  const auto directory = files.path("out");
  std::filesystem::create_directory(directory);
  write_result(directory / "result.h5", moved, std::nullopt, {});
  write_energies(directory, moved);
  const H5Reader file(directory / "result.h5");
  EXPECT_NEAR(file.doubles("/inner_states/displacement").at(2), 0.05, 1e-9);
  EXPECT_EQ(file.text_attribute("/inner_states/displacement", "units"), "Bohr");
  EXPECT_FALSE(std::filesystem::exists(directory / "eqp1.dat"));
  const auto& notes = moved.plan.notes;
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("gives no quasiparticle energies") != std::string::npos;
  }));
  const auto& laws = moved.violated_laws;
  EXPECT_EQ(std::count(laws.begin(), laws.end(), "multiplets"), 0);
  // Checkpoints of both jobs have different names.
  const CoulombInteraction coulomb(rest.field.crystal(), rest.field.waves.k_grid, {});
  EXPECT_NE(digest_of(rest.field, rest.plan, coulomb.options(), nullptr),
            digest_of(moved.field, rest.plan, coulomb.options(), nullptr));
}

/// Holds v̄ and ε⁻¹ of TabulatedPoles as files, and runs jobs whose Σ the tables have: at Γ,
/// with all plane waves as bands.
class TabulatedJob {
 public:
  explicit TabulatedJob(const TabulatedPoles& tables) {
    std::ofstream averages(directory_.path() / "vcoul.dat");
    averages.precision(17);
    for (std::size_t i = 0; i < tables.coulomb.size(); ++i) {
      const IVec3& g = tables.sphere.g[i];
      averages << "0 0 0 " << g[0] << ' ' << g[1] << ' ' << g[2] << ' ' << tables.coulomb[i]
               << '\n';
    }
    averages.close();
    const MeanField field = files_.field();
    const CoulombInteraction coulomb(field.crystal(), {1, 1, 1},
                                     {.average_file = (directory_.path() / "vcoul.dat").string()});
    DielectricMatrix m{.q = {1e-5, 0.0, 0.0}, .at_gamma = true, .sphere = tables.sphere};
    for (const IVec3& g : m.sphere.g) m.coulomb.push_back(coulomb.plain(m.q, g));
    m.frequencies_ry = {Cplx{}};
    m.inverse.push_back(stored_inverse(tables, m, coulomb));
    const EpsilonOptions options{
        .epsilon_cutoff_ry = test::kEpsilonCutoff_ry, .bands = kStates, .frequencies_ry = {Cplx{}}};
    write_epsilon({directory_.path() / "eps0mat.h5", directory_.path() / "epsmat.h5"}, field, {m},
                  options, coulomb);
  }
  /// Runs Σ of bands 1 to 7 at E_l and at half of the gap of both triplets from it.
  /// @param displaced  null: at rest
  Calculation run(test::ReferenceCase* displaced, double half_gap_ev) {
    const auto path = [](const std::filesystem::path& p) { return "\"" + p.string() + "\"\n"; };
    std::string deck = "self_test = false\n[meanfield]\n";
    for (const auto& [key, file] :
         {std::pair{"wfn", "WFN"}, {"rho", "RHO"}, {"vsc", "VSC"}, {"vkb", "VKB"}})
      deck += std::string(key) + " = " + path(files_.rest.file(file));
    if (displaced != nullptr)
      for (const auto& [key, file] :
           {std::pair{"wfn_inner", "WFN"}, {"vsc_inner", "VSC"}, {"vkb_inner", "VKB"}})
        deck += std::string(key) + " = " + path(displaced->file(file));
    char energies[100];
    std::snprintf(energies, sizeof energies,
                  "spectrum_window_ev = %.12f\nspectrum_step_ev = %.12f\n", 2.2 * half_gap_ev,
                  half_gap_ev);
    deck +=
        "[epsilon]\neps0mat = \"eps0mat.h5\"\n[coulomb]\naverage_file = \"vcoul.dat\"\n"
        "[sigma]\nbands = 283\nband_max = 7\nbare_cutoff_ry = 6\nsx_cut = 1e6\n"
        "pole_half_width_ev = 0\ninvalid_modes = \"skip\"\n" +
        std::string(energies);
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    return run_calculation(parse_deck(deck, {}, "deck.toml", directory_.path()), *kernels,
                           std::int64_t{1} << 30, silent);
  }
  DisplacedSilicon& files() { return files_; }

 private:
  /// Returns ε⁻¹ that becomes that of the tables once the job has averaged the interaction.
  static UnsetVector<Cplx> stored_inverse(const TabulatedPoles& tables, const DielectricMatrix& m,
                                          const CoulombInteraction& coulomb) {
    const std::vector<double> root = roots_of_coulomb(m, tables.coulomb, coulomb);
    const std::size_t n = tables.coulomb.size();
    UnsetVector<Cplx> stored(n * n);
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h) {
        const double averaged = g == h ? 1.0 : root[g] * root[h] / tables.coulomb[h];
        stored[g * n + h] =
            tables.inverse[g * n + h] * std::sqrt(m.coulomb[g] / m.coulomb[h]) / averaged;
      }
    return stored;
  }
  quasi::test::TemporaryDirectory directory_;
  DisplacedSilicon files_;
};

// Wavefunctions of the reference calculation with an atom displaced by ±0.01 Bohr, and its W.
// ∂Σ of a triplet is proportional to ∂V there, because both have one irreducible part. Factors
// are those of the tables of bands 4 and 5, 0.844906305/1.99089740 and 0.461998924/1.25088763, for
// every member, however the triplet chooses its members. 1e-5 eV/Bohr, at E = (E_4 + E_5)/2.
TEST(InnerStates, GiveTheDifferencesOfTheTables) {
  QUASI_NEED_REFERENCE("gw/gwpt");
  DisplacedSiliconFiles silicon;
  const TabulatedPoles tables(silicon);
  TabulatedJob job(tables);
  const double half_gap_ev =
      0.5 * kRydberg_ev * (silicon.waves.energy(0, 0, 4) - silicon.waves.energy(0, 0, 3));
  const Calculation up = job.run(&job.files().plus, half_gap_ev),
                    down = job.run(&job.files().minus, half_gap_ev),
                    rest = job.run(nullptr, half_gap_ev);
  silicon.waves = rest.field.waves;
  const std::vector<Cplx> coupling = silicon.coupling();
  const auto sigma_ev = [&](const Calculation& run, int band) {
    const double offset_ry = (band < 4 ? 1.0 : -1.0) * half_gap_ev / kRydberg_ev;
    const auto& offsets = run.plan.sigma.offsets_ry;
    const auto at = std::find_if(offsets.begin(), offsets.end(),
                                 [&](double x) { return std::abs(x - offset_ry) < 1e-9; });
    EXPECT_NE(at, offsets.end());
    const auto e = static_cast<std::size_t>(at - offsets.begin()),
               l = static_cast<std::size_t>(band);
    const SelfEnergyAtK& sum = run.sigma[0];
    return kRydberg_ev * (sum.x_ry[l] + sum.sx_ry[e][l].real() + sum.ch_ry[e][l].real());
  };
  EXPECT_NEAR(sigma_ev(rest, 3), -12.9099672, 2e-5);
  EXPECT_NEAR(sigma_ev(rest, 4), -8.94310935, 2e-5);
  double largest = 0.0;
  for (int band = 1; band < 7; ++band) {
    const double found = (sigma_ev(up, band) - sigma_ev(down, band)) / (2.0 * kStep_bohr),
                 g = kRydberg_ev * coupling[static_cast<std::size_t>(band * (kStates + 1))].real();
    EXPECT_NEAR(found, g * (band < 4 ? 0.844906305 / 1.99089740 : 0.461998924 / 1.25088763), 1e-5)
        << band;
    largest = std::max(largest, std::abs(found));
  }
  EXPECT_GT(largest, 0.3);
}

}  // namespace
}  // namespace quasi::gw
