// Laws of κ with four phonons that hold whatever the numbers are (docs/theory/thermal.md 12.3): the
// crystal's symmetry, the variational principle, smoothness in mesh and width. Decks of our own.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/every_device.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/four_phonon/solved_deck_4ph.hpp"
#include "workers/backend/study/convergence_limit.hpp"
#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/solver/transport/derived.hpp"

namespace quasi::thermal {
namespace {

using test::model;

double trace(const Mat3& m) { return m[0][0] + m[1][1] + m[2][2]; }

class Conductivity4ph : public quasi::test::OnEveryDevice {};

// 1. Every point of the mesh by itself, κ not averaged over the group: symmetric, positive
// definite, the same after every operation of the crystal; cubic: off-diagonals vanish. 1e-6: the
// files' constants are rounded.
TEST_P(Conductivity4ph, HasTheSymmetryOfTheCrystal) {
  for (const auto& [name, mesh] :
       {std::pair{"silicon-sw", "ngrid=3,3,3"}, std::pair{"wurtzite-sw", "ngrid=3,3,2"}}) {
    const auto s = test::solve_deck_4ph(
        model(name),
        {mesh, "scalebroad=0.2", "four_phonon_iteration=T", "symmetry=F", "coherence=F"},
        {GetParam()});
    ASSERT_EQ(s->deck.symmetry.n_irreducible(), s->run.modes.n_q);
    for (const Mat3& k : {s->at().kappa_rta_w_per_mk, s->at().kappa_w_per_mk}) {
      const double tolerance = 1e-6 * k[0][0];
      EXPECT_GT(k[0][0], 0.0);
      EXPECT_GT(k[0][0] * k[1][1] - k[0][1] * k[1][0], 0.0);
      EXPECT_GT(determinant(k), 0.0);
      for (const Operation& operation : s->deck.symmetry.operations) {
        const Mat3 turned = operation.cartesian * k * transpose(operation.cartesian);
        for (int i = 0; i < 3; ++i)
          for (int j = 0; j < 3; ++j) EXPECT_NEAR(turned[i][j], k[i][j], tolerance) << name;
      }
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
          EXPECT_NEAR(k[i][j], k[j][i], tolerance) << name;
          if (s->deck.symmetry.space_group == "Fd-3m") {
            EXPECT_NEAR(k[i][j], i == j ? k[0][0] : 0.0, tolerance);
          }
        }
    }
  }
}

/// A of the linearised equation with three and four phonons, put together here from its parts, and
/// its source ω v.
struct WholeOperator {
  const test::SolvedDeck4ph& s;
  std::vector<double> diagonal, source;

  explicit WholeOperator(const test::SolvedDeck4ph& solved) : s(solved) {
    const Modes& modes = s.run.modes;
    diagonal = s.kernels->row_rates(s.at().temperature_k, OccupationForm::kSymmetric);
    average_over_subspaces(modes, s.deck.symmetry.irreducible, 1, diagonal.data());
    const auto of_four = s.four_phonon->further.diagonal_per_ps(0);
    source.assign(diagonal.size() * 3, 0.0);
    for (std::int64_t row = 0; row < s.n_rows(); ++row) {
      diagonal[row] += of_four[row] + s.run.isotope_per_ps[row];
      const std::int64_t mode = s.transport().mode_of_row(row);
      for (int d = 0; d < 3; ++d)
        if (s.transport().conducts(row))
          source[3 * row + d] = modes.omega_rad_ps[mode] * modes.velocity_km_s[3 * mode + d];
    }
  }
  std::vector<double> apply(const std::vector<double>& f) const {
    const auto whole = spread_over_stars(s.transport(), f);
    auto out = s.kernels->apply_collision(s.at().temperature_k, OccupationForm::kSymmetric, whole);
    const auto of_four = s.four_phonon->further.in_scattering(0, whole);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = diagonal[i / 3] * f[i] - out[i] - of_four[i];
    return symmetric(std::move(out));
  }
  /// The part of a field that has each point's symmetry and is equal within degenerate sets, zero
  /// where nothing conducts: wedges of q' stand for whole meshes in that part only.
  std::vector<double> symmetric(std::vector<double> f) const {
    for (std::int64_t row = 0; row < s.n_rows(); ++row) {
      double* at = &f[static_cast<std::size_t>(3 * row)];
      const auto q = s.deck.symmetry.irreducible[row / s.run.modes.n_branches];
      const Vec3 x = s.deck.symmetry.vector_projector(q, false) * Vec3{at[0], at[1], at[2]};
      for (int d = 0; d < 3; ++d) at[d] = s.transport().conducts(row) ? x[d] : 0.0;
    }
    average_over_subspaces(s.run.modes, s.deck.symmetry.irreducible, 3, f.data());
    return f;
  }
  /// Σ mult n(n+1) x·y over what conducts.
  double inner(const std::vector<double>& x, const std::vector<double>& y) const {
    double sum = 0.0;
    for (std::int64_t row = 0; row < s.n_rows(); ++row) {
      if (!s.transport().conducts(row)) continue;
      const double n =
          bose_einstein(s.run.modes.omega_rad_ps[s.transport().mode_of_row(row)],
                        s.at().temperature_k, s.deck.control.constants().hbar_over_kb_k_ps());
      for (int d = 0; d < 3; ++d)
        sum += s.deck.symmetry.multiplicity[row / s.run.modes.n_branches] * n * (n + 1.0) *
               x[3 * row + d] * y[3 * row + d];
    }
    return sum;
  }
};

// 9. Of all fields the solution has the largest ⟨b,F⟩²/⟨F,AF⟩, with the operator put together here:
// more than that of relaxation times, which is more than those of random fields. κ is that
// functional times what κ in relaxation times says.
TEST_P(Conductivity4ph, SolutionIsTheBestOfAllFields) {
  const auto s = test::solve_deck_4ph(
      model("silicon-sw"),
      {"ngrid=4,4,4", "T=200", "eps=1e-9", "isotopes=T", "four_phonon_iteration=T"}, {GetParam()});
  const WholeOperator a(*s);
  const auto functional = [&](const std::vector<double>& f) {
    return std::pow(a.inner(a.source, f), 2) / a.inner(f, a.apply(f));
  };
  const std::vector<double>& solution = s->at().solution.f;
  const double best = functional(solution);
  // κ inside degenerate subspaces is no part of the functional.
  const double inside = trace(s->at().kappa_subspace_w_per_mk);
  const double per_kappa =
      a.inner(a.source, s->at().field_rta) / (trace(s->at().kappa_rta_w_per_mk) - inside);
  EXPECT_NEAR(best / per_kappa / (trace(s->at().kappa_w_per_mk) - inside), 1.0, 1e-9);
  auto residual = a.apply(solution);
  for (std::size_t i = 0; i < residual.size(); ++i) residual[i] -= a.source[i];
  EXPECT_LT(std::sqrt(a.inner(residual, residual) / a.inner(a.source, a.source)), 1e-7);
  const double of_rates = functional(s->at().field_rta);
  EXPECT_LT(of_rates, best * (1.0 - 1e-4)) << "else nothing is gained by iterating";
  EXPECT_GT(of_rates, 0.5 * best);
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (int draw = 0; draw < 5; ++draw) {
    std::vector<double> noise(solution.size()), f = solution;
    for (double& x : noise) x = normal(random);
    noise = a.symmetric(std::move(noise));
    const double scale =
        0.1 * std::sqrt(a.inner(solution, a.apply(solution)) / a.inner(noise, a.apply(noise)));
    for (std::size_t i = 0; i < f.size(); ++i) f[i] += scale * noise[i];
    const double near = functional(f);
    EXPECT_LT(near, best);
    EXPECT_GT(near, 0.97 * best) << "a field that is a tenth off loses about a hundredth";
  }
}

// 9. κ of conjugate gradients, which start from F = 0, grows with every iteration and errs by less
// than ten times the squared residual, from below; GMRES and the fixed point start from relaxation
// times and end at the same field.
TEST_P(Conductivity4ph, IterationsEndAtOneFieldWhereverTheyStart) {
  const auto solve = [&](const char* eps, const char* solver) {
    return test::solve_deck_4ph(model("silicon-sw"),
                                {"ngrid=4,4,4", "T=200", "four_phonon_iteration=T", eps, solver},
                                {GetParam()});
  };
  const auto exact = solve("eps=1e-10", "solver=cg");
  const IterativeSolution& whole = exact->at().solution;
  EXPECT_LT(whole.residual, 1e-10);
  const double kappa = exact->at().kappa_w_per_mk[0][0];
  // The first entry is the relaxation-time approximation's, which is not of the sequence.
  for (std::size_t i = 2; i < whole.kappa_history_w_per_mk.size(); ++i)
    EXPECT_GE(whole.kappa_history_w_per_mk[i][0][0],
              whole.kappa_history_w_per_mk[i - 1][0][0] * (1.0 - 1e-12))
        << i;
  for (const char* eps : {"eps=1e-1", "eps=1e-2", "eps=1e-3"}) {
    const auto rough = solve(eps, "solver=cg");
    const double error = 1.0 - rough->at().kappa_w_per_mk[0][0] / kappa;
    EXPECT_GT(error, 0.0) << eps;
    EXPECT_LT(error, 10.0 * std::pow(rough->at().solution.residual, 2)) << eps;
  }
  double scale = 0.0;
  for (const double x : whole.f) scale = std::max(scale, std::fabs(x));
  for (const char* solver : {"solver=gmres", "solver=fixed-point"}) {
    const auto other = solve("eps=1e-10", solver);
    for (std::size_t i = 0; i < whole.f.size(); ++i)
      ASSERT_NEAR(other->at().solution.f[i], whole.f[i], 1e-7 * scale) << solver << " " << i;
  }
}

// Spectral and cumulative κ with four phonons in the rates, of populations and coherences: the
// integral over ω and both cumulative curves end at κ.
TEST_P(Conductivity4ph, SpectraIntegrateToIt) {
  const auto s = test::solve_deck_4ph(
      model("silicon-sw"),
      {"ngrid=4,4,4", "T=600", "nticks=2000", "four_phonon_iteration=T", "coherence=T"},
      {GetParam()});
  const auto three =
      test::solve_deck(model("silicon-sw"), {"ngrid=4,4,4", "T=600", "coherence=T"}, GetParam());
  const Transport t = s->transport();
  const Derived derived = derive(t, s->deck.second_order, s->problem.fc3, s->run),
                without = derive(three->transport(), three->deck.second_order, three->problem.fc3,
                                 three->run);
  const TemperatureResult& r = s->at();
  const auto check = [&](const std::vector<Mat3>& by_row, const Mat3& kappa) {
    EXPECT_NEAR(test::integral_over_omega(spectrum_by_omega(t, by_row)) / kappa[0][0], 1.0, 2e-3);
    EXPECT_NEAR(cumulative_by_omega(t, by_row).kappa_w_per_mk.back()[0][0] / kappa[0][0], 1.0,
                1e-12);
    EXPECT_NEAR(
        cumulative_by_path(t, by_row, r.solution.f, r.rate_per_ps).kappa_w_per_mk.back()[0][0] /
            kappa[0][0],
        1.0, 1e-12);
  };
  check(r.mode_kappa, r.kappa_w_per_mk);
  check(derived.coherence[0].by_row_w_per_mk, derived.coherence[0].kappa_w_per_mk);
  EXPECT_LT(r.kappa_w_per_mk[0][0], 0.98 * three->run.by_temperature[0].kappa_w_per_mk[0][0]);
  EXPECT_GT(derived.coherence[0].kappa_w_per_mk[0][0],
            1.01 * without.coherence[0].kappa_w_per_mk[0][0])
      << "wider lines overlap more";
}

// Mixed precision: what is said of its error, from some tiles, is what a whole run in FP64 finds,
// for the sums of silicon (inversion exchanges its atoms) and of wurtzite (no centre). Limits as
// for three phonons: rates to 1e-4 where V vanishes with q, κ to 1e-6. The sample's share of a rate
// is off by more than the whole, in which errors cancel, but not by orders.
TEST_P(Conductivity4ph, MixedPrecisionSaysItsErrorAndMeansIt) {
  for (const auto& [name, mesh] :
       {std::pair{"silicon-sw", "ngrid=5,5,5"}, std::pair{"wurtzite-sw", "ngrid=3,3,2"}}) {
    const auto exact =
        test::solve_deck_4ph(model(name), {mesh, "scalebroad=0.3", "convergence=F"}, {GetParam()});
    const auto mixed = test::solve_deck_4ph(
        model(name), {mesh, "scalebroad=0.3", "convergence=F", "precision=mixed"}, {GetParam()});
    EXPECT_FALSE(exact->four_phonon->precision_errors);
    ASSERT_TRUE(mixed->four_phonon->precision_errors);
    const PrecisionError said = measure_precision_4ph(mixed->run, mixed->four_phonon->rates,
                                                      *mixed->four_phonon->precision_errors);
    double scale = 0.0, largest = 0.0;
    for (std::int64_t row = 0; row < exact->n_rows(); ++row)
      scale = std::max(scale, exact->four_phonon->rates.total_per_ps(0, row));
    for (std::int64_t row = 0; row < exact->n_rows(); ++row) {
      const double w = exact->four_phonon->rates.total_per_ps(0, row);
      if (w > kVanishingRate * scale)
        largest =
            std::max(largest, std::fabs(mixed->four_phonon->rates.total_per_ps(0, row) / w - 1.0));
    }
    EXPECT_GT(largest, 1e-10) << "mixed is not FP64";
    EXPECT_LT(largest, 1e-4);
    EXPECT_LT(said.largest_rate_error, 1e-4);
    EXPECT_GT(said.largest_rate_error, 0.1 * largest);
    EXPECT_LT(said.largest_rate_error, 100.0 * largest);
    EXPECT_LT(said.kappa_error, 1e-6);
    EXPECT_EQ(exact->four_phonon->rates.evaluations, mixed->four_phonon->rates.evaluations)
        << "which processes exist is decided in FP64";
    std::printf("    %s: rates %.1e (said) %.1e (all), kappa %.1e\n", name, said.largest_rate_error,
                largest, said.kappa_error);
  }
}

// 12. Smooth in 1/N and in the width, at a temperature where four phonons are a fifth of the
// resistance: κ, and the mean of the four-phonon rates over all modes, which is what they add to
// it. A straight line through 4³ to 7³ is nowhere off by more than 4 %, and one width differs from
// the next by as much (12 % from 0.2 to 0.1, where σ nears the spacing of the levels): what is left
// is how coarse meshes meet the shell.
TEST_P(Conductivity4ph, IsSmoothInMeshAndWidth) {
  struct Found {
    double kappa, rate;
  };
  const auto found = [&](int n, const std::string& width) {
    const std::string mesh = std::to_string(n);
    const auto s = test::solve_deck_4ph(model("silicon-sw"),
                                        {"ngrid=" + mesh + "," + mesh + "," + mesh, "T=1000",
                                         "convergence=F", "scalebroad=" + width},
                                        {GetParam()});
    double rate = 0.0;
    for (std::int64_t row = 0; row < s->n_rows(); ++row)
      rate += s->deck.symmetry.multiplicity[row / s->run.modes.n_branches] *
              s->four_phonon->rates.total_per_ps(0, row);
    std::printf("    %d³, sb %s: κ %.2f W/m/K, mean four-phonon rate %.5f 1/ps\n", n, width.c_str(),
                s->at().kappa_rta_w_per_mk[0][0],
                rate / static_cast<double>(s->run.modes.n_modes()));
    return Found{s->at().kappa_rta_w_per_mk[0][0],
                 rate / static_cast<double>(s->run.modes.n_modes())};
  };
  std::vector<double> inverse, kappa, rate;
  for (const int n : {4, 5, 6, 7}) {
    const Found f = found(n, "0.7");
    inverse.push_back(1.0 / n);
    kappa.push_back(f.kappa);
    rate.push_back(f.rate);
  }
  for (const auto& values : {kappa, rate}) {
    const ConvergenceLimit line = limit_of_fit(inverse, values);
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(values[i], line.value + line.slope * inverse[i], 0.04 * values.back());
  }
  Found before = found(5, "1");
  for (const char* width : {"0.8", "0.6", "0.4", "0.3", "0.2", "0.1"}) {
    const Found now = found(5, width);
    const double tolerance = std::string(width) == "0.1" ? 0.12 : 0.04;
    EXPECT_NEAR(now.kappa / before.kappa, 1.0, tolerance) << width;
    EXPECT_NEAR(now.rate / before.rate, 1.0, tolerance) << width;
    before = now;
  }
}

QUASI_ON_EVERY_DEVICE(Conductivity4ph);

}  // namespace
}  // namespace quasi::thermal
