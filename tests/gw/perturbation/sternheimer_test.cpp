// First orders of states by the Sternheimer equation, and first orders of Σ with states beyond the
// bands of its sum.

#include "workers/gw/solver/perturbation/response/sternheimer.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/small_silicon.hpp"
#include "tests/support/every_device.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/empirical_structure.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/gw/solver/perturbation/displacement_elements.hpp"
#include "workers/gw/solver/perturbation/finite_displacements/finite_difference.hpp"

namespace quasi::gw {
namespace {

using test::SmallSilicon;

/// Holds all eigenstates of H at one k, from its matrix.
struct AllStates {
  std::vector<double> energy_ry;
  std::vector<Cplx> coefficients;  ///< [n_pw][n_pw]
};
AllStates all_states(const Crystal& crystal, const Vec3& k, const std::vector<IVec3>& g,
                     const PotentialElements& potential, GwKernels& kernels) {
  const GIndex index(g);
  const std::size_t n = g.size();
  std::vector<Cplx> h(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (const auto& [difference, value] : potential)
      if (const std::int32_t j = index.find(g[i] - difference); j >= 0)
        h[i * n + static_cast<std::size_t>(j)] += value;
    const Vec3 wave = k + to_real(g[i]);
    h[i * n + i] += metric_dot(crystal.bdot, wave, wave);
  }
  AllStates states{std::vector<double>(n), std::vector<Cplx>(n * n)};
  kernels.dense().eigen_hermitian(view<const Cplx>(h, n, n), view<double>(states.energy_ry, n),
                                  view<Cplx>(states.coefficients, n, n));
  return states;
}

/// The lowest states of one k, which the Sternheimer equation completes.
struct LowestStatesAtK {
  WavesAtPoint waves;
  std::vector<double> energy_ry;

  LowestStatesAtK(const MeanField& field, const Vec3& k, int bands)
      : waves(waves_at(field, k, 0, 0, bands, sum_box(field, field.waves.header.g))) {
    for (int n = 0; n < bands; ++n)
      energy_ry.push_back(field.waves.energy(0, waves.rotation.irreducible, n));
  }
};

std::vector<Cplx> solved(const SmallSilicon& silicon, const EmpiricalCrystal& crystal,
                         const Vec3& k, const LowestStatesAtK& states,
                         const std::vector<const PotentialElements*>& potentials, BandRange kets) {
  return SternheimerEquation(local_parts(silicon.field.crystal(), k, states.waves.waves.g,
                                         empirical_potential(crystal)),
                             states.waves, states.energy_ry, 1e-11, *silicon.kernels)
      .solve(potentials, kets);
}

// ψ'_n = Σ_m |m⟩⟨m|∂V|n⟩/(E_n − E_m) over all eigenstates m of the matrix of H above
// the given ones, at rotated k-points too. 1e-8 of the largest element: the residual of 1e-11
// over the smallest E_m − E_n, which is above 0.01 Ry.
TEST(Sternheimer, GivesTheSumOverAllStatesOfTheMatrix) {
  for (const char* name : {"silicon", "gaas"}) {
    EmpiricalCrystal crystal = SmallSilicon::small_crystal();
    crystal.name = name;
    const SmallSilicon silicon(crystal);
    const MeanField& field = silicon.field;
    const int bands = silicon.options().bands;
    const PotentialElements first =
                                atom_displacement(crystal, field.crystal(), 0, {1, 0, 0}).elements,
                            second = atom_displacement(crystal, field.crystal(), 1, {0, .6, .8})
                                         .elements;
    for (const Vec3& k : {Vec3{}, Vec3{0.5, 0.0, 0.0}, Vec3{0.5, 0.5, -0.5}}) {
      const LowestStatesAtK states(field, k, bands);
      const BandRange kets{1, bands};
      const std::vector<Cplx> found = solved(silicon, crystal, k, states, {&first, &second}, kets);
      const AllStates all = all_states(field.crystal(), k, states.waves.waves.g,
                                       empirical_potential(crystal), *silicon.kernels);
      const std::size_t n_pw = states.waves.waves.g.size();
      EXPECT_GT(n_pw, static_cast<std::size_t>(bands) + 20);
      double deviation = 0.0, largest = 0.0;
      std::size_t at = 0;
      for (const PotentialElements* potential : {&first, &second}) {
        const std::vector<Cplx> applied = applied_potential(*potential, states.waves, kets);
        for (std::int64_t n = 0; n < kets.size(); ++n) {
          std::vector<Cplx> sum(n_pw);
          for (std::size_t m = static_cast<std::size_t>(bands); m < n_pw; ++m) {
            const Cplx* state = all.coefficients.data() + m * n_pw;
            Cplx v;
            for (std::size_t g = 0; g < n_pw; ++g)
              v += std::conj(state[g]) * applied[static_cast<std::size_t>(n) * n_pw + g];
            const double gap =
                states.energy_ry[static_cast<std::size_t>(kets.begin + n)] - all.energy_ry[m];
            for (std::size_t g = 0; g < n_pw; ++g) sum[g] += v / gap * state[g];
          }
          for (const Cplx& value : sum) {
            deviation = std::max(deviation, std::abs(found[at++] - value));
            largest = std::max(largest, std::abs(value));
          }
        }
      }
      EXPECT_GT(largest, 0.01);
      EXPECT_LT(deviation, 1e-8 * largest) << name << ' ' << k[0];
    }
  }
}

// A rotation inside the multiplets rotates the first orders in the same way, because the equation
// is linear in ψ_n and its energy is that of the multiplet. 1e-9: the residual of the equation.
TEST(Sternheimer, RotatesWithTheStatesOfAMultiplet) {
  const EmpiricalCrystal crystal = SmallSilicon::small_crystal();
  SmallSilicon silicon(crystal);
  const int bands = silicon.options().bands;
  const PotentialElements potential =
      atom_displacement(crystal, silicon.field.crystal(), 0, {0, 0, 1}).elements;
  const auto of = [&] {
    const LowestStatesAtK states(silicon.field, {}, bands);
    return solved(silicon, crystal, {}, states, {&potential}, {0, bands});
  };
  const std::vector<Cplx> before = of();
  const std::vector<Cplx> u = test::rotate_multiplets(silicon.field, 0, bands, 5);
  const std::vector<Cplx> after = of();
  const auto n = static_cast<std::size_t>(bands), n_pw = before.size() / n;
  double change = 0.0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t g = 0; g < n_pw; ++g) {
      Cplx expected;
      for (std::size_t j = 0; j < n; ++j) expected += u[i * n + j] * before[j * n_pw + g];
      EXPECT_LT(std::abs(after[i * n_pw + g] - expected), 1e-9);
      change = std::max(change, std::abs(after[i * n_pw + g] - before[i * n_pw + g]));
    }
  EXPECT_GT(change, 0.01);
}

// Bands 2 to 4 of silicon at Γ are one multiplet. A sum that ends inside it has no first order.
TEST(Sternheimer, RefusesASplitMultiplet) {
  const EmpiricalCrystal crystal = SmallSilicon::small_crystal();
  const SmallSilicon silicon(crystal);
  const PotentialElements potential =
      atom_displacement(crystal, silicon.field.crystal(), 0, {0, 0, 1}).elements;
  const LowestStatesAtK states(silicon.field, {}, 3);
  try {
    solved(silicon, crystal, {}, states, {&potential}, {0, 3});
    FAIL() << "the split multiplet was accepted";
  } catch (const NotConverged& error) {
    EXPECT_NE(std::string(error.what()).find("choose another sigma.bands"), std::string::npos)
        << error.what();
  }
}

/// Calculates the largest deviation of ∂Σ from finite displacements of one atom at one k that is
/// not Γ, eV/Bohr. The sum of Σ holds 18 of about 65 states.
double deviation_ev(SmallSilicon& silicon, const SigmaOptions& options, double step_bohr,
                    bool sternheimer) {
  SilentProgress silent;
  DeviceTeam team(*silicon.kernels);
  Checkpoint none;
  const DisplacementElements found = displacement_elements({SmallSilicon::small_crystal(),
                                                            {.wanted = true,
                                                             .atoms = {2},
                                                             .directions = "z",
                                                             .check_step_bohr = step_bohr,
                                                             .sternheimer = sternheimer}},
                                                           silicon.field, silicon.epsilon, options,
                                                           {silicon.coulomb, team, none, silent});
  return largest_deviation_ry(found.at[0][0]) * kRydberg_ev;
}

SigmaOptions options_at(const SmallSilicon& silicon, SigmaMethod method) {
  SigmaOptions options = silicon.options();
  options.rules = {.half_width_ry = 0.0, .max_ratio = 1e300, .screened_exchange_cut = 1e300};
  options.method = method;
  options.kpoints = {1};
  return options;
}

// With the states beyond the bands of Σ, ∂Σ is the derivative of the same truncated Σ: 1e-5
// eV/Bohr, and the deviation of central differences falls as h². Without them it misses it by the
// bands that are left out.
TEST(Sternheimer, MakesTheFirstOrderOfATruncatedSumExact) {
  SmallSilicon silicon;
  for (const SigmaMethod method : {SigmaMethod::kHybertsenLouie, SigmaMethod::kCohsex}) {
    const SigmaOptions options = options_at(silicon, method);
    const double fine = deviation_ev(silicon, options, 0.001, true),
                 coarse = deviation_ev(silicon, options, 0.002, true);
    EXPECT_LT(fine, 1e-5);
    EXPECT_GT(coarse, 3.5 * fine);
    EXPECT_LT(coarse, 4.5 * fine);
    EXPECT_GT(deviation_ev(silicon, options, 0.001, false), 1e-3);
  }
}

// Full frequency with W whole and in a subspace, in the gap and among the occupied bands, where
// residues make ∂Σ complex. No state crosses a point of the real axis within 2e-3 Bohr. Steps of
// h and 2h leave h⁴: 1e-6 Ry/Bohr.
TEST(Sternheimer, MakesTheFirstOrderByContourExact) {
  SmallSilicon silicon;
  SigmaOptions options = options_at(silicon, SigmaMethod::kContour);
  options.contour.imaginary_ry = imaginary_grid(8, 2.0);
  for (int i = 0; i <= 60; ++i) options.contour.real_ry.push_back(0.5 * i / kRydberg_ev);
  silicon.epsilon = silicon.screening(
      silicon.field, options.contour.frequencies_ry(0.1 / kRydberg_ev, 1e-4 / kRydberg_ev));
  const double midgap = midgap_ry(silicon.field, 0);
  const std::vector<double> energies_ry{midgap + 0.01, midgap - 0.31};
  const EmpiricalCrystal crystal = SmallSilicon::small_crystal();
  const Crystal& cell = silicon.field.crystal();
  const std::vector<Perturbation> perturbations{atom_displacement(crystal, cell, 1, {0, 0, 1})};
  const StateResponse response{empirical_potential(crystal), 1e-12};
  SilentProgress silent;
  DeviceTeam team(*silicon.kernels);
  Checkpoint none;
  for (const double tolerance : {0.0, 0.02}) {
    options.subspace.tolerance = tolerance;
    const auto differences = [&](double h) {
      const std::vector<DisplacedPotentials> potentials{
          {{displaced_potential(crystal, cell, 1, {0, 0, h})},
           {displaced_potential(crystal, cell, 1, {0, 0, -h})}}};
      return finite_differences(silicon.field, silicon.epsilon, options,
                                {potentials, energies_ry, h},
                                {silicon.coulomb, *silicon.kernels, silent})[0];
    };
    const std::vector<Cplx> fine = differences(1e-3), coarse = differences(2e-3);
    const auto found = [&](const StateResponse* states) {
      return sigma_derivatives(silicon.field, silicon.epsilon, options,
                               DerivativeRequest{perturbations, energies_ry, nullptr, states},
                               StepContext{silicon.coulomb, team, none, silent})[0][0];
    };
    const SigmaDerivativeAtK whole = found(&response), of_bands = found(nullptr);
    double missed = 0.0, decay = 0.0;
    for (std::size_t e = 0; e < 2; ++e)
      for (std::int64_t l = 0; l < whole.n; ++l)
        for (std::int64_t m = 0; m < whole.n; ++m) {
          const std::size_t i = e * static_cast<std::size_t>(whole.n * whole.n) +
                                static_cast<std::size_t>(l * whole.n + m);
          const Cplx difference = (4.0 * fine[i] - coarse[i]) / 3.0;
          EXPECT_LT(std::abs(whole.at(e, l, m) - difference), 1e-6) << e << ' ' << l << ' ' << m;
          missed = std::max(missed, std::abs(of_bands.at(e, l, m) - difference));
          decay = std::max(decay, std::abs(whole.at(e, l, m) - std::conj(whole.at(e, m, l))));
        }
    EXPECT_GT(missed, 1e-4);
    EXPECT_GT(decay, 1e-4);
  }
}

class SternheimerOn : public quasi::test::OnEveryDevice {};
QUASI_ON_EVERY_DEVICE(SternheimerOn);

// ∂Σ with states beyond the bands is the same on all devices. 1e-10 of the largest element: the
// residual of 1e-13 over the smallest energy difference of 0.01 Ry, and rounding.
TEST_P(SternheimerOn, GivesTheDerivativeOfTheProcessor) {
  SmallSilicon silicon;
  const auto kernels = make_gw_kernels(GetParam());
  SilentProgress silent;
  const EmpiricalCrystal crystal = SmallSilicon::small_crystal();
  const StateResponse response{empirical_potential(crystal), 1e-13};
  const std::vector<Perturbation> perturbations{
      atom_displacement(crystal, silicon.field.crystal(), 0, {0, 0, 1}),
      atom_displacement(crystal, silicon.field.crystal(), 1, {1, 0, 0})};
  const std::vector<double> energies_ry{0.1, 0.3};
  for (const SigmaMethod method : {SigmaMethod::kHybertsenLouie, SigmaMethod::kContour}) {
    SigmaOptions options = options_at(silicon, method);
    options.contour.imaginary_ry = imaginary_grid(8, 2.0);
    for (int i = 0; i <= 60; ++i) options.contour.real_ry.push_back(0.5 * i / kRydberg_ev);
    silicon.epsilon = silicon.screening(
        silicon.field, method == SigmaMethod::kContour
                           ? options.contour.frequencies_ry(0.1 / kRydberg_ev, 1e-4 / kRydberg_ev)
                           : std::vector<Cplx>{Cplx{}});
    const auto on = [&](GwKernels& device) {
      DeviceTeam team(device);
      Checkpoint none;
      return sigma_derivatives(silicon.field, silicon.epsilon, options,
                               DerivativeRequest{perturbations, energies_ry, nullptr, &response},
                               StepContext{silicon.coulomb, team, none, silent});
    };
    const auto found = on(*kernels), expected = on(*silicon.kernels);
    for (std::size_t p = 0; p < 2; ++p) {
      const SigmaDerivativeAtK &a = found[p][0], &b = expected[p][0];
      double deviation = 0.0, largest = 0.0;
      for (std::size_t e = 0; e < 2; ++e)
        for (std::int64_t l = 0; l < a.n; ++l)
          for (std::int64_t m = 0; m < a.n; ++m) {
            deviation = std::max(deviation, std::abs(a.at(e, l, m) - b.at(e, l, m)));
            largest = std::max(largest, std::abs(b.at(e, l, m)));
          }
      EXPECT_GT(largest, 0.01);
      EXPECT_LT(deviation, 1e-10 * largest);
    }
  }
}

}  // namespace
}  // namespace quasi::gw
