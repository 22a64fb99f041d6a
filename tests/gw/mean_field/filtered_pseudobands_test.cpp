// Tests pseudobands by polynomials of H, without its eigenstates (docs/theory/gw.md 9.5).

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "tests/gw/support/cpu_hamiltonians.hpp"
#include "tests/gw/support/pseudoband_crystals.hpp"
#include "tests/gw/support/reference_files.hpp"
#include "tests/gw/support/small_silicon.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/solver/mean_field/filtered_pseudobands.hpp"
#include "workers/gw/solver/mean_field/load_mean_field.hpp"

namespace quasi::gw {
namespace {

using test::by_states;
using test::difference_from_states;
using test::edges;
using test::eight_atoms;
using test::loaded;
using test::plane_waves;
using test::Statistics;

constexpr WindowRange kRange{
    .lowest_ry = -0.4, .highest_ry = 8.6, .midgap_ry = 0.3, .first_ry = 0.5};

// The squares add up to 1 within the stated error at energies that the certificate has not seen,
// and each polynomial is its window within a hundred times less than its height.
TEST(WindowPolynomials, SquaresAddUpToOneWithinTheStatedError) {
  for (const double limit : {1e-2, 1e-3, 1e-4}) {
    const PseudobandOptions options{.vectors = 1, .max_identity_error = limit};
    const WindowPolynomials polynomials(options, kRange);
    const EnergyWindows windows(0.5, 8.3, options.ratio);
    EXPECT_LE(polynomials.identity_error(), limit);
    EXPECT_GT(polynomials.identity_error(), 0.1 * limit);
    double largest = 0.0, difference = 0.0;
    std::mt19937_64 generator(3);
    std::uniform_real_distribution<double> energies(0.8, 8.6);
    for (int i = 0; i < 2000; ++i) {
      const double energy = energies(generator);
      double sum = 0.0;
      for (std::size_t k = 0; k < polynomials.size(); ++k) {
        const double p = polynomials.value(k, energy);
        sum += p * p;
        difference = std::max(difference, std::abs(p - std::sqrt(windows.weight(k, energy - 0.3))));
      }
      largest = std::max(largest, std::abs(sum - 1.0));
    }
    EXPECT_LE(largest, 1.02 * polynomials.identity_error()) << limit;
    EXPECT_LT(difference, 0.02) << limit;
    EXPECT_EQ(polynomials.energy(2, 1.2), windows.energy(2, 1.2));
  }
}

// Slices damped by Jackson factors lose weight at every edge. The loss falls with the degree, and
// is still above a hundredth where the splines are exact to 1e-3.
TEST(WindowPolynomials, JacksonDampedSlicesLoseWeight) {
  const WindowPolynomials splines({.vectors = 1}, kRange);
  double before = 1.0;
  for (const int degree : {splines.degree(), 4 * splines.degree()}) {
    const WindowPolynomials slices(
        {.vectors = 1, .windows = WindowForm::kJackson, .degree = degree}, kRange);
    EXPECT_GT(slices.identity_error(), 0.2);
    EXPECT_GT(slices.lost_weight(), 0.01);
    EXPECT_LT(slices.lost_weight(), 0.5 * before);
    before = slices.lost_weight();
    std::printf("degree %d: slices lose %.4f of all weight, splines %.1e\n", degree, before,
                splines.lost_weight());
  }
  EXPECT_LT(std::abs(splines.lost_weight()), 1e-3);
}

TEST(WindowPolynomials, ADegreeThatIsTooLowIsRefused) {
  try {
    const WindowPolynomials made({.vectors = 1, .degree = 50}, kRange);
    ADD_FAILURE() << "degree 50 leaves " << made.identity_error();
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("pseudobands.max_identity_error"), std::string::npos);
  }
}

// Equal windows and random numbers give equal vectors: the recursion equals the sum over all
// states. 1e-8 leaves room for states that are known to a residual of 1e-8 Ry.
TEST(FilteredPseudobands, EqualThoseOfAllStates) {
  for (const char* name : {"silicon", "gaas"}) {
    const MeanField lowest = loaded(name, 5.0, 60, "operator");
    const int n = plane_waves(name, 5.0);
    EXPECT_LT(lowest.waves.n_bands, n / 2);
    const MeanField all = loaded(name, 5.0, n, "dense");
    ASSERT_EQ(all.waves.n_bands, n);
    EXPECT_LT(difference_from_states(lowest, all.waves, std::string(name) == "silicon"), 1e-8)
        << name;
  }
}

// With every plane wave as a vector the windows give the projector on all states above the
// protected ones, within the certified error.
TEST(FilteredPseudobands, EveryPlaneWaveGivesTheIdentity) {
  const MeanField lowest = loaded("silicon", 5.0, 60, "operator");
  const int n = plane_waves("silicon", 5.0);
  const MeanField all = loaded("silicon", 5.0, n, "dense");
  const PseudobandPlan plan = plan_filtered_pseudobands(lowest, {.vectors = 1}, true);
  const HamiltonianOperator h(lowest.hamiltonian(lowest.waves, 0, 0));
  std::vector<double> unit(static_cast<std::size_t>(n * n));
  for (int i = 0; i < n; ++i) unit[static_cast<std::size_t>(i * n + i)] = 1.0;
  const auto functions = static_cast<std::int64_t>(plan.filter->size()) + 1;
  std::vector<double> made(static_cast<std::size_t>(functions) * unit.size());
  const double growth = h.expand(
      {plan.filter->centre_ry(), plan.filter->half_ry(),
       view<const double>(plan.filter->coefficients(), functions, plan.filter->degree() + 1)},
      view<const double>(unit, n, n), view<double>(made, functions, n, n));
  EXPECT_LT(growth, 1.0 + 1e-10);
  for (int band = plan.kept; band < n; ++band) {
    const Cplx* const state =
        all.waves.waves[0].coefficients[0].data() + std::ptrdiff_t{1} * band * n;
    double sum = 0.0;
    for (std::int64_t row = 0; row < (functions - 1) * n; ++row) {
      double overlap = 0.0;
      for (int i = 0; i < n; ++i)
        overlap += state[i].real() * made[static_cast<std::size_t>(row * n + i)];
      sum += overlap * overlap;
    }
    EXPECT_NEAR(sum, 1.0, plan.identity_error + 1e-9) << band;
  }
}

TEST(FilteredPseudobands, SameSeedSameBitsForAnyNumberOfThreads) {
  const int before = omp_get_max_threads();
  for (const char* name : {"silicon", "gaas"}) {
    const MeanField field = loaded(name, 5.0, 60, "operator");
    const auto coefficients = [&](int threads, int seed) {
      omp_set_num_threads(threads);
      const PseudobandPlan plan =
          plan_filtered_pseudobands(field, {.vectors = 7, .seed = seed}, true);
      return filtered_pseudobands(field, plan, PseudobandUse::kScreening, test::cpu_hamiltonians())
          .waves[0]
          .coefficients;
    };
    const auto one = coefficients(1, 1);
    EXPECT_EQ(one, coefficients(3, 1)) << name;
    EXPECT_NE(one, coefficients(3, 2)) << name;
  }
  omp_set_num_threads(before);
}

// A state that the eigensolver has missed is noticed, because vectors have a part below the
// windows.
TEST(FilteredPseudobands, AMissingStateIsNoticed) {
  MeanField field = loaded("silicon", 5.0, 60, "operator");
  const PseudobandPlan plan = plan_filtered_pseudobands(field, {.vectors = 4}, true);
  const std::size_t n_pw = field.waves.waves[0].g.size();
  auto& c = field.waves.waves[0].coefficients[0];
  std::fill_n(c.begin() + static_cast<std::ptrdiff_t>(3 * n_pw), n_pw, Cplx{});
  EXPECT_THROW(
      filtered_pseudobands(field, plan, PseudobandUse::kScreening, test::cpu_hamiltonians()),
      NotConverged);
}

// This case has the projectors of VKB and a grid with several k-points, from files.
TEST(FilteredPseudobandsOfFiles, EqualThoseOfAllStates) {
  QUASI_NEED_REFERENCE(std::string("gw/si2"));
  test::ReferenceCase files("si2");
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  const MeanFieldOptions source{.wfn = files.file("WFN"),
                                .wfnq = files.file("WFNq"),
                                .rho = files.file("RHO"),
                                .vsc = files.file("VSC"),
                                .vkb = files.file("VKB"),
                                .eigensolver = {.method = Eigensolver::kOperator}};
  const MeanField lowest = load_mean_field(source, {.hamiltonian = true}, *kernels, silent);
  MeanFieldOptions dense = source;
  dense.eigensolver.method = Eigensolver::kDense;
  std::size_t n = lowest.waves.waves[0].g.size();
  for (const KPointWaves& at : lowest.waves.waves) n = std::min(n, at.g.size());
  // States beyond the smallest sphere are missing at the other points, so that one is compared.
  const MeanField all = load_mean_field(dense, {.bands = static_cast<int>(n)}, *kernels, silent);
  const PseudobandPlan plan = plan_filtered_pseudobands(lowest, {.vectors = 2}, false);
  const Wavefunctions made =
      filtered_pseudobands(lowest, plan, PseudobandUse::kScreening, test::cpu_hamiltonians());
  int compared = 0;
  for (int ik = 0; ik < all.waves.n_k(); ++ik) {
    if (all.waves.waves[static_cast<std::size_t>(ik)].g.size() != n) continue;
    const std::vector<Cplx> expected = by_states(all.waves, plan, false, ik);
    const std::vector<Cplx>& found = made.waves[static_cast<std::size_t>(ik)].coefficients[0];
    double largest = 0.0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      largest =
          std::max(largest, std::abs(found[found.size() - expected.size() + i] - expected[i]));
    EXPECT_LT(largest, 1e-8) << ik;
    ++compared;
  }
  EXPECT_GE(compared, 1);
}

/// Returns Σ of the edges with the states that `field` has.
std::pair<double, double> edges_of(test::SmallSilicon& crystal, const MeanField& field,
                                   SigmaOptions options) {
  options.bands = field.waves.n_bands;
  return edges(field, crystal.sigma(field, crystal.epsilon, options), options);
}

// Without noise only the error of the windows is left: 2 meV at F = 0.2, a quarter of it at 0.1.
TEST(FilteredPseudobands, EveryPlaneWaveGivesTheSelfEnergyOfAllStates) {
  for (const char* name : {"silicon", "gaas"}) {
    const int n = plane_waves(name, 5.0);
    test::SmallSilicon crystal(eight_atoms(name, 5.0, n));
    SigmaOptions options = crystal.options(
        whole_band_counts(crystal.field.waves, crystal.field.n_occupied + 1, 40).front());
    options.band_min = 14;
    const auto exact = edges(crystal.field, crystal.sigma(options), options);
    const MeanField lowest = loaded(name, 5.0, 60, "operator");
    for (const double ratio : {0.2, 0.1}) {
      PseudobandPlan plan = plan_filtered_pseudobands(lowest, {.vectors = 1, .ratio = ratio}, true);
      MeanField field = lowest;
      field.waves = test::of_every_plane_wave(lowest, plan, PseudobandUse::kSelfEnergy);
      const auto found = edges_of(crystal, field, options);
      std::printf("%s F = %.1f: Sigma - exact %.2f and %.2f meV\n", name, ratio,
                  1e3 * (found.first - exact.first), 1e3 * (found.second - exact.second));
      EXPECT_NEAR(found.first, exact.first, 0.05 * ratio * ratio);
      EXPECT_NEAR(found.second, exact.second, 0.05 * ratio * ratio);
      if (ratio < 0.2) continue;
      // The correction of second order bounds what it leaves. That is the row window_width.
      plan.moved_nodes = false;
      field.waves.energy_ry.clear();
      field.waves.occupation.clear();
      set_energies(lowest.waves, plan, PseudobandUse::kSelfEnergy, field.waves);
      const auto unmoved = edges_of(crystal, field, options);
      std::printf("%s: correction %.2f and %.2f meV\n", name, 1e3 * (found.first - unmoved.first),
                  1e3 * (found.second - unmoved.second));
      EXPECT_LT(std::abs(found.first - exact.first), std::abs(found.first - unmoved.first));
      EXPECT_LT(std::abs(found.second - exact.second), std::abs(found.second - unmoved.second));
      EXPECT_GT(std::abs(unmoved.first - exact.first), 3.0 * std::abs(found.first - exact.first));
    }
  }
}

// Means over 120 seeds against the sums over all states of the matrix. Tolerances hold three
// standard errors, the error of the windows (2 meV at F = 0.2) and that of the identity, 1e-4 of
// 6 eV. χ is linear in the vectors, and so is Σ at fixed W.
void expect_unbiased(const std::string& name) {
  const int n = plane_waves(name, 8.0);
  test::SmallSilicon crystal(eight_atoms(name, 8.0, n));
  SigmaOptions options = crystal.options(
      whole_band_counts(crystal.field.waves, crystal.field.n_occupied + 1, 40).front());
  options.band_min = 14;
  const auto exact = edges(crystal.field, crystal.sigma(options), options);
  const MeanField lowest = loaded(name, 8.0, 70, "operator");
  std::vector<double> head, top, bottom;
  PseudobandPlan plan =
      plan_filtered_pseudobands(lowest, {.vectors = 1, .max_identity_error = 1e-4}, true);
  for (plan.seed = 0; plan.seed < 120; ++plan.seed) {
    MeanField field = lowest;
    field.waves =
        filtered_pseudobands(lowest, plan, PseudobandUse::kScreening, test::cpu_hamiltonians());
    head.push_back(crystal.screening(field)[0].epsilon_diagonal[1].real());
    field.waves =
        filtered_pseudobands(lowest, plan, PseudobandUse::kSelfEnergy, test::cpu_hamiltonians());
    field.complement = complement_vectors(lowest.waves, plan, 3.0);
    SigmaOptions of_vectors = options;
    of_vectors.bands = field.waves.n_bands;
    of_vectors.closed_sum_x_ry = kClosedSumX_ry;
    const auto found = edges(field, crystal.sigma(field, crystal.epsilon, of_vectors), of_vectors);
    top.push_back(found.first);
    bottom.push_back(found.second);
  }
  const auto expect = [&](const std::vector<double>& values, double exact_value, double systematic,
                          const char* what) {
    const Statistics found(values);
    std::printf("%s %s: %.6f, mean of seeds %.6f +- %.6f, spread %.6f\n", name.c_str(), what,
                exact_value, found.mean, found.error, found.error * std::sqrt(120.0));
    EXPECT_NEAR(found.mean, exact_value, 3.0 * found.error + systematic) << what;
    EXPECT_LT(found.error, 0.01 * std::abs(exact_value)) << what;
  };
  const double exact_head = crystal.epsilon[0].epsilon_diagonal[1].real();
  expect(head, exact_head, 1e-3 * exact_head, "ε of the shortest G");
  expect(top, exact.first, 2.6e-3, "Σ of the valence top, eV");
  expect(bottom, exact.second, 2.6e-3, "Σ of the conduction bottom, eV");
}
TEST(FilteredPseudobands, UnbiasedSilicon) { expect_unbiased("silicon"); }
TEST(FilteredPseudobands, UnbiasedGalliumArsenide) { expect_unbiased("gaas"); }

}  // namespace
}  // namespace quasi::gw
