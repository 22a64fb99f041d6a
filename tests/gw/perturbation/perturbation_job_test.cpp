// Jobs with the table [perturbation]: elements, acoustic sums, files, resumption and refusals.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/planned_deck.hpp"
#include "tests/gw/support/small_silicon.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/output/result_file.hpp"
#include "workers/gw/output/summary.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw {
namespace {

using test::expect_refusal;
using test::refusal_of_deck;
using test::SmallSilicon;

const std::string kCrystal =
    "[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 5.0\nbands = "
    "59\n[epsilon]\ncutoff_ry = 3.0\n";

Calculation run_deck(const std::string& deck) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  return run_calculation(parse_deck(deck, {}, "test", "."), *kernels, std::int64_t{1} << 30,
                         silent);
}

// A job displaces both atoms of GaAs. The acoustic sum of the mean field vanishes; that of Σ does
// not, since W does not move and the crystal has no inversion. The matrices are those of
// sigma_derivatives() at the energies of bra and ket, so that the mean is Hermitian. 1e-12 Ry/Bohr:
// rounding of 1e4 terms.
TEST(PerturbationJob, GivesTheFirstOrdersAtTheEnergiesOfBraAndKet) {
  const Calculation run = run_deck(kCrystal + "[sigma]\nband_max = 5\n[perturbation]\n");
  ASSERT_TRUE(run.displacements);
  const DisplacementElements& found = *run.displacements;
  ASSERT_EQ(found.displacements.size(), 6u);
  EXPECT_EQ(found.displacements[4].name(), "atom 2 y");
  EXPECT_LT(found.acoustic_mean_field_ry.value_or(1.0), 1e-9);
  EXPECT_GT(found.acoustic_sigma_ry.value_or(0.0), 1e-4);
  const auto n = static_cast<std::size_t>(found.band_max - found.band_min + 1);
  double largest = 0.0, shifts = 0.0, energies = 0.0;
  for (const auto& at_k : found.at)
    for (const ElementsAtK& at : at_k)
      for (std::size_t l = 0; l < n; ++l)
        for (std::size_t m = 0; m < n; ++m) {
          const std::size_t i = l * n + m, adjoint = m * n + l;
          EXPECT_LT(std::abs(at.sigma(i) - std::conj(at.sigma(adjoint))), 1e-12);
          EXPECT_LT(std::abs(at.sigma_bra[i] - std::conj(at.sigma_ket[adjoint])), 1e-12);
          largest = std::max(largest, std::abs(at.sigma(i)));
          shifts = std::max(shifts, std::abs(at.sigma(i) - at.fixed_energies[i]));
          energies = std::max(energies, std::abs(at.sigma_bra[i] - at.sigma_ket[i]));
        }
  EXPECT_GT(largest, 0.01);
  EXPECT_GT(shifts, 1e-3);
  EXPECT_GT(energies, 1e-4);

  const quasi::test::TemporaryDirectory directory;
  write_result(directory.path() / "result.h5", run, std::nullopt, {});
  const H5Reader file(directory.path() / "result.h5");
  const std::vector<double> sigma = file.doubles("/perturbations/sigma_bra");
  ASSERT_EQ(sigma.size(), 6 * n * n * 2);
  const Cplx expected = found.at[0][0].sigma_bra[n + 2] * kRydberg_ev;
  EXPECT_DOUBLE_EQ(sigma[2 * (n + 2)], expected.real());
  EXPECT_DOUBLE_EQ(sigma[2 * (n + 2) + 1], expected.imag());
  EXPECT_EQ(file.text_attribute("/perturbations/sigma_bra", "units"), "eV/Bohr");
  EXPECT_NE(file.text_attribute("/perturbations/sigma_bra", "description"), "");
  const std::string table = table_of(summary_of(run, find_device("cpu"), 1));
  EXPECT_NE(table.find("atom 2 y"), std::string::npos);
  EXPECT_NE(table.find("acoustic sums"), std::string::npos);
}

// Without a displacement the potential is that of the mean field, so that the check by finite
// displacements starts from the same crystal. 1e-14 Ry: rounding of the phases.
TEST(PerturbationJob, TheDisplacedPotentialStartsFromThatOfTheCrystal) {
  for (const char* name : {"silicon", "gaas"}) {
    EmpiricalCrystal crystal = SmallSilicon::small_crystal();
    crystal.name = name;
    const SmallSilicon made(crystal);
    const auto at_rest = empirical_potential(crystal);
    const auto displaced = displaced_potential(crystal, made.field.crystal(), 1, {});
    const auto moved = displaced_potential(crystal, made.field.crystal(), 1, {0.1, 0.0, 0.0});
    ASSERT_EQ(displaced.size(), at_rest.size());
    double change = 0.0;
    for (std::size_t i = 0; i < at_rest.size(); ++i) {
      EXPECT_EQ(displaced[i].first, at_rest[i].first);
      EXPECT_LT(std::abs(displaced[i].second - at_rest[i].second), 1e-14) << name;
      change = std::max(change, std::abs(moved[i].second - at_rest[i].second));
    }
    EXPECT_GT(change, 1e-3);
  }
}

// With all bands of the plane waves and without the rules near the poles, finite displacements of
// the atom give ∂Σ, diagonal and between different states: 1e-5 eV/Bohr. The deviation of central
// differences falls as h².
TEST(PerturbationJob, FiniteDisplacementsGiveTheFirstOrder) {
  const auto largest_ev = [](const std::string& method, const std::string& step) {
    const Calculation run = run_deck(
        kCrystal + "[sigma]\nband_max = 5\npole_half_width_ev = 0\nsx_cut = 1e6\nmethod = \"" +
        method +
        "\"\n[perturbation]\natoms = [2]\ndirections = [\"z\"]\ncheck_step_bohr = " + step + "\n");
    double largest = 0.0;
    for (const ElementsAtK& at : run.displacements->at[0]) {
      EXPECT_FALSE(at.difference.empty());
      largest = std::max(largest, largest_deviation_ry(at) * kRydberg_ev);
    }
    const auto summary = summary_of(run, find_device("cpu"), 1);
    EXPECT_NE(table_of(summary).find("finite displacements deviate"), std::string::npos);
    return largest;
  };
  for (const char* method : {"hl-gpp", "cohsex"}) {
    const double fine = largest_ev(method, "0.005"), coarse = largest_ev(method, "0.01");
    EXPECT_LT(fine, 1e-5) << method;
    EXPECT_GT(coarse, 3.5 * fine) << method;
    EXPECT_LT(coarse, 4.5 * fine) << method;
  }
}

// Each element is that of sigma_derivatives() at one energy alone, bit by bit.
TEST(PerturbationJob, AgreesWithTheDerivativeAtOneEnergy) {
  SmallSilicon silicon;
  SigmaOptions options = silicon.options();
  options.kpoints = {1};
  SilentProgress silent;
  const DeviceContext one{silicon.coulomb, *silicon.kernels, silent};
  DeviceTeam team(*silicon.kernels);
  Checkpoint none;
  const StepContext context{silicon.coulomb, team, none, silent};
  const EmpiricalCrystal crystal = SmallSilicon::small_crystal();
  const DisplacementElements found =
      displacement_elements({crystal, {.wanted = true, .atoms = {2}, .directions = "z"}},
                            silicon.field, silicon.epsilon, options, context);
  EXPECT_FALSE(found.acoustic_sigma_ry);
  // With inversion the acoustic sum of Σ vanishes, too.
  EXPECT_LT(displacement_elements({crystal, {.wanted = true, .directions = "z"}}, silicon.field,
                                  silicon.epsilon, options, context)
                .acoustic_sigma_ry.value_or(1.0),
            1e-12);
  const std::int64_t l = 2, m = 5;
  options.slope = false;
  const auto at_energy_of = [&](std::int64_t band) {
    return sigma_derivatives(
        silicon.field, silicon.epsilon, options,
        {atom_displacement(crystal, silicon.field.crystal(), 1, {0.0, 0.0, 1.0})},
        {silicon.field.waves.energy(0, 1, static_cast<int>(band))}, one)[0][0];
  };
  const SigmaDerivativeAtK bra = at_energy_of(l), ket = at_energy_of(m);
  const auto i = static_cast<std::size_t>(l * bra.n + m);
  EXPECT_EQ(found.at[0][0].sigma_bra[i], bra.at(0, l, m));
  EXPECT_EQ(found.at[0][0].sigma_ket[i], ket.at(0, l, m));
  EXPECT_EQ(found.at[0][0].mean_field[i], bra.mean_field[i]);
}

// Finished parts come from the checkpoint: another cut-off of the exchange changes nothing then.
// Other displacements do not take their place, nor does another ∂V under the same name.
TEST(PerturbationJob, FinishedPartsAreNotCalculatedAgain) {
  SmallSilicon silicon;
  SigmaOptions options = silicon.options();
  options.kpoints = {1};
  SilentProgress silent;
  const quasi::test::TemporaryDirectory directory;
  DeviceTeam team(*silicon.kernels);
  const auto elements = [&](double bare_cutoff_ry, const std::string& directions,
                            const std::string& name = "silicon") {
    options.bare_cutoff_ry = bare_cutoff_ry;
    Checkpoint checkpoint(directory.path(), 7, 0.0, silent);
    EmpiricalCrystal crystal = SmallSilicon::small_crystal();
    crystal.name = name;
    return displacement_elements(
               {crystal, {.wanted = true, .atoms = {1}, .directions = directions}}, silicon.field,
               silicon.epsilon, options, {silicon.coulomb, team, checkpoint, silent})
        .at[0][0];
  };
  const ElementsAtK first = elements(6.0, "x"), resumed = elements(4.0, "x");
  EXPECT_EQ(first.mean_field, resumed.mean_field);
  EXPECT_EQ(first.sigma_bra, resumed.sigma_bra);
  EXPECT_EQ(first.sigma_ket, resumed.sigma_ket);
  EXPECT_EQ(first.fixed_energies, resumed.fixed_energies);
  EXPECT_NE(first.sigma_bra, elements(6.0, "y").sigma_bra);
  EXPECT_NE(first.sigma_bra, elements(6.0, "x", "germanium").sigma_bra);
}

// States that are no eigenstates of H have energies that a rigid shift changes.
TEST(PerturbationJob, AViolatedAcousticSumEndsTheJob) {
  SmallSilicon silicon;
  SigmaOptions options = silicon.options();
  options.kpoints = {1};
  options.band_max = 1;
  KPointWaves& at = silicon.field.waves.waves[1];
  std::vector<Cplx>& c = at.coefficients[0];
  for (std::size_t band = 1; band < 8; ++band)
    for (std::size_t g = 0; g < at.g.size(); ++g)
      c[g] += Cplx(0.0, 0.3) * c[band * at.g.size() + g];
  SilentProgress silent;
  DeviceTeam team(*silicon.kernels);
  Checkpoint none;
  try {
    displacement_elements({SmallSilicon::small_crystal(), {.wanted = true}}, silicon.field,
                          silicon.epsilon, options, {silicon.coulomb, team, none, silent});
    FAIL() << "the sum was accepted";
  } catch (const NotConverged& error) {
    EXPECT_NE(std::string(error.what()).find("acoustic sum of the mean field"), std::string::npos);
  }
}

// Every mistake is refused before ε⁻¹, with the key and a remedy.
TEST(PerturbationJob, BrokenDecksAreRefused) {
  const std::string perturbed = "[perturbation]\n";
  const std::string small =
      "[meanfield]\nsource = \"epm\"\ncutoff_ry = 3.0\nbands = 8\n[epsilon]\ncutoff_ry = 2.0\n";
  EXPECT_EQ(refusal_of_deck(small + perturbed), "");
  const std::vector<std::vector<std::string>> cases{
      {small + perturbed + "atoms = [3]", "perturbation.atoms", "the cell has 2 atoms"},
      {small + perturbed + "atoms = [0]", "perturbation.atoms", "outside 1"},
      {small + perturbed + "atoms = [1.5]", "perturbation.atoms", "whole numbers"},
      {small + perturbed + "atoms = [1, 1]", "perturbation.atoms", "twice"},
      {small + perturbed + "atoms = []", "perturbation.atoms", "empty"},
      {small + perturbed + "directions = [\"w\"]", "perturbation.directions", "choose among"},
      {small + perturbed + "directions = [\"x\", \"x\"]", "perturbation.directions", "twice"},
      {small + perturbed + "directions = []", "perturbation.directions", "empty"},
      {small + perturbed + "directions = \"x\"", "perturbation.directions", "list of texts"},
      {small + perturbed + "check_step_bohr = 1e-6", "perturbation.check_step_bohr", "set 0.01"},
      {small + perturbed + "check_step_bohr = -0.01", "perturbation.check_step_bohr", "outside 0"},
      {small + perturbed + "state_response = \"dfpt\"", "perturbation.state_response",
       "sternheimer"},
      {small + perturbed + "response_residual = 1e-9", "perturbation.response_residual",
       "or remove it"},
      {small + perturbed + "state_response = \"sternheimer\"\nresponse_residual = 0.1",
       "perturbation.response_residual", "outside"},
      {kCrystal + perturbed + "state_response = \"sternheimer\"", "changes nothing here",
       "lower sigma.bands"},
      {small + perturbed + "atom = [1]", "[perturbation]", "did you mean 'atoms'"},
      {"[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\nrho = \"RHO\"\n[epsilon]\ncutoff_ry = 2.0\n" +
           perturbed,
       "meanfield.source", "epm"},
      {"[meanfield]\nstretch = [1.01, 1, 1]\n" + small.substr(12) + perturbed, "meanfield.stretch",
       "form factors"},
      {small + perturbed + "[sigma]\nmethod = \"real-axis\"", "sigma.method = \"real-axis\"",
       "use \"contour\""},
      {small + perturbed + "[sigma]\nmethod = \"imaginary-axis\"",
       "sigma.method = \"imaginary-axis\"", "use \"contour\""},
      {small + perturbed + "[sigma]\ninvalid_modes = \"imaginary\"", "sigma.invalid_modes",
       "two-rydberg"},
      {small + perturbed + "[sigma]\nstatic_remainder = true", "sigma.static_remainder", "false"},
      {small + perturbed + "[sigma]\nmethod = \"cohsex\"\nexact_ch = true", "sigma.exact_ch",
       "false"},
      {small + perturbed + "[sigma]\nouter_loop = \"evgw0\"", "sigma.outer_loop", "[perturbation]"},
      {small + perturbed + "[pseudobands]\nvectors = 2", "pseudobands.vectors", "[perturbation]"},
      {"stop_after = \"epsilon\"\n" + small + perturbed, "stop_after", "no Σ"},
      {"convergence_study = true\n" + small + perturbed, "--converge", "energies alone"}};
  for (const auto& broken : cases) expect_refusal(broken[0], broken[1], broken[2]);
}

}  // namespace
}  // namespace quasi::gw
