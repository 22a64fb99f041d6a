// Compares H of two-component states as an operator, and its lowest states, with the matrix of H
// (docs/theory/gw.md 9.1, 9.2 and 15.1).

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/gw/support/state_comparison.hpp"
#include "tests/support/every_device.hpp"
#include "workers/backend/philox.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/eigensolver/operator_states.hpp"
#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"
#include "workers/gw/solver/mean_field/empirical_structure.hpp"

namespace quasi::gw {
namespace {

constexpr EigensolverOptions kOperator{.method = Eigensolver::kOperator};

/// Returns a crystal with spin–orbit coupling, of two atoms or of the cubic cell of eight.
EmpiricalCrystal coupled_crystal(const std::string& name, double cutoff_ry, bool cubic = false) {
  EmpiricalCrystal crystal;
  crystal.name = name;
  crystal.cubic_cell = cubic;
  crystal.wavefunction_cutoff_ry = cutoff_ry;
  crystal.spin_orbit_ry_bohr2 = {0.0125, 0.0223};
  if (name == "germanium") crystal.spin_orbit_ry_bohr2 = {0.013, 0.013};
  return crystal;
}

/// Holds H at one k as an operator, and makes its matrix from the definitions.
struct OperatorAndMatrix {
  OperatorAndMatrix(const EmpiricalCrystal& wanted, const Vec3& k)
      : crystal(empirical_crystal(wanted)),
        sphere(make_g_sphere(crystal.bdot, k, wanted.wavefunction_cutoff_ry)),
        term(spin_orbit_term(wanted, crystal)),
        potential(empirical_potential(wanted)) {}

  HamiltonianOperator make_operator() const {
    HamiltonianParts parts = local_parts(crystal, sphere.q, sphere.g, potential);
    term.add_to(sphere.q, sphere.g, parts);
    return HamiltonianOperator(std::move(parts));
  }
  /// Returns |k+G|² δ + V(G − G') in both components, and the spin–orbit term between all
  /// pairs of plane waves.
  std::vector<Cplx> make_matrix() const {
    const std::size_t n_pw = sphere.g.size(), n = 2 * n_pw;
    std::vector<Cplx> h(n * n);
    for (std::size_t row = 0; row < n; ++row) {
      const std::size_t first = row - row % n_pw;
      for (std::size_t j = 0; j < n_pw; ++j)
        for (const auto& [g, value] : potential)
          if (sphere.g[row % n_pw] - sphere.g[j] == g) h[row * n + first + j] += value;
      h[row * n + row] += sphere.kinetic_ry[row % n_pw];
    }
    term.add_to(sphere.q, sphere.g, h.data());
    return h;
  }

  Crystal crystal;
  GSphere sphere;
  SpinOrbitTerm term;
  PotentialElements potential;
};

/// Returns the largest norm of H x − matrix·x of 11 random vectors x, relative to the norm of H
/// x. A batch holds eight vectors, so that the last batch is not full.
double deviation(const std::vector<Cplx>& matrix, const HamiltonianOperator& h) {
  constexpr std::int64_t kRows = 11;
  const std::int64_t n = h.size();
  std::vector<Cplx> x(static_cast<std::size_t>(kRows * n)), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Philox random = Philox::at(static_cast<std::uint32_t>(i), 0, 7, 0, 1, 2);
    x[i] = std::polar(1.0, 2.0 * kPi * random.unit());
  }
  h.apply(view<const Cplx>(x, kRows, n), view<Cplx>(y, kRows, n));
  double worst = 0.0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    double difference = 0.0, norm = 0.0;
    for (std::int64_t i = 0; i < n; ++i) {
      Cplx sum;
      for (std::int64_t j = 0; j < n; ++j)
        sum +=
            matrix[static_cast<std::size_t>(i * n + j)] * x[static_cast<std::size_t>(row * n + j)];
      difference += std::norm(sum - y[static_cast<std::size_t>(row * n + i)]);
      norm += std::norm(sum);
    }
    worst = std::max(worst, std::sqrt(difference / norm));
  }
  return worst;
}

// Rounding of transforms and products of a thousand terms stays below 1e-12 of the norm. GaAs has
// two strengths and no inversion, and germanium has fractional translations.
TEST(SpinorOperator, IsTheMatrix) {
  for (const char* name : {"germanium", "gaas"})
    for (const Vec3& k : {Vec3{0, 0, 0}, Vec3{0.13, -0.27, 0.4}, Vec3{1.25, 0.0, -2.5}}) {
      const OperatorAndMatrix c(coupled_crystal(name, 6.0), k);
      const HamiltonianOperator h = c.make_operator();
      EXPECT_EQ(h.size(), 2 * c.sphere.size());
      EXPECT_FALSE(h.is_real()) << "spins are coupled by imaginary elements";
      EXPECT_LT(deviation(c.make_matrix(), h), 1e-12) << name << ' ' << k[0];
    }
  EmpiricalCrystal one_kind = coupled_crystal("gaas", 4.0, true);
  one_kind.spin_orbit_ry_bohr2 = {0.0, 0.02};
  const OperatorAndMatrix c(one_kind, {0.1, 0.2, 0.3});
  const HamiltonianOperator h = c.make_operator();
  EXPECT_EQ(h.parts().beta.size(), 12 * c.sphere.g.size()) << "projectors of four atoms of eight";
  EXPECT_LT(deviation(c.make_matrix(), h), 1e-12);
}

// At λ = 0 nothing couples the components, and H of silicon stays real.
TEST(SpinorOperator, WithoutCouplingIsRealAndTheMatrix) {
  EmpiricalCrystal silicon = coupled_crystal("silicon", 6.0);
  silicon.spin_orbit_ry_bohr2 = {0.0, 0.0};
  const OperatorAndMatrix c(silicon, {0.13, -0.27, 0.4});
  const HamiltonianOperator h = c.make_operator();
  EXPECT_TRUE(h.is_real());
  EXPECT_EQ(h.size(), 2 * c.sphere.size());
  EXPECT_LT(deviation(c.make_matrix(), h), 1e-12);
}

class LowestSpinors : public quasi::test::OnEveryDevice {
 protected:
  /// Compares states of a crystal at one k by both eigensolvers.
  void expect_both_methods_agree(EmpiricalCrystal crystal, const Vec3& k, int n_bands) {
    const Crystal cell = empirical_crystal(crystal);
    const DenseStates dense = empirical_states(crystal, cell, *kernels_)(k, 0, n_bands);
    crystal.eigensolver = kOperator;
    const DenseStates found = empirical_states(crystal, cell, *kernels_)(k, 0, n_bands);
    EXPECT_EQ(found.n_spinor, 2);
    EXPECT_GT(found.largest_residual_ry, 0.0);
    test::expect_equal_states(found.energy_ry, found.coefficients, dense.energy_ry,
                              dense.coefficients, 1e-9);
  }
  std::unique_ptr<GwKernels> kernels_ = make_gw_kernels(GetParam());
};

// Energies agree to 1e-9 Ry, because their errors are of second order in residuals of 1e-8.
TEST_P(LowestSpinors, AreThoseOfTheMatrixForTwoAtoms) {
  for (const char* name : {"germanium", "gaas"})
    for (const Vec3& k : {Vec3{0, 0, 0}, Vec3{0.31, 0.07, -0.22}})
      expect_both_methods_agree(coupled_crystal(name, 9.0), k, 20);
  EmpiricalCrystal uncoupled = coupled_crystal("silicon", 9.0);
  uncoupled.spin_orbit_ry_bohr2 = {0.0, 0.0};
  expect_both_methods_agree(uncoupled, {0, 0, 0}, 20);
}
TEST_P(LowestSpinors, AreThoseOfTheMatrixForEightAtoms) {
  expect_both_methods_agree(coupled_crystal("germanium", 5.0, true), {0, 0, 0}, 52);
  expect_both_methods_agree(coupled_crystal("gaas", 5.0, true), {0.5, 0.0, 0.25}, 52);
}

// Levels of germanium at Γ have 2 (Γ6), 2 (Γ7) and 4 (Γ8) members. A multiplet that the last
// wanted state belongs to is returned whole, also where it is a Kramers doublet alone.
TEST_P(LowestSpinors, ComeInWholeKramersMultiplets) {
  const auto count = [&](const Vec3& k, int wanted) {
    const HamiltonianOperator h =
        OperatorAndMatrix(coupled_crystal("germanium", 6.0), k).make_operator();
    return lowest_states(h, kernels_->hamiltonian(), wanted, kOperator).energy_ry.size();
  };
  EXPECT_EQ(count({0, 0, 0}, 1), 2u);
  EXPECT_EQ(count({0, 0, 0}, 3), 4u);
  EXPECT_EQ(count({0, 0, 0}, 5), 8u);
  EXPECT_EQ(count({0.31, 0.07, -0.22}, 3), 4u);
  EXPECT_EQ(count({0.31, 0.07, -0.22}, 5), 6u);
}

QUASI_ON_EVERY_DEVICE(LowestSpinors);

Calculation run(const std::string& solver) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const std::string deck =
      "kind = \"gw\"\n[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 5.0\n"
      "k_grid = [2, 2, 1]\nbands = 28\nspin_orbit_ry_bohr2 = [0.0125, 0.0223]\n" +
      solver + "[epsilon]\ncutoff_ry = 2.5\n[sigma]\nband_max = 16\n";
  return run_calculation(parse_deck(deck, {}, "test", "."), *kernels, std::int64_t{1} << 30,
                         silent);
}

// Jobs from states of either eigensolver, with k·p at q → 0, must give one Σ. The tolerance is
// 1e-6 eV, because states differ by residuals of 1e-8 Ry.
TEST(SpinorOperator, GivesTheSelfEnergiesOfTheMatrix) {
  const Calculation dense = run(""), found = run("solver = \"operator\"\n");
  ASSERT_EQ(dense.quasiparticles.size(), found.quasiparticles.size());
  ASSERT_FALSE(dense.quasiparticles.empty());
  for (std::size_t i = 0; i < dense.quasiparticles.size(); ++i)
    EXPECT_NEAR(found.quasiparticles[i].sigma_ev, dense.quasiparticles[i].sigma_ev, 1e-6) << i;
}

}  // namespace
}  // namespace quasi::gw
