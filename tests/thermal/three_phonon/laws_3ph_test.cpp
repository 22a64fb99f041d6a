// Tests the laws of docs/theory/thermal.md 12.3 in their three-phonon forms, which hold for any
// numbers. The decks are silicon and a wurtzite-like crystal, which has four atoms, two masses and
// a hexagonal lattice.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/every_device.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "tests/thermal/three_phonon/star_members.hpp"
#include "workers/thermal/kernels/three_phonon/fc3_transform.hpp"
#include "workers/thermal/physics/occupation.hpp"

namespace quasi::thermal {
namespace {

using test::model;
std::filesystem::path silicon() { return quasi::test::source_dir() / "examples/thermal/silicon"; }

// 1. κ is symmetric, positive definite and invariant under the point group. In a cubic crystal its
// off-diagonal elements vanish.
TEST(Laws3ph, ConductivityHasTheSymmetryOfTheCrystal) {
  const auto cubic = test::solve_deck(silicon(), {"ngrid=6,6,6"});
  for (const Mat3& k : {cubic->run.by_temperature[0].kappa_rta_w_per_mk,
                        cubic->run.by_temperature[0].kappa_w_per_mk})
    for (int i = 0; i < 3; ++i) {
      EXPECT_GT(k[i][i], 0.0);
      for (int j = 0; j < 3; ++j) EXPECT_NEAR(k[i][j], i == j ? k[0][0] : 0.0, 1e-6 * k[0][0]);
    }
  const auto hexagonal = test::solve_deck(model("wurtzite-sw"), {"ngrid=4,4,3"});
  const Mat3& k = hexagonal->run.by_temperature[0].kappa_w_per_mk;
  EXPECT_GT(determinant(k), 0.0);
  const Mat3 again = hexagonal->deck.symmetry.symmetrised(k);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      EXPECT_NEAR(k[i][j], k[j][i], 1e-9 * k[0][0]);
      EXPECT_NEAR(k[i][j], again[i][j], 1e-9 * k[0][0]);
    }
  EXPECT_GT(std::fabs(k[2][2] / k[0][0] - 1.0), 1e-3)
      << "a hexagonal crystal conducts differently along its axis";
}

// 2. ω and rates summed over degenerate sets are equal over every star, as rates computed at other
// members show. The tolerance is 1e-9 for diamond, whose files are exactly symmetric. The numbers
// of a hexagonal deck are rounded at 1e-9 eV/Å^n, which the rates show at 1e-8.
TEST(Laws3ph, RatesAreEqualOverAStar) {
  struct Case {
    const char* name;
    const char* mesh;
    double tolerance;
  };
  for (const Case& c :
       {Case{"silicon-sw", "ngrid=6,6,6", 1e-9}, Case{"wurtzite-sw", "ngrid=4,4,3", 1e-7},
        Case{"rocksalt", "ngrid=4,4,4", 1e-7}}) {
    const auto s = test::solve_deck(model(c.name), {c.mesh, "convergence=F"});
    const int nb = s->run.modes.n_branches;
    EXPECT_LT(s->run.modes.star_deviation_rad_ps, c.tolerance);
    const ThreePhononProblem elsewhere = test::at_random_members(*s);
    const auto kernels = make_three_phonon_kernels(Device{});
    kernels->load(elsewhere);
    SilentProgress silent;
    ThreePhononRates rates = kernels->rates(s->deck.control.temperatures_k, false, silent);
    EXPECT_EQ(rates.n_absorption, s->run.three_phonon.n_absorption);
    EXPECT_EQ(rates.n_emission, s->run.three_phonon.n_emission);
    average_over_subspaces(s->run.modes, elsewhere.rows, 1, rates.absorption_per_ps.data());
    average_over_subspaces(s->run.modes, elsewhere.rows, 1, rates.emission_per_ps.data());
    const double largest =
        *std::max_element(rates.emission_per_ps.begin(), rates.emission_per_ps.end());
    double worst = 0.0;
    for (std::int64_t row = 0; row < s->n_rows(); ++row) {
      const double a =
          s->run.three_phonon.absorption_per_ps[row] + s->run.three_phonon.emission_per_ps[row];
      const double b = rates.absorption_per_ps[row] + rates.emission_per_ps[row];
      if (a > 1e-6 * largest) worst = std::max(worst, std::fabs(b / a - 1.0));
    }
    EXPECT_LT(worst, c.tolerance) << nb << " branches";
    std::printf("    %d branches: worst rate difference over a star %.1e\n", nb, worst);
  }
}

// 3. Acoustic modes vanish at Γ before being set to zero, and V → 0 linearly as q → 0.
TEST(Laws3ph, TranslationsCostNothing) {
  const auto s = test::solve_deck(silicon(), {"ngrid=4,4,4", "convergence=F"});
  EXPECT_LT(s->run.modes.largest_raw_omega_gamma_rad_ps, 1e-3);
  // |V|² of the slowest mode at q ∝ 1/N, summed over all branches at the two meshes: ratio 4.
  const auto amplitude = [](int n) {
    const auto fine = test::solve_deck(
        silicon(), {"ngrid=" + std::to_string(n) + ",1,1", "convergence=F", "symmetry=F"});
    const Modes& modes = fine->run.modes;
    const int nb = modes.n_branches;
    const auto tensor = mass_scaled_tensors(fine->problem.fc3, fine->problem.mass_amu);
    const auto roots = unit_roots(n);
    const std::vector<std::complex<double>> one{1.0};
    const auto* plain = reinterpret_cast<const Complex<double>*>(roots.data());
    const auto* unity = reinterpret_cast<const Complex<double>*>(one.data());
    const PhaseTable phase{{plain, unity, unity}, {n, 1, 1}};
    const Blocks3View blocks{fine->problem.fc3.n_blocks(), fine->problem.fc3.atom.data(),
                             fine->problem.fc3.cell.data(), tensor.data()};
    const auto* e = reinterpret_cast<const Complex<double>*>(modes.eigenvector.data());
    double sum = 0.0;
    for (int s0 = 0; s0 < 3; ++s0)
      for (int s1 = 0; s1 < nb; ++s1)
        for (int s2 = 0; s2 < nb; ++s2)
          sum += norm(matrix_element_3ph(blocks, phase,
                                         {.channel = Channel3::kAbsorption,
                                          .e0 = e + (1 * nb + s0) * nb,
                                          .e1 = e + (n / 2 * nb + s1) * nb,
                                          .e2 = e + ((n / 2 + 1) * nb + s2) * nb,
                                          .c1 = {n / 2, 0, 0},
                                          .c2 = {n / 2 + 1, 0, 0}}));
    return sum;
  };
  EXPECT_NEAR(amplitude(64) / amplitude(128), 4.0, 0.05);
}

// 4. D is Hermitian, and the velocities equal finite differences of ω. Reading asserts the weights.
TEST(Laws3ph, VelocitiesAreSlopes) {
  for (const auto& path : {silicon(), model("wurtzite-sw")}) {
    const Deck deck = read_deck(path, test::settings_of({"onlyharmonic=T"}));
    const DynamicalMatrixBuilder builder(deck.crystal, deck.second_order,
                                         deck.control.harmonic_options());
    const Vec3 q{0.137, 0.291, 0.058};
    const DynamicalMatrix d = builder.at(q, true);
    const int nb = deck.crystal.n_branches();
    for (int i = 0; i < nb; ++i)
      for (int j = 0; j < nb; ++j) EXPECT_EQ(d.d[i * nb + j], std::conj(d.d[j * nb + i]));
    // dD/dq equals a central difference, from which the Hellmann–Feynman theorem follows.
    constexpr double kStep = 1e-5;
    const Mat3 to_fractional = inverse(transpose(deck.crystal.reciprocal_per_nm()));
    double scale = 0.0;
    for (const auto& x : d.gradient[0]) scale = std::max(scale, std::abs(x));
    for (int g = 0; g < 3; ++g) {
      Vec3 step{0, 0, 0};
      step[g] = kStep;
      const Vec3 dq = to_fractional * step;
      const DynamicalMatrix up = builder.at(q + dq, false);
      const DynamicalMatrix down = builder.at(q - dq, false);
      for (std::size_t e = 0; e < d.d.size(); ++e)
        EXPECT_LT(std::abs((up.d[e] - down.d[e]) / (2.0 * kStep) - d.gradient[g][e]), 1e-5 * scale);
    }
  }
}

// 5. Detailed balance holds on the energy shell, and both forms of each Bose factor agree there.
TEST(Laws3ph, DetailedBalance) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> omega(0.5, 60.0), temperature(20.0, 1200.0);
  constexpr double kHbarOverKb = 7.638232582257738;
  for (int i = 0; i < 1000; ++i) {
    const double a = omega(random), b = omega(random), t = temperature(random);
    const double na = bose_einstein(a, t, kHbarOverKb), nb = bose_einstein(b, t, kHbarOverKb);
    const double nc = bose_einstein(a + b, t, kHbarOverKb);
    const auto s = [](double n) { return std::sqrt(n * (n + 1.0)); };
    EXPECT_NEAR(na * nb * (1.0 + nc) / ((1.0 + na) * (1.0 + nb) * nc), 1.0, 1e-11);
    EXPECT_NEAR(occupation_factor_3ph(false, nb, nc) / ((1.0 + nb) * nc / na), 1.0,
                1e-9);  // n' − n'' cancels
    EXPECT_NEAR(occupation_factor_3ph(true, na, nb) / ((1.0 + na) * (1.0 + nb) / (1.0 + nc)), 1.0,
                1e-12);
    EXPECT_NEAR((s(nb) * s(nc) / s(na)) / ((1.0 + nb) * nc / na), 1.0, 1e-11);
    EXPECT_NEAR((s(na) * s(nb) / s(nc)) / (1.0 + na + nb), 1.0, 1e-11);
  }
}

// 6. The collision operator is symmetric and positive: ⟨x, A y⟩ = ⟨A x, y⟩ in Σ mult n(n+1) x·y,
// for symmetric vector fields. The law needs |V|² and σ that do not depend on which of its phonons
// a process is assigned to.
TEST(Laws3ph, CollisionOperatorIsSymmetric) {
  for (const auto& [path, mesh] :
       {std::pair{silicon(), "ngrid=5,5,5"}, std::pair{model("wurtzite-sw"), "ngrid=3,3,2"}}) {
    const auto s = test::solve_deck(path, {mesh, "isotopes=F"});
    const Transport transport{s->deck.crystal, s->deck.symmetry, s->run.modes,
                              s->deck.control.transport_options()};
    std::vector<double> diagonal = s->kernels->row_rates(300.0, OccupationForm::kSymmetric);
    average_over_subspaces(s->run.modes, s->deck.symmetry.irreducible, 1, diagonal.data());
    std::mt19937 random(9);
    std::uniform_real_distribution<double> unit(-1.0, 1.0);
    const auto symmetric_field = [&] {
      std::vector<double> f(static_cast<std::size_t>(s->n_rows() * 3));
      for (std::int64_t row = 0; row < s->n_rows(); ++row) {
        const auto q = s->deck.symmetry.irreducible[row / s->run.modes.n_branches];
        Vec3 x{unit(random), unit(random), unit(random)};
        x = s->deck.symmetry.vector_projector(q, false) * x;
        for (int d = 0; d < 3; ++d) f[row * 3 + d] = transport.conducts(row) ? x[d] : 0.0;
      }
      average_over_subspaces(s->run.modes, s->deck.symmetry.irreducible, 3, f.data());
      return f;
    };
    const auto apply = [&](const std::vector<double>& f) {
      auto out = s->kernels->apply_collision(300.0, OccupationForm::kSymmetric,
                                             spread_over_stars(transport, f));
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = diagonal[i / 3] * f[i] - out[i];
      return out;
    };
    const auto inner = [&](const std::vector<double>& x, const std::vector<double>& y) {
      double sum = 0.0;
      for (std::int64_t row = 0; row < s->n_rows(); ++row) {
        if (!transport.conducts(row)) continue;
        const double n = bose_einstein(s->run.modes.omega_rad_ps[transport.mode_of_row(row)], 300.0,
                                       s->deck.control.constants().hbar_over_kb_k_ps());
        for (int d = 0; d < 3; ++d)
          sum += s->deck.symmetry.multiplicity[row / s->run.modes.n_branches] * n * (n + 1.0) *
                 x[row * 3 + d] * y[row * 3 + d];
      }
      return sum;
    };
    for (int i = 0; i < 3; ++i) {
      const auto x = symmetric_field();
      const auto y = symmetric_field();
      const double xx = inner(x, apply(x));
      const double yy = inner(y, apply(y));
      EXPECT_GT(xx, 0.0);
      EXPECT_GT(yy, 0.0);
      EXPECT_NEAR(inner(x, apply(y)), inner(apply(x), y), 1e-7 * std::sqrt(xx * yy));
    }
  }
}

// 7. The sum over all modes counts as many absorptions as emissions, because both orders of the two
// created phonons count as an emission.
TEST(Laws3ph, EveryEmissionIsAnAbsorptionSeenFromTheOtherSide) {
  const auto s = test::solve_deck(silicon(), {"ngrid=5,5,5", "convergence=F"});
  std::vector<std::int64_t> rows(static_cast<std::size_t>(s->n_rows()));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
  const auto counts = s->kernels->count(rows);
  std::int64_t absorption = 0, emission = 0;
  for (std::int64_t row = 0; row < s->n_rows(); ++row) {
    const std::int64_t members = s->deck.symmetry.multiplicity[row / s->run.modes.n_branches];
    absorption += members * counts[2 * row];
    emission += members * counts[2 * row + 1];
  }
  EXPECT_GT(absorption, 0);
  EXPECT_EQ(absorption, emission);
}

// 8. In the classical limit w ∝ T: far above the Debye temperature, where x = ħω/k_BT < 0.15.
TEST(Laws3ph, RatesGrowLinearlyWithTemperature) {
  const auto s =
      test::solve_deck(silicon(), {"ngrid=4,4,4", "T=5000,5100", "convergence=F", "isotopes=F"});
  const auto n_rows = static_cast<std::size_t>(s->n_rows());
  const auto& r = s->run.three_phonon;
  for (std::size_t row = 0; row < n_rows; ++row) {
    const double low = r.absorption_per_ps[row] + r.emission_per_ps[row];
    const double high = r.absorption_per_ps[n_rows + row] + r.emission_per_ps[n_rows + row];
    if (low > 0.0) {
      EXPECT_NEAR(std::log(high / low) / std::log(5100.0 / 5000.0), 1.0, 0.01);
    }
  }
}

// 9. The variational κ grows with every iteration and stays below that of the solution. The
// difference is less than ten times the squared residual. Ten bounds one over the smallest
// eigenvalue of the operator divided by its diagonal.
TEST(Laws3ph, ConjugateGradientsGiveKappaToSecondOrder) {
  const auto exact = test::solve_deck(silicon(), {"ngrid=6,6,6", "T=100", "eps=1e-12"});
  const IterativeSolution& whole = exact->run.by_temperature[0].solution;
  const double kappa = exact->run.by_temperature[0].kappa_w_per_mk[0][0];
  // The first entry is the relaxation-time approximation, which is no member of the sequence.
  for (std::size_t i = 2; i < whole.kappa_history_w_per_mk.size(); ++i)
    EXPECT_GE(whole.kappa_history_w_per_mk[i][0][0],
              whole.kappa_history_w_per_mk[i - 1][0][0] * (1.0 - 1e-12))
        << i;
  for (const char* eps : {"eps=1e-1", "eps=1e-2", "eps=1e-3", "eps=1e-4"}) {
    const auto rough = test::solve_deck(silicon(), {"ngrid=6,6,6", "T=100", eps});
    const TemperatureResult& r = rough->run.by_temperature[0];
    const double error = 1.0 - r.kappa_w_per_mk[0][0] / kappa;
    EXPECT_GT(error, 0.0) << eps;
    EXPECT_LT(error, 10.0 * r.solution.residual * r.solution.residual) << eps;
  }
}

// 9. The residual of an iterated solution is below eps. Conjugate gradients, GMRES and the fixed
// point find the same κ. Isotopes alone need no iteration.
TEST(Laws3ph, SolversAgree) {
  std::vector<double> kappa;
  for (const char* solver : {"solver=cg", "solver=gmres", "solver=fixed-point"}) {
    const auto s = test::solve_deck(silicon(), {"ngrid=5,5,5", "eps=1e-10", solver});
    EXPECT_LT(s->run.by_temperature[0].solution.residual, 1e-10);
    kappa.push_back(s->run.by_temperature[0].kappa_w_per_mk[0][0]);
    EXPECT_GT(kappa.back(), s->run.by_temperature[0].kappa_rta_w_per_mk[0][0]);
  }
  EXPECT_NEAR(kappa[1] / kappa[0], 1.0, 1e-9);
  EXPECT_NEAR(kappa[2] / kappa[0], 1.0, 1e-8);
}

// A hexagonal deck gives κ within 1e-8 with symmetry and without, where every point is computed by
// itself.
TEST(Laws3ph, SymmetryOnAndOffAgree) {
  const auto on = test::solve_deck(model("wurtzite-sw"), {"ngrid=4,4,3", "eps=1e-12"});
  const auto off =
      test::solve_deck(model("wurtzite-sw"), {"ngrid=4,4,3", "eps=1e-12", "symmetry=F"});
  ASSERT_LT(on->deck.symmetry.n_irreducible(), off->deck.symmetry.n_irreducible());
  const TemperatureResult& a = on->run.by_temperature[0];
  const TemperatureResult& b = off->run.by_temperature[0];
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      EXPECT_NEAR(a.kappa_rta_w_per_mk[i][j], b.kappa_rta_w_per_mk[i][j],
                  1e-8 * a.kappa_rta_w_per_mk[0][0]);
      EXPECT_NEAR(a.kappa_w_per_mk[i][j], b.kappa_w_per_mk[i][j], 1e-8 * a.kappa_w_per_mk[0][0]);
    }
}

// FORCE_CONSTANTS_2ND and espresso.ifc2 of one potential give κ within 1e-8.
TEST(Laws3ph, BothSecondOrderFilesAgree) {
  for (const char* name : {"silicon-sw", "wurtzite-sw"}) {
    const auto a = test::solve_deck(model(name), {"ngrid=3,3,3", "espresso=F"});
    const auto b = test::solve_deck(model(name), {"ngrid=3,3,3", "espresso=T"});
    const double k = a->run.by_temperature[0].kappa_w_per_mk[0][0];
    EXPECT_GT(k, 0.0);
    EXPECT_NEAR(b->run.by_temperature[0].kappa_w_per_mk[0][0] / k, 1.0, 1e-8) << name;
    for (std::int64_t mode = 0; mode < a->run.modes.n_modes(); ++mode)
      EXPECT_NEAR(a->run.modes.omega_rad_ps[mode], b->run.modes.omega_rad_ps[mode], 1e-8 * 100.0);
  }
}

// With boundary scattering κ falls towards the small-grain limit κ_sg·L as L → 0.
TEST(Laws3ph, SmallGrainsScatterAtTheirBoundary) {
  const auto s =
      test::solve_deck(silicon(), {"ngrid=5,5,5", "boundary_length_nm=1e-4", "convergence=F"});
  const TemperatureResult& r = s->run.by_temperature[0];
  EXPECT_NEAR(r.kappa_rta_w_per_mk[0][0] / (1e-4 * r.small_grain_w_per_mk_nm[0][0]), 1.0, 1e-3);
}

// κ of a sheet is that of the cell times its height over the thickness.
TEST(Laws3ph, SheetIsQuotedForItsThickness) {
  const Deck deck = read_deck(model("wurtzite-sw"),
                              test::settings_of({"onlyharmonic=T", "sheet_thickness_nm=0.5"}));
  EXPECT_NEAR(sheet_factor(deck.crystal, deck.control.sheet_options()),
              length(deck.crystal.lattice_nm[2]) / 0.5, 1e-9);
}

// The normal part of either channel is between zero and the whole channel, and both normal and
// Umklapp processes occur.
TEST(Laws3ph, NormalAndUmklappAddUp) {
  const auto s = test::solve_deck(silicon(), {"ngrid=6,6,6", "convergence=F"});
  const auto& r = s->run.three_phonon;
  const auto check = [](const std::vector<double>& all, const std::vector<double>& normal_part) {
    ASSERT_EQ(all.size(), normal_part.size());
    double normal = 0.0, total_rate = 0.0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_LE(normal_part[i], all[i] * (1.0 + 1e-12));
      normal += normal_part[i];
      total_rate += all[i];
    }
    EXPECT_GT(normal, 0.05 * total_rate);
    EXPECT_LT(normal, 0.95 * total_rate);
  };
  check(r.absorption_per_ps, r.normal_absorption_per_ps);
  check(r.emission_per_ps, r.normal_emission_per_ps);
}

}  // namespace
}  // namespace quasi::thermal
