#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <string>

#include "tests/gw/support/reference_files.hpp"
#include "tests/gw/support/state_comparison.hpp"
#include "tests/support/every_device.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/eigensolver/lowest_states.hpp"
#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"

// The iterative eigensolver against the dense one and on operators of known spectrum
// (docs/theory/gw.md 9.2).
namespace quasi::gw {
namespace {

using test::ReferenceCase;

constexpr EigensolverOptions kOperator{.method = Eigensolver::kOperator};

class LowestStates : public quasi::test::OnEveryDevice {
 protected:
  HamiltonianKernels& kernels() { return kernels_->hamiltonian(); }

 private:
  std::unique_ptr<GwKernels> kernels_ = make_gw_kernels(GetParam());
};
class LowestStatesOfCrystals : public quasi::test::OnEveryDevice {};

/// A diagonal operator. Its eigenvalues are known without arithmetic.
HamiltonianOperator diagonal_operator(std::vector<double> energy_ry) {
  HamiltonianParts parts;
  parts.kinetic_ry = std::move(energy_ry);
  return HamiltonianOperator(std::move(parts));
}

/// 1 state at 0, `fold` states at 1, and 400 above from 1.5 to 10, in a scrambled order.
std::vector<double> spectrum_with_multiplet(int fold) {
  std::vector<double> energy{0.0};
  energy.insert(energy.end(), static_cast<std::size_t>(fold), 1.0);
  for (int i = 0; i < 400; ++i) energy.push_back(1.5 + 8.5 * i / 399.0);
  std::vector<double> scrambled(energy.size());
  for (std::size_t i = 0; i < energy.size(); ++i) scrambled[i * 13 % energy.size()] = energy[i];
  return scrambled;
}

// The multiplet that the last wanted state belongs to is returned whole: one that the guard states
// hold, and one that is larger than they are.
TEST_P(LowestStates, ReturnWholeMultiplets) {
  for (const int fold : {3, 40}) {
    const gw::LowestStates found =
        lowest_states(diagonal_operator(spectrum_with_multiplet(fold)), kernels(), 2, kOperator);
    ASSERT_EQ(found.energy_ry.size(), static_cast<std::size_t>(1 + fold));
    EXPECT_NEAR(found.energy_ry[0], 0.0, 1e-12);
    for (int n = 1; n <= fold; ++n)
      EXPECT_NEAR(found.energy_ry[static_cast<std::size_t>(n)], 1.0, 1e-12);
    EXPECT_LE(found.largest_residual_ry, kOperator.residual_ry);
  }
}

// A block that holds the whole space needs no iteration.
TEST_P(LowestStates, FindAllStatesOfASmallSpace) {
  const gw::LowestStates found =
      lowest_states(diagonal_operator({3.0, 1.0, 2.0, 5.0}), kernels(), 4, kOperator);
  ASSERT_EQ(found.energy_ry.size(), 4u);
  const double expected[] = {1.0, 2.0, 3.0, 5.0};
  for (std::size_t n = 0; n < 4; ++n) EXPECT_NEAR(found.energy_ry[n], expected[n], 1e-13);
  EXPECT_EQ(found.iterations, 0);
}

TEST_P(LowestStates, AreOrthonormalEigenstates) {
  const HamiltonianOperator h = diagonal_operator(spectrum_with_multiplet(5));
  const gw::LowestStates found = lowest_states(h, kernels(), 20, kOperator);
  const std::int64_t n = h.size(), m = static_cast<std::int64_t>(found.energy_ry.size());
  std::vector<Cplx> image(found.coefficients.size());
  const auto c = view<const Cplx>(found.coefficients, m, n);
  const auto hc = view<Cplx>(image, m, n);
  h.apply(c, hc);
  for (std::int64_t a = 0; a < m; ++a) {
    double residual2 = 0.0;
    for (std::int64_t i = 0; i < n; ++i)
      residual2 += std::norm(hc(a, i) - found.energy_ry[static_cast<std::size_t>(a)] * c(a, i));
    EXPECT_LE(std::sqrt(residual2), 1.01 * kOperator.residual_ry) << a;
    for (std::int64_t b = 0; b <= a; ++b) {
      Cplx sum;
      for (std::int64_t i = 0; i < n; ++i) sum += std::conj(c(a, i)) * c(b, i);
      EXPECT_LT(std::abs(sum - (a == b ? 1.0 : 0.0)), 1e-12) << a << ' ' << b;
    }
  }
}

TEST_P(LowestStates, SayThatTheyDidNotConverge) {
  EigensolverOptions options = kOperator;
  options.max_iterations = 1;
  try {
    lowest_states(diagonal_operator(spectrum_with_multiplet(3)), kernels(), 100, options);
    ADD_FAILURE() << "one iteration was enough";
  } catch (const NotConverged& failure) {
    const std::string text = failure.what();
    for (const char* word : {"of 100", "residual", "1.00e-08", "meanfield.residual_ry", "dense"})
      EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
  }
}

TEST_P(LowestStates, RefuseMoreThanThereAre) {
  EXPECT_THROW(lowest_states(diagonal_operator({1.0, 2.0}), kernels(), 3, kOperator), InvalidInput);
}

/// Compares states of a built-in crystal at one k by both methods.
void expect_both_methods_agree(const Device& device, EmpiricalCrystal crystal, const Vec3& k,
                               int n_bands) {
  const auto kernels = make_gw_kernels(device);
  SilentProgress silent;
  EmpiricalCrystal small = crystal;
  small.bands = crystal.cubic_cell ? 40 : 8;
  small.by_velocity = true;
  const Crystal cell = empirical_mean_field(small, *kernels, silent).crystal();
  const DenseStates dense = empirical_states(crystal, cell, *kernels)(k, 0, n_bands);
  crystal.eigensolver = kOperator;
  const DenseStates found = empirical_states(crystal, cell, *kernels)(k, 0, n_bands);
  test::expect_equal_states(found.energy_ry, found.coefficients, dense.energy_ry,
                            dense.coefficients, 1e-9);
}

// 1e-9 Ry: errors of energies are of second order in residuals of 1e-8.
TEST_P(LowestStatesOfCrystals, AreThoseOfTheMatrixForEightAtoms) {
  EmpiricalCrystal silicon;
  silicon.cubic_cell = true;
  expect_both_methods_agree(GetParam(), silicon, {0, 0, 0}, 34);
  expect_both_methods_agree(GetParam(), silicon, {0.1, 0.2, -0.3}, 34);
  EmpiricalCrystal gaas = silicon;
  gaas.name = "gaas";
  gaas.wavefunction_cutoff_ry = 8.0;
  gaas.origin_shift = {0.01, 0.02, 0.03};
  expect_both_methods_agree(GetParam(), gaas, {0, 0, 0}, 40);
  expect_both_methods_agree(GetParam(), gaas, {0.5, 0.0, 0.25}, 40);
}

QUASI_ON_EVERY_DEVICE(LowestStates);
QUASI_ON_EVERY_DEVICE(LowestStatesOfCrystals);

/// The references with VSC and VKB of BerkeleyGW.
class LowestStatesOfFiles : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { QUASI_NEED_REFERENCE(std::string("gw/") + GetParam()); }
};

TEST_P(LowestStatesOfFiles, AreThoseOfTheMatrix) {
  ReferenceCase files(GetParam());
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const PlaneWaveField vsc = read_field(files.file("VSC"), "VSC");
  const Projectors vkb = read_projectors(files.file("VKB"));
  Wavefunctions dense = read_wavefunctions(files.file("WFN"));
  const int n_bands = dense.last_occupied[0] + 12;
  Wavefunctions found = dense;
  replace_by_dense_states(dense, n_bands, {vsc, vkb}, *kernels, silent);
  replace_by_dense_states(found, n_bands, {vsc, vkb, kOperator}, *kernels, silent);
  for (int ik = 0; ik < dense.n_k(); ++ik) {
    const auto energies = [&](const Wavefunctions& w) {
      const auto first = w.energy_ry.begin() + std::ptrdiff_t{1} * ik * n_bands;
      return std::vector<double>(first, first + n_bands);
    };
    const auto at = static_cast<std::size_t>(ik);
    test::expect_equal_states(energies(found), found.waves[at].coefficients[0], energies(dense),
                              dense.waves[at].coefficients[0], 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(References, LowestStatesOfFiles, testing::Values("si2", "si8"));

TEST_P(LowestStatesOfCrystals, HaveTheSameBitsForAnyNumberOfThreads) {
  EmpiricalCrystal crystal;
  crystal.cubic_cell = true;
  crystal.eigensolver = kOperator;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  crystal.bands = 40;
  crystal.by_velocity = true;
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const MeanField one = empirical_mean_field(crystal, *kernels, silent);
  omp_set_num_threads(3);
  const MeanField three = empirical_mean_field(crystal, *kernels, silent);
  omp_set_num_threads(before);
  EXPECT_EQ(one.waves.energy_ry, three.waves.energy_ry);
  EXPECT_EQ(one.waves.waves[0].coefficients, three.waves.waves[0].coefficients);
}

Calculation run(const std::string& solver) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const std::string deck = R"(
kind = "gw"
[meanfield]
source = "epm"
cutoff_ry = 6.0
k_grid = [2, 2, 2]
bands = 20
)" + solver + R"(
[epsilon]
cutoff_ry = 4.0
[sigma]
band_max = 8
)";
  return run_calculation(parse_deck(deck, {}, "test", "."), *kernels, std::int64_t{1} << 30,
                         silent);
}

// The whole job from states of either method. 1e-6 eV: states differ by residuals of 1e-8 Ry.
TEST(OperatorSolver, GivesTheSelfEnergiesOfTheDenseOne) {
  const Calculation dense = run(""), found = run("solver = \"operator\"");
  ASSERT_EQ(dense.quasiparticles.size(), found.quasiparticles.size());
  ASSERT_FALSE(dense.quasiparticles.empty());
  for (std::size_t i = 0; i < dense.quasiparticles.size(); ++i)
    EXPECT_NEAR(found.quasiparticles[i].sigma_ev, dense.quasiparticles[i].sigma_ev, 1e-6) << i;
}

/// Keeps the lines of the log.
class LoggedProgress : public SilentProgress {
 public:
  void log(std::string_view line) override { lines += std::string(line) + '\n'; }
  std::string lines;
};

TEST(OperatorSolver, LogsItsLargestResidual) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  EmpiricalCrystal crystal;
  crystal.bands = 8;
  LoggedProgress dense, found;
  empirical_mean_field(crystal, *kernels, dense);
  EXPECT_EQ(dense.lines.find("residual"), std::string::npos) << dense.lines;
  crystal.eigensolver = kOperator;
  empirical_mean_field(crystal, *kernels, found);
  const std::string before = "largest residual is ";
  const auto at = found.lines.find(before);
  ASSERT_NE(at, std::string::npos) << found.lines;
  const double residual_ry = std::stod(found.lines.substr(at + before.size()));
  EXPECT_GT(residual_ry, 0.0);
  EXPECT_LE(residual_ry, kOperator.residual_ry);
}

// The messages name the key, and the deck's residual reaches the solver.
TEST(OperatorSolver, RefusesKeysThatHaveNoEffect) {
  const auto refusal = [](const std::string& lines) -> std::string {
    try {
      parse_deck("kind = \"gw\"\n[meanfield]\n" + lines + "[epsilon]\ncutoff_ry = 4.0\n", {},
                 "test", ".");
    } catch (const InvalidInput& failure) {
      return failure.what();
    }
    return "accepted";
  };
  EXPECT_NE(refusal("source = \"epm\"\nresidual_ry = 1e-9\n").find("meanfield.residual_ry"),
            std::string::npos);
  EXPECT_NE(refusal("wfn = \"WFN\"\nrho = \"RHO\"\nsolver = \"operator\"\n").find("vsc and vkb"),
            std::string::npos);
  const Deck deck = parse_deck(
      "kind = \"gw\"\n[meanfield]\nsource = \"epm\"\nsolver = \"operator\"\nresidual_ry = 1e-9\n"
      "[epsilon]\ncutoff_ry = 4.0\n",
      {}, "test", ".");
  EXPECT_EQ(deck.mean_field.crystal.eigensolver.method, Eigensolver::kOperator);
  EXPECT_EQ(deck.mean_field.crystal.eigensolver.residual_ry, 1e-9);
}

}  // namespace
}  // namespace quasi::gw
