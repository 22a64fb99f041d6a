// Tests quantities derived from the rates: wires, sweeps, Grüneisen parameters, densities of states
// and spectra.

#include "workers/thermal/solver/transport/derived.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "examples/thermal/generate/deck_writer.hpp"
#include "examples/thermal/generate/stillinger_weber.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/support/reference_run.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/solver/harmonic/gruneisen.hpp"
#include "workers/thermal/solver/three_phonon/precision_check.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

std::filesystem::path silicon() { return quasi::test::source_dir() / "examples/thermal/silicon"; }

Transport transport_of(const test::SolvedDeck& s) {
  return {s.deck.crystal, s.deck.symmetry, s.run.modes, s.deck.control.transport_options()};
}

// The reduction by diffuse walls: thick wires reduce nothing, thin ones leave 8R/(3πΛ), and between
// them the integral is computed numerically. The rule and the asymptotic series agree to 1e-10.
TEST(Wire, ReductionHasItsLimits) {
  EXPECT_EQ(diffuse_wire_reduction(0.0, 10.0), 1.0);
  EXPECT_NEAR(diffuse_wire_reduction(1.0, 1e7), 1.0 - 4.0 / (units::kPi * 2e7), 1e-15);
  EXPECT_NEAR(diffuse_wire_reduction(1e9, 1.0) / (8.0 / (3.0 * units::kPi * 1e9)), 1.0, 1e-8);
  for (const double z : {0.01, 0.5, 3.0, 20.0, 59.9, 60.1, 300.0}) {
    const double radius = 1.0;
    const double path = 2.0 * radius / z;
    constexpr int kSteps = 400000;
    double sum = 0.0;
    for (int i = 0; i < kSteps; ++i) {  // x = R sin θ makes the integrand smooth at the rim
      const double theta = 0.5 * units::kPi * (i + 0.5) / kSteps;
      const double chord = 2.0 * radius * std::cos(theta);
      sum += (chord / path - 1.0 + std::exp(-chord / path)) * radius * std::cos(theta);
    }
    sum *= 0.5 * units::kPi / kSteps;
    EXPECT_NEAR(diffuse_wire_reduction(path, radius),
                2.0 * path / (units::kPi * radius * radius) * sum, 1e-10)
        << z;
  }
}

// κ of wires equals the bulk's along the axis for wide wires and falls with the radius. In the
// thinnest wire every mode that hits a wall carries 8R/(3π v_ρ) of its own speed; the axis is along
// no symmetry line.
TEST(Wire, ConductivityLiesBetweenBulkAndCasimir) {
  const auto s = test::solve_deck(silicon(), {"ngrid=5,5,5", "nanowires=T", "norientations=1",
                                              "orientations(:,1)=1,3,7", "rmin=1e9", "rmax=1e9"});
  Transport t = transport_of(*s);
  const TemperatureResult& r = s->run.by_temperature[0];
  const auto wide = wire_conductivity(t, r.temperature_k, r.rate_per_ps);
  EXPECT_NEAR(wide.kappa_w_per_mk[0] / r.kappa_rta_w_per_mk[0][0], 1.0, 1e-6);
  t.options.wires.radius_min_nm = 1e-7;
  t.options.wires.radius_max_nm = 1e-7;
  const auto thin = wire_conductivity(t, r.temperature_k, r.rate_per_ps);
  double casimir = 0.0;
  const PhysicalConstants& c = s->deck.control.constants();
  for (std::int64_t mode = s->run.modes.n_branches; mode < s->run.modes.n_modes(); ++mode) {
    const double* v = &s->run.modes.velocity_km_s[mode * 3];
    const Vec3 velocity{v[0], v[1], v[2]};
    const double along = dot(velocity, thin.axis[0]);
    const double across = std::sqrt(dot(velocity, velocity) - along * along);
    if (across == 0.0) continue;
    casimir +=
        heat_capacity_kb(s->run.modes.omega_rad_ps[mode], r.temperature_k, c.hbar_over_kb_k_ps()) *
        along * along * 8.0 * 1e-7 / (3.0 * units::kPi * across);
  }
  // Branches of a degenerate set have the root mean square speed across the axis.
  for (std::int64_t q = 0; q < s->run.modes.n_q; ++q) {
    const Symmetry& symmetry = s->deck.symmetry;
    const Mat3& turn = symmetry.operations[symmetry.operation_to[q]].cartesian;
    const Vec3 axis = transpose(turn) * thin.axis[0];
    for (int b = 0; b < s->run.modes.n_branches; ++b) {
      const std::int64_t row = symmetry.star_of[q] * s->run.modes.n_branches + b;
      const Mat3 spread = t.velocity_variance(row);
      const double along = dot(axis, spread * axis);
      if (along == 0.0) continue;
      const double* v = &s->run.modes.velocity_km_s[t.mode_of_row(row) * 3];
      const double mean_along = dot(axis, {v[0], v[1], v[2]});
      const double speed = t.speed_km_s(row);
      casimir += heat_capacity_kb(s->run.modes.omega_rad_ps[t.mode_of_row(row)], r.temperature_k,
                                  c.hbar_over_kb_k_ps()) *
                 along * 8.0 * 1e-7 /
                 (3.0 * units::kPi * std::sqrt(speed * speed - mean_along * mean_along - along));
    }
  }
  casimir *=
      c.kb_1e23_j_k * 1e-2 / (s->deck.crystal.volume_nm3() * static_cast<double>(s->run.modes.n_q));
  EXPECT_NEAR(thin.kappa_w_per_mk[0] / casimir, 1.0, 1e-5);
  t.options.wires.radius_min_nm = 10.0;
  t.options.wires.radius_max_nm = 510.0;
  const auto some = wire_conductivity(t, r.temperature_k, r.rate_per_ps);
  ASSERT_EQ(some.radius_nm.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_LT(some.kappa_w_per_mk[i], wide.kappa_w_per_mk[0]);
    EXPECT_GT(some.kappa_w_per_mk[i], i == 0 ? thin.kappa_w_per_mk[0] : some.kappa_w_per_mk[i - 1]);
  }
}

// κ of the BTE of a wire equals the bulk's for wide wires. For the thinnest it equals the
// relaxation-time approximation's, because the walls prevent in-scattering. It does not depend on
// the use of the wire's symmetry, and it lies between both limits in the middle.
TEST(Wire, ConvergedConductivityHasItsLimits) {
  const std::vector<std::string> settings{"ngrid=4,4,4",     "T=200,300",
                                          "eps=1e-10",       "nanowires=T",
                                          "norientations=1", "orientations(:,1)=1,1,1"};
  SilentProgress silent;
  std::vector<std::vector<double>> found;
  for (const char* folding : {"symmetry=T", "symmetry=F"}) {
    auto with = settings;
    with.push_back(folding);
    const auto s = test::solve_deck(silicon(), with);
    const auto kappa = [&](double radius, std::size_t t) {
      s->deck.control.radius_min_nm = s->deck.control.radius_max_nm = radius;
      const WireScattering scattering{.three_phonon = s->deck.control.three_phonon_options(),
                                      .relaxation_per_ps = {},
                                      .iterated_along = nullptr};
      return converged_wires(s->transport(), s->problem.fc3, s->run, scattering, Device{},
                             silent)[t]
          .kappa_w_per_mk[0];
    };
    const auto rta = [&](double radius) {
      s->deck.control.radius_min_nm = s->deck.control.radius_max_nm = radius;
      const Transport t = transport_of(*s);
      return wire_conductivity(t, 300.0, s->run.by_temperature[1].rate_per_ps).kappa_w_per_mk[0];
    };
    const TemperatureResult& r = s->run.by_temperature[1];
    found.push_back({kappa(50.0, 0), kappa(50.0, 1)});
    if (found.size() == 2) break;  // the limits once
    EXPECT_NEAR(kappa(1e9, 1) / r.kappa_w_per_mk[0][0], 1.0, 1e-6);
    EXPECT_GT(kappa(50.0, 1), rta(50.0) * (1.0 + 1e-6));
    EXPECT_LT(kappa(50.0, 1), r.kappa_w_per_mk[0][0]);
    EXPECT_GT(kappa(200.0, 1), kappa(50.0, 1));
    // Modes along the axis never hit a wall. If all others are stopped, the remaining scattering is
    // pure relaxation.
    EXPECT_LT(kappa(1e-3, 1) / rta(1e-3) - 1.0,
              0.2 * (r.kappa_w_per_mk[0][0] / r.kappa_rta_w_per_mk[0][0] - 1.0) + 1e-3);
  }
  for (int t = 0; t < 2; ++t) EXPECT_NEAR(found[1][t] / found[0][t], 1.0, 1e-7);
}

/// Kernels that count their calls.
class CountingKernels : public ThreePhononKernels {
 public:
  explicit CountingKernels(ThreePhononKernels& real) : real_(real) {}
  int n_rates = 0;
  int n_loads = 0;
  void load(const ThreePhononProblem& problem) override { ++n_loads, real_.load(problem); }
  std::vector<std::int64_t> count(const std::vector<std::int64_t>& rows) override {
    return real_.count(rows);
  }
  std::vector<Process3> list(std::int64_t first, std::int64_t last,
                             std::vector<std::int64_t>& offsets) override {
    return real_.list(first, last, offsets);
  }
  ThreePhononRates rates(const std::vector<double>& temperatures_k, bool keep,
                         Progress& progress) override {
    return ++n_rates, real_.rates(temperatures_k, keep, progress);
  }
  std::vector<double> apply_collision(double temperature_k, OccupationForm form,
                                      const std::vector<double>& f) override {
    return real_.apply_collision(temperature_k, form, f);
  }
  std::vector<double> row_rates(double temperature_k, OccupationForm form) override {
    return real_.row_rates(temperature_k, form);
  }

 private:
  ThreePhononKernels& real_;
};

// Twelve settings from one evaluation of the matrix elements. Each equals a separate run up to the
// solver's residual (eps).
TEST(Sweep, ReusesTheMatrixElementsAndAgreesWithSeparateRuns) {
  const std::vector<std::string> base{"ngrid=5,5,5", "T=200,300", "eps=1e-11"};
  auto settings = base;
  settings.insert(settings.end(), {"isotope_factors=0,1,3", "grain_sizes_nm=100,1e6"});
  const auto s = test::solve_deck(silicon(), settings);
  const ConductivityRun& run = s->run;
  const Mat3 before = run.by_temperature[1].kappa_w_per_mk;
  CountingKernels counting(*s->kernels);
  SilentProgress silent;
  const Transport transport = s->transport();
  const Sweep sweep =
      run_sweep({transport, s->deck.third_order, counting, FurtherScattering{}}, s->run, silent);
  EXPECT_EQ(counting.n_rates, 0);
  EXPECT_EQ(counting.n_loads, 0);
  EXPECT_EQ(run.by_temperature[1].kappa_w_per_mk, before);
  EXPECT_TRUE(run.boundary_per_ps.empty());
  ASSERT_EQ(sweep.kappa_w_per_mk.size(), 12u);
  const auto at = [](std::size_t isotope, std::size_t grain, std::size_t t) {
    return (isotope * 2 + grain) * 2 + t;
  };
  const auto compare = [&](std::size_t isotope, std::size_t grain,
                           const std::vector<std::string>& own) {
    auto alone_settings = base;
    alone_settings.insert(alone_settings.end(), own.begin(), own.end());
    const auto alone = test::solve_deck(silicon(), alone_settings);
    for (std::size_t t = 0; t < 2; ++t) {
      const TemperatureResult& r = alone->run.by_temperature[t];
      EXPECT_NEAR(
          sweep.kappa_rta_w_per_mk[at(isotope, grain, t)][0][0] / r.kappa_rta_w_per_mk[0][0], 1.0,
          1e-12);
      EXPECT_NEAR(sweep.kappa_w_per_mk[at(isotope, grain, t)][0][0] / r.kappa_w_per_mk[0][0], 1.0,
                  1e-9);
    }
  };
  compare(0, 0, {"isotopes=F", "boundary_length_nm=100"});
  compare(1, 1, {"boundary_length_nm=1e6"});
  const double g = natural_element("Si")->g_factor;
  compare(2, 0,
          {"boundary_length_nm=100", "autoisotopes=F", "masses=" + std::to_string(28.08551),
           "gfactors=" + std::to_string(3e6 * g) + "e-6"});
}

// γ of every mode against the frequencies of the strained potential, with FC2 made anew at (1 ±
// 5e-4) a. The remaining difference is third order in the strain (1e-6), and the files have 1e-9
// eV/Å².
TEST(Gruneisen, IsTheChangeUnderStrain) {
  constexpr double kStrain = 5e-4;
  const std::vector<std::string> settings{"ngrid=4,4,4", "isotopes=F"};
  const auto s =
      test::solve_deck(quasi::test::source_dir() / "examples/thermal/silicon-sw", settings);
  const auto gamma = gruneisen_parameters(transport_of(*s), s->problem.fc3);
  const auto strained = [&](double strain) {
    const quasi::test::TemporaryDirectory place;
    const quasi::model::StillingerWeber potential;
    quasi::model::Structure crystal = quasi::model::diamond(potential);
    for (auto& row : crystal.lattice_angstrom)
      for (double& x : row) x *= 1.0 + strain;
    quasi::model::write_control(place.path() / "CONTROL", crystal, {.mesh = {4, 4, 4}});
    quasi::model::write_supercell_second_order(
        place.path() / "FORCE_CONSTANTS_2ND", crystal,
        quasi::model::derivatives(crystal, potential.terms(crystal), 2));
    const Deck deck = read_deck(place.path(), test::settings_of({"onlyharmonic=T"}));
    SilentProgress silent;
    return start_run(deck, deck.control.harmonic_options(), silent).modes.omega_rad_ps;
  };
  const auto wide = strained(kStrain);
  const auto narrow = strained(-kStrain);
  const int nb = s->run.modes.n_branches;
  double most = 0.0;
  for (std::size_t i = 0; i < s->deck.symmetry.irreducible.size(); ++i)
    for (int b = 0; b < nb; ++b) {
      const std::int64_t mode = s->deck.symmetry.irreducible[i] * nb + b;
      if (s->run.modes.omega_rad_ps[mode] == 0.0) continue;
      const double slope = -std::log(wide[mode] / narrow[mode]) /
                           (3.0 * std::log((1.0 + kStrain) / (1.0 - kStrain)));
      EXPECT_NEAR(gamma[i * nb + b], slope, 2e-5) << "point " << i << " branch " << b;
      most = std::max(most, std::fabs(slope));
    }
  EXPECT_GT(most, 0.5);  // the compared values are not all zero
}

// Compares Grüneisen parameters with those of FourPhonon; degenerate modes enter by their mean.
TEST(Gruneisen, AgreesWithTheReferenceProgram) {
  QUASI_NEED_REFERENCE("thermal/si/runs");
  const test::ReferenceRun reference("34ph_m04_sb1.0");
  const auto s = test::solve_deck(reference.deck(), {"compat=fourphonon", "ngrid=4,4,4", "T=300",
                                                     "four_phonon=F", "convergence=F"});
  auto gamma = gruneisen_parameters(transport_of(*s), s->problem.fc3);
  auto table = reference.table("BTE.gruneisen");
  std::vector<double> expected;
  for (const auto& row : table) expected.insert(expected.end(), row.begin(), row.end());
  ASSERT_EQ(expected.size(), gamma.size());
  const double mean = mean_gruneisen(transport_of(*s), gamma, 300.0);
  EXPECT_NEAR(mean, reference.table("T300K/BTE.gruneisen_total")[0][0], 1e-6);
  average_over_subspaces(s->run.modes, s->deck.symmetry.irreducible, 1, gamma.data());
  average_over_subspaces(s->run.modes, s->deck.symmetry.irreducible, 1, expected.data());
  for (std::size_t row = 0; row < gamma.size(); ++row)
    EXPECT_NEAR(gamma[row], expected[row], 1e-6) << row;
}

// Silicon in mixed precision: the error estimated from a sample equals the error of a whole run in
// FP64. The limits are those of FP32 where V vanishes with q: rates to 1e-4, κ to 1e-6.
TEST(MixedPrecision, SaysItsErrorAndMeansIt) {
  const auto exact = test::solve_deck(silicon(), {"ngrid=8,8,8", "convergence=F"});
  const auto mixed =
      test::solve_deck(silicon(), {"ngrid=8,8,8", "convergence=F", "precision=mixed"});
  const PrecisionError error =
      measure_precision(mixed->transport().options, mixed->problem, mixed->run, Device{});
  double largest = 0.0;
  for (std::int64_t row = 0; row < exact->n_rows(); ++row) {
    const double w = exact->run.three_phonon.absorption_per_ps[row] +
                     exact->run.three_phonon.emission_per_ps[row];
    const double v = mixed->run.three_phonon.absorption_per_ps[row] +
                     mixed->run.three_phonon.emission_per_ps[row];
    if (w > 0.0) largest = std::max(largest, std::fabs(v / w - 1.0));
  }
  EXPECT_GT(error.largest_rate_error, 1e-9);
  EXPECT_LT(error.largest_rate_error, 1e-4);
  EXPECT_LE(error.largest_rate_error, largest * (1.0 + 1e-9));
  EXPECT_GT(error.largest_rate_error, 0.05 * largest);
  EXPECT_LT(error.kappa_error, 1e-6);
  EXPECT_NEAR(mixed->run.by_temperature[0].kappa_rta_w_per_mk[0][0] /
                  exact->run.by_temperature[0].kappa_rta_w_per_mk[0][0],
              1.0, 1e-6);
  std::printf("    rates %.1e (sample) %.1e (all), kappa %.1e\n", error.largest_rate_error, largest,
              error.kappa_error);
}

// Rates that vanish by symmetry (narrow lines on a coarse mesh) hold only rounding and are left
// out.
TEST(MixedPrecision, LeavesOutWhatVanishes) {
  const auto mixed = test::solve_deck(
      silicon(), {"ngrid=6,6,6", "scalebroad=0.1", "convergence=F", "precision=mixed"});
  EXPECT_LT(measure_precision(mixed->transport().options, mixed->problem, mixed->run, Device{})
                .largest_rate_error,
            1e-4);
}

// The density of states holds 3 states an atom, and its parts add up at every frequency.
TEST(DensityOfStates, CountsEveryMode) {
  const auto s =
      test::solve_deck(silicon(), {"ngrid=8,8,8", "onlyharmonic=F", "convergence=F", "nticks=400"});
  const DensityOfStates dos = density_of_states(transport_of(*s));
  double integral = 0.0;
  for (std::size_t i = 0; i < dos.omega_rad_ps.size(); ++i) {
    const double width =
        i == 0 ? dos.omega_rad_ps[0] : dos.omega_rad_ps[i] - dos.omega_rad_ps[i - 1];
    integral += width * dos.total_ps[i];
    EXPECT_NEAR(dos.by_atom_ps[2 * i] + dos.by_atom_ps[2 * i + 1], dos.total_ps[i],
                1e-12 * (1.0 + dos.total_ps[i]));
    EXPECT_NEAR(dos.by_atom_ps[2 * i], dos.by_atom_ps[2 * i + 1],
                1e-6 * (1.0 + dos.total_ps[i]));  // one kind of atom
  }
  // Windows of 2.5 σ lose 4e-4 of each mode. The three modes at Γ lie at ω = 0, so half of their
  // weight lies below the axis.
  EXPECT_NEAR(integral, 6.0, 0.02);
}

// The integral of a spectrum over ω is κ, for populations (with any further scattering in the
// rates) and coherences.
TEST(Spectra, IntegrateToTheConductivity) {
  const auto s = test::solve_deck(silicon(), {"ngrid=6,6,6", "nticks=2000"});
  const Transport t = transport_of(*s);
  const Derived d = derive(t, s->deck.second_order, s->problem.fc3, s->run);
  const TemperatureResult& r = s->run.by_temperature[0];
  const auto check = [&](const std::vector<Mat3>& by_row, const Mat3& kappa) {
    EXPECT_NEAR(test::integral_over_omega(spectrum_by_omega(t, by_row)) / kappa[0][0], 1.0, 2e-3);
    const Cumulative cumulative = cumulative_by_omega(t, by_row);
    EXPECT_NEAR(cumulative.kappa_w_per_mk.back()[0][0] / kappa[0][0], 1.0, 1e-12);
  };
  check(r.mode_kappa, r.kappa_w_per_mk);
  check(d.coherence[0].by_row_w_per_mk, d.coherence[0].kappa_w_per_mk);
}

}  // namespace
}  // namespace quasi::thermal
