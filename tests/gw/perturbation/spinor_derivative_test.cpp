// Tests first orders of states of two components (docs/theory/gw.md 15.5): the spin–orbit term
// moves with its atom, finite displacements and rigid shifts obey their laws, and at λ = 0 the
// elements equal those of one component.

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "tests/gw/support/coupled_crystal.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/empirical_structure.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/gw/solver/perturbation/spinors/spin_orbit_displacement.hpp"

namespace quasi::gw {
namespace {

using test::BasisFreeSums;
using test::coupled_crystal;

const Vec3 kDirection{0.6, 0.0, 0.8};

Calculation run_deck(const std::string& deck) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  return run_calculation(parse_deck(deck, {}, "test", "."), *kernels, std::int64_t{1} << 30,
                         silent);
}

// The term of an atom at ±h has the factor e^{∓ix} with x = h (K'−K)·e. Its central
// difference is therefore ∂H sin(x)/x, with no error by h. Both sides are exact but for rounding,
// 1e-14 Ry/Bohr. SpinOrbitTerm, which makes H, knows nothing of the separable form.
TEST(SpinorDerivative, OfTheSpinOrbitTermIsThatOfDisplacedTerms) {
  EmpiricalCrystal wanted = coupled_crystal();
  wanted.repeats = {2, 1, 1};
  const Crystal crystal = empirical_crystal(wanted);
  const Vec3 k{0.31, 0.07, -0.22};
  const std::vector<IVec3> g = make_g_sphere(crystal.bdot, k, 3.0).g;
  const std::size_t n_pw = g.size(), n = 2 * n_pw;
  std::vector<Cplx> unit(n * n);
  for (std::size_t i = 0; i < n; ++i) unit[i * n + i] = 1.0;
  constexpr double kStep_bohr = 0.3;
  for (const int atom : {1, 2}) {
    const Perturbation moved = atom_displacement(wanted, crystal, atom, kDirection);
    ASSERT_NE(moved.spin_orbit, nullptr);
    const auto rows = static_cast<std::int64_t>(n);
    const SpinorsAtPoint states{k, g, view<const Cplx>(unit, rows, rows)};
    std::vector<Cplx> found(n * n), forth(n * n), back(n * n);
    moved.spin_orbit->elements(states, states).add({0, rows}, found.data());
    displaced_spin_orbit(wanted, crystal, atom, kStep_bohr * kDirection)
        ->add_to(k, g, forth.data());
    displaced_spin_orbit(wanted, crystal, atom, -kStep_bohr * kDirection)
        ->add_to(k, g, back.data());
    double largest = 0.0;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        double x = 0.0;
        for (std::size_t axis = 0; axis < 3; ++axis)
          x += (g[i % n_pw][axis] - g[j % n_pw][axis]) * kStep_bohr * crystal.blat_per_bohr *
               dot(crystal.bvec[axis], kDirection);
        const double factor = x == 0.0 ? 1.0 : std::sin(x) / x;
        EXPECT_LT(std::abs(factor * found[i * n + j] -
                           (forth[i * n + j] - back[i * n + j]) / (2.0 * kStep_bohr)),
                  1e-14);
        largest = std::max(largest, std::abs(found[i * n + j]));
      }
    EXPECT_GT(largest, 1e-4);
  }
}

/// Expects that elements of spinors at λ = 0 are those of one component for each spin.
/// @param waves  of the job of one component
void expect_elements_twice(const DisplacementElements& spinors, const DisplacementElements& one,
                           const Wavefunctions& waves) {
  ASSERT_EQ(spinors.k_index, one.k_index);
  const auto n = static_cast<std::size_t>(one.band_max);
  double largest = 0.0, largest_trace = 0.0;
  for (std::size_t d = 0; d < one.displacements.size(); ++d)
    for (std::size_t k = 0; k < one.k_index.size(); ++k) {
      const bool at_gamma = one.bra_index.empty();
      const int ket = one.k_index[k], bra = at_gamma ? ket : one.bra_index[k];
      for (const auto& l : multiplets(waves, 0, bra, 0, one.band_max))
        for (const auto& m : multiplets(waves, 0, ket, 0, one.band_max)) {
          const BasisFreeSums expected(one.at[d][k], n, l, m),
              found(spinors.at[d][k], 2 * n, {2 * l.first, 2 * l.second},
                    {2 * m.first, 2 * m.second});
          EXPECT_NEAR(found.g, 2.0 * expected.g, 1e-10);
          EXPECT_NEAR(found.sigma, 2.0 * expected.sigma, 1e-10);
          EXPECT_NEAR(found.product, 2.0 * expected.product, 1e-10);
          largest = std::max(largest, expected.sigma);
          if (!at_gamma || l != m) continue;  // bra and ket of a trace are the same states
          EXPECT_LT(std::abs(found.trace_g - 2.0 * expected.trace_g), 1e-10);
          EXPECT_LT(std::abs(found.trace_sigma - 2.0 * expected.trace_sigma), 1e-10);
          largest_trace = std::max(largest_trace, std::abs(expected.trace_sigma));
        }
    }
  EXPECT_GT(largest, 1e-4);
  if (one.bra_index.empty()) {
    EXPECT_GT(largest_trace, 1e-3);
  }
}

// A job of spinors at λ = 0 is the job of one component with every level twice. Sums of ∂V and
// ∂Σ over Kramers pairs and multiplets agree to 1e-10 with every method, at q = 0 and at another
// q.
TEST(SpinorDerivative, WithoutCouplingIsThatOfOneComponent) {
  const auto job = [](const std::string& method, bool spinors) {
    return run_deck(
        "[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 4.0\nk_grid = [3, 1, 1]\n" +
        std::string(spinors ? "spin_orbit_ry_bohr2 = 0.0\nbands = 20\n" : "bands = 10\n") +
        "[epsilon]\ncutoff_ry = 2.0\n" +
        (method == "contour" ? "real_step_ev = 2.0\nimaginary_points = 6\n" : "") +
        "[sigma]\nkpoints = [[0.333333333, 0, 0]]\nband_max = " + (spinors ? "10" : "5") +
        "\nmethod = \"" + method + "\"\n[perturbation]\natoms = [2]\ndirections = [\"x\"]\n" +
        (method == "hl-gpp" ? "q = [[0, 0, 0], [0.3333, 0, 0]]\n" : ""));
  };
  for (const std::string method : {"hl-gpp", "gn-gpp", "cohsex", "contour"}) {
    SCOPED_TRACE(method);
    const Calculation one = job(method, false), two = job(method, true);
    ASSERT_TRUE(one.displacements && two.displacements);
    expect_elements_twice(*two.displacements, *one.displacements, one.field.waves);
    ASSERT_EQ(two.wave_vectors.size(), one.wave_vectors.size());
    for (std::size_t q = 0; q < one.wave_vectors.size(); ++q)
      expect_elements_twice(two.wave_vectors[q].elements, one.wave_vectors[q].elements,
                            one.field.waves);
  }
}

/// Returns the largest deviation of ∂Σ from displacements of ±h of an atom of GaAs and of its
/// spin–orbit term, with all plane waves as bands, eV/Bohr.
/// @param table  further keys of the table [perturbation]
double largest_deviation_ev(const std::string& sigma, const std::string& step_bohr,
                            const std::string& table = "") {
  const Calculation run = run_deck(
      "[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 3.0\n"
      "spin_orbit_ry_bohr2 = [0.0125, 0.0223]\nbands = 54\n" +
      sigma + "[perturbation]\natoms = [2]\ndirections = [\"z\"]\ncheck_step_bohr = " + step_bohr +
      "\n" + table);
  return largest_deviation_ry(run.displacements->at[0][0]) * kRydberg_ev;
}

// Finite displacements give ∂Σ to 1e-5 eV/Bohr, diagonal and between different states. The
// deviation of central differences falls as h².
TEST(SpinorDerivative, FiniteDisplacementsGiveTheFirstOrder) {
  for (const char* method : {"hl-gpp", "cohsex"}) {
    const std::string sigma =
        "[epsilon]\ncutoff_ry = 3.0\n[sigma]\nband_max = 8\npole_half_width_ev = 0\nsx_cut = 1e6\n"
        "method = \"" +
        std::string(method) + "\"\n";
    const double fine = largest_deviation_ev(sigma, "0.005"),
                 coarse = largest_deviation_ev(sigma, "0.01");
    EXPECT_LT(fine, 1e-5) << method;
    EXPECT_GT(coarse, 3.5 * fine) << method;
    EXPECT_LT(coarse, 4.5 * fine) << method;
  }
}

// A sum over 30 of the 54 bands has the first order of finite displacements if the Sternheimer
// equation of spinors adds the other states. The tolerance is 1e-5 eV/Bohr, and
// the deviation falls as h².
TEST(SpinorDerivative, StatesBeyondTheBandsCompleteATruncatedSum) {
  const std::string sigma =
      "[epsilon]\ncutoff_ry = 3.0\n[sigma]\nbands = 30\nband_max = 8\npole_half_width_ev = 0\n"
      "sx_cut = 1e6\n";
  const std::string beyond = "state_response = \"sternheimer\"\n";
  const double fine = largest_deviation_ev(sigma, "0.005", beyond),
               coarse = largest_deviation_ev(sigma, "0.01", beyond);
  EXPECT_LT(fine, 1e-5);
  EXPECT_GT(coarse, 3.5 * fine);
  EXPECT_LT(coarse, 4.5 * fine);
  EXPECT_GT(largest_deviation_ev(sigma, "0.005"), 1e-3);
}

// Contour deformation gives the same at the energies of the outer states. The chord of the real
// axis at x = 0 leaves a deviation that is linear in h. The tolerance is 1e-4 eV/Bohr, as for
// states of one component.
TEST(SpinorDerivative, FiniteDisplacementsGiveTheFirstOrderByContour) {
  const std::string sigma =
      "[epsilon]\ncutoff_ry = 1.5\nreal_step_ev = 1.0\nimaginary_points = 8\n[sigma]\n"
      "band_max = 8\nmethod = \"contour\"\n";
  const double fine = largest_deviation_ev(sigma, "0.0025"),
               coarse = largest_deviation_ev(sigma, "0.005");
  EXPECT_LT(fine, 1e-4);
  EXPECT_LT(fine, 0.7 * coarse);
}

// A rigid shift moves the spin–orbit term, too: the acoustic sum of the mean field vanishes, and
// with inversion that of Σ as well. Rounding stays below 1e-8 eV/Bohr.
TEST(SpinorDerivative, ObeysTheAcousticSumRule) {
  const auto run = [](const std::string& crystal) {
    return run_deck("[meanfield]\nsource = \"epm\"\ncutoff_ry = 4.0\nk_grid = [2, 1, 1]\n" +
                    crystal +
                    "bands = 22\n[epsilon]\ncutoff_ry = 2.5\n[sigma]\nband_max = 10\n"
                    "[perturbation]\n");
  };
  constexpr double kVanishing_ry = 1e-8 / kRydberg_ev;
  const Calculation gaas = run("crystal = \"gaas\"\nspin_orbit_ry_bohr2 = [0.0125, 0.0223]\n"),
                    silicon = run("spin_orbit_ry_bohr2 = 0.0223\n");
  EXPECT_LT(gaas.displacements->acoustic_mean_field_ry.value_or(1.0), kVanishing_ry);
  EXPECT_LT(silicon.displacements->acoustic_mean_field_ry.value_or(1.0), kVanishing_ry);
  EXPECT_LT(silicon.displacements->acoustic_sigma_ry.value_or(1.0), kVanishing_ry);
  EXPECT_GT(gaas.displacements->acoustic_sigma_ry.value_or(0.0), 1e-4);
}

}  // namespace
}  // namespace quasi::gw
