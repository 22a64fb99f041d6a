// Changes of a plasmon-pole model from ε̃⁻¹ on every device (docs/theory/gw.md 6.2, 9.3). The
// truth is the rule of Hybertsen and Louie as it is written, ω̃² = λ/cos φ of Ω²/I = λ
// e^{iφ}, on an inverse by Gauss and Jordan.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tests/gw/kernels/sigma_problem.hpp"
#include "workers/gw/kernels/pole_sums/changes/closed_sums.hpp"
#include "workers/gw/kernels/pole_sums/changes/screened_elements.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace {

using namespace quasi;
using gw::Cplx;
using gw::IVec3;
using gw::operator-;
using test::GwSigmaKernels;
using test::RandomPoleModel;
using test::Symmetry;

/// Inverts a matrix [n][n] without pivots, which a positive definite matrix needs not.
std::vector<Cplx> inverse_of(std::vector<Cplx> a, std::size_t n) {
  std::vector<Cplx> b(n * n);
  for (std::size_t i = 0; i < n; ++i) b[i * n + i] = 1.0;
  for (std::size_t k = 0; k < n; ++k) {
    const Cplx pivot = a[k * n + k];
    for (std::size_t j = 0; j < n; ++j) {
      a[k * n + j] /= pivot;
      b[k * n + j] /= pivot;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const Cplx factor = a[i * n + k];
      if (i == k) continue;
      for (std::size_t j = 0; j < n; ++j) {
        a[i * n + j] -= factor * a[k * n + j];
        b[i * n + j] -= factor * b[k * n + j];
      }
    }
  }
  return b;
}

/// A random negative definite χ, and an interaction that makes ε of it.
struct RandomChi {
  std::size_t n;
  bool real;
  std::vector<Cplx> values;  ///< whole, [n][n]
  std::vector<double> coulomb;
  RandomChi(std::size_t size, bool without_imaginary_parts, std::uint32_t seed)
      : n(size), real(without_imaginary_parts), values(n * n), coulomb(n) {
    auto m = test::random_complex(3 * n * n, seed);
    if (real)
      for (Cplx& x : m) x = x.real();
    for (std::size_t p = 0; p < 3 * n; ++p)
      for (std::size_t g = 0; g < n; ++g)
        for (std::size_t h = 0; h < n; ++h)
          values[g * n + h] -= 0.05 * std::conj(m[p * n + g]) * m[p * n + h];
    for (std::size_t g = 0; g < n; ++g) coulomb[g] = 0.2 + 0.1 * static_cast<double>(g % 7);
  }
  std::vector<Cplx> inverse() const {
    std::vector<Cplx> epsilon(n * n);
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h)
        epsilon[g * n + h] =
            (g == h ? 1.0 : 0.0) - std::sqrt(coulomb[g] * coulomb[h]) * values[g * n + h];
    return inverse_of(epsilon, n);
  }
  /// Only the triangle G ≤ G' of χ is filled on a device.
  std::unique_ptr<const gw::DielectricInverse> inverted(gw::GwKernels& kernels) const {
    if (real) {
      std::vector<double> triangle;
      for (std::size_t g = 0; g < n; ++g)
        for (std::size_t h = g; h < n; ++h) triangle.push_back(values[g * n + h].real());
      const auto edge = static_cast<std::int64_t>(n);
      return kernels.polarizability().invert_definite(
          kernels.polarizability().load_triangle(edge, triangle.data()), {coulomb.data(), {edge}});
    }
    std::vector<Cplx> upper = values;
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < g; ++h) upper[g * n + h] = 1e30;
    gw::PolarizabilityKernels& chi = kernels.polarizability();
    const auto edge = static_cast<std::int64_t>(n);
    return chi.invert_definite(chi.load({.n_static = edge}, upper.data()),
                               {coulomb.data(), {edge}});
  }
};

/// Random waves on a line of G, with differences whose density is 0, positive or negative.
gw::ScreenedElements random_elements(int n, std::int64_t n_heads, std::uint32_t seed) {
  gw::ScreenedElements elements;
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  elements.extent = {2 * n, 0, 0};
  elements.n_heads = n_heads;
  elements.plasma2_ry2 = 1.4;
  elements.invalid_pole_ry = 2.0;
  elements.at_zero = elements.averages_directions = n_heads == 3;
  elements.head = 0.1;
  for (int g = 0; g < n; ++g) {
    gw::ScreenedWave wave;
    wave.root = uniform(generator);
    wave.ratio = uniform(generator);
    wave.g[0] = g % 2 == 0 ? g / 2 : -(g + 1) / 2;
    for (int i = 0; i < 3; ++i) {
      wave.wave[i] = uniform(generator);
      wave.dual[i] = uniform(generator);
      wave.left[i] = {0.1 * uniform(generator), 0.1 * uniform(generator)};
      wave.right[i] = {0.1 * uniform(generator), 0.1 * uniform(generator)};
    }
    elements.waves.push_back(wave);
  }
  elements.density = test::random_complex(static_cast<std::size_t>(4 * n + 1), seed + 1);
  for (std::size_t d = 0; d < elements.density.size(); d += 5) elements.density[d] = 0.0;
  return elements;
}

Cplx std_of(const Complex<double>& value) { return {value.re, value.im}; }

/// B and ω̃ (0: left out) of one element, written with λ and φ.
std::pair<Cplx, double> expected_terms(const gw::ScreenedElements& e, const Cplx& inverse, int g,
                                       int h) {
  const auto &a = e.waves[static_cast<std::size_t>(g)], &b = e.waves[static_cast<std::size_t>(h)];
  const double coulomb = a.root * b.root;
  Cplx screening = -inverse * a.ratio * b.ratio, square;
  if (e.at_zero && h == 0) {
    screening = g == 0 ? 1.0 - e.head : 0.0;
    square = g == 0 ? e.plasma2_ry2 : 0.0;
  } else {
    Cplx body = inverse;
    double product = 0.0;
    for (int i = 0; i < 3; ++i) {
      product += a.wave[i] * b.dual[i];
      if (!e.averages_directions) continue;
      body += 0.5 * std_of(a.left[i]) * std_of(b.right[i]);
      body += 0.5 * std::conj(std_of(b.left[i]) * std_of(a.right[i]));
    }
    screening = g == h ? Cplx(1.0 - body.real()) : -body * a.ratio * b.ratio;
    square = e.density[static_cast<std::size_t>(a.g[0] - b.g[0] + e.extent[0])] * product *
             coulomb / gw::kEightPi;
  }
  if (std::abs(screening) < 1e-6 || std::abs(square) < 1e-8) return {0.0, 0.0};
  const Cplx quotient = square / screening;
  const double pole2 = std::abs(quotient) / std::cos(std::arg(quotient));
  return {0.5 * screening * coulomb, pole2 < 0.0 ? e.invalid_pole_ry : std::sqrt(pole2)};
}

// Single precision rounds changes at 6e-8 of B and τ, which reach 10 and 100: 1e-6 of their size.
void check_changes(const Device& device, int n, std::int64_t n_heads, bool real,
                   std::uint32_t seed) {
  const RandomPoleModel own(n, Symmetry::kHermitian, seed);
  const RandomChi chi(static_cast<std::size_t>(n + n_heads - 1), real, seed + 1);
  const gw::ScreenedElements elements = random_elements(n, n_heads, seed + 2);
  const auto kernels = gw::make_gw_kernels(device);
  const auto model = kernels->pole_sums().load(own.view(), {});
  const auto inverse = chi.inverted(*kernels);
  const gw::PoleChange change = kernels->pole_sums().change_of_poles(*model, *inverse, elements);
  const std::vector<Cplx> expected = chi.inverse(), rows = inverse->rows(n_heads);
  const std::size_t edge = chi.n, skip = static_cast<std::size_t>(n_heads - 1);
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_LE(std::abs(rows[i] - expected[i]), 1e-12);
  int left_out = 0, invalid = 0;
  for (int g = 0; g < n; ++g)
    for (int h = 0; h <= g; ++h) {
      const auto [b, pole] = expected_terms(
          elements, expected[(static_cast<std::size_t>(g) + skip) * edge + h + skip], g, h);
      const auto at = static_cast<std::size_t>(g * (g + 1) / 2 + h),
                 of_own = static_cast<std::size_t>(g * n + h);
      const double own_pole = own.pole_ry[of_own],
                   own_tau = own_pole < gw::kStaticPole_ry ? 1.0 / own_pole : 0.0,
                   tau = pole > 0.0 ? 1.0 / pole : 0.0;
      const Cplx of_b = b - own.strength[of_own] / own_pole;
      const double of_tau = (tau - own_tau) * (1.0 + own_tau) / (1.0 + tau);
      ASSERT_LE(std::abs(Cplx(change.strength[at]) - of_b), 1e-6) << g << ' ' << h;
      ASSERT_LE(std::abs(change.tau_per_ry[at] - of_tau), 1e-6 * (1.0 + std::abs(of_tau)))
          << g << ' ' << h;
      left_out += pole == 0.0;
      invalid += pole == elements.invalid_pole_ry;
    }
  EXPECT_GT(left_out, n);
  EXPECT_GT(invalid, n);
}

TEST_P(GwSigmaKernels, ChangeOfPolesFromAComplexInverse) {
  check_changes(GetParam(), 33, 1, false, 610);
}
TEST_P(GwSigmaKernels, ChangeOfPolesFromARealInverse) {
  check_changes(GetParam(), 70, 1, true, 620);
}
TEST_P(GwSigmaKernels, ChangeOfPolesAtSmallQ) { check_changes(GetParam(), 41, 3, false, 630); }

/// Distinct plane waves in no order of a lattice with different edges.
std::vector<IVec3> waves_of(int n) {
  std::vector<IVec3> waves;
  for (int g = 0; g < n; ++g) waves.push_back({g % 3 - 1, g / 3 % 5 - 2, 3 - g / 15});
  return waves;
}

// Σ over G − G' = D of δ[B/(xτ − 1)] = δB f − (B + δB) x f² δτ with f = 1/(xτ −
// 1), against the loop over all pairs. 1e-12 of sums of up to 100 terms of order 1, which D = 0
// has.
void check_sums_by_difference(const Device& device, Symmetry symmetry, std::uint32_t seed) {
  constexpr int kWaves = 67;
  constexpr double kX_ry = -1.7;
  const RandomPoleModel model(kWaves, symmetry, seed);
  const bool folded = symmetry == Symmetry::kHermitian;
  gw::PoleChange change;
  const auto random = test::random_complex(kWaves * kWaves, seed + 1);
  for (int g = 0; g < kWaves; ++g)
    for (int h = 0; h < (folded ? g + 1 : kWaves); ++h) {
      const Cplx value = random[static_cast<std::size_t>(g * kWaves + h)];
      change.strength.emplace_back(folded && g == h ? Cplx(value.real()) : value);
      change.tau_per_ry.push_back(static_cast<float>(0.1 * value.imag()));
    }
  const auto kernels = gw::make_gw_kernels(device);
  const auto poles = kernels->pole_sums().load(model.view(), {});
  const auto loaded = kernels->pole_sums().load_changes(poles, {&change, &change});
  const gw::DifferenceBox box(waves_of(kWaves));
  const std::vector<Cplx> found = loaded->sums_by_difference(1, kX_ry, box);
  ASSERT_EQ(static_cast<std::int64_t>(found.size()), box.size());
  std::vector<Cplx> expected(found.size());
  for (int g = 0; g < kWaves; ++g)
    for (int h = 0; h < kWaves; ++h) {
      const bool mirrored = folded && h > g;
      const int row = mirrored ? h : g, column = mirrored ? g : h;
      const auto at = static_cast<std::size_t>(folded ? row * (row + 1) / 2 + column
                                                      : row * kWaves + column),
                 of_own = static_cast<std::size_t>(row * kWaves + column);
      const double pole = model.pole_ry[of_own], tau = pole < gw::kStaticPole_ry ? 1.0 / pole : 0.0,
                   f = 1.0 / (kX_ry * tau - 1.0);
      const Cplx of_b = change.strength[at], b = model.strength[of_own] / pole;
      const Cplx value =
          of_b * f - (b + of_b) * kX_ry * f * f * static_cast<double>(change.tau_per_ry[at]);
      const auto d = static_cast<std::size_t>(box.position(box.waves[static_cast<std::size_t>(g)] -
                                                           box.waves[static_cast<std::size_t>(h)]));
      expected[d] += mirrored ? std::conj(value) : value;
    }
  for (std::size_t d = 0; d < found.size(); ++d)
    ASSERT_LE(std::abs(found[d] - expected[d]), 1e-12) << d;
}

TEST_P(GwSigmaKernels, SumsOfChangesByDifference) {
  check_sums_by_difference(GetParam(), Symmetry::kNone, 640);
  check_sums_by_difference(GetParam(), Symmetry::kHermitian, 650);
}

/// W* = A/(x − ω̃) of an empty band.
std::vector<Cplx> empty_band(const RandomPoleModel& model, double x_ry) {
  std::vector<Cplx> matrix;
  for (std::size_t i = 0; i < model.strength.size(); ++i)
    matrix.push_back(model.strength[i] / (x_ry - model.pole_ry[i]));
  return matrix;
}

// M W* M† of every pair and Σ_{G−G'=D} W*, against loops over all G and G'. 1e-12 of the
// sum of absolute terms allows for 67² of them in any order.
void check_closed_sums(const Device& device, Symmetry symmetry, bool real, std::uint32_t seed) {
  constexpr std::int64_t kWaves = 67, kLeft = 2, kRight = 3;
  constexpr double kX_ry = -2.5;
  RandomPoleModel model(kWaves, symmetry, seed);
  auto products = test::random_complex(static_cast<std::size_t>(kLeft * kRight * kWaves), seed + 1);
  if (real) {
    for (Cplx& value : model.strength) value = value.real();
    for (Cplx& value : products) value = value.real();
  }
  const std::vector<Cplx> matrix = empty_band(model, kX_ry);
  const auto kernels = gw::make_gw_kernels(device);
  const auto block = test::loaded_block(*kernels, {products.data(), {kLeft, kRight, kWaves}});
  const auto poles = kernels->pole_sums().load(model.view(), {});
  std::vector<Cplx> forms(kLeft * kRight);
  poles->closed_forms(*block, kX_ry, {forms.data(), {kLeft, kRight}});
  const gw::DifferenceBox box(waves_of(kWaves));
  const std::vector<Cplx> found = poles->sums_by_difference(kX_ry, box);
  std::vector<Cplx> sums(found.size());
  std::vector<double> sizes(found.size());
  for (std::int64_t g = 0; g < kWaves; ++g)
    for (std::int64_t h = 0; h < kWaves; ++h) {
      const auto d = static_cast<std::size_t>(box.position(box.waves[static_cast<std::size_t>(g)] -
                                                           box.waves[static_cast<std::size_t>(h)]));
      const Cplx value = matrix[static_cast<std::size_t>(g * kWaves + h)];
      sums[d] += value;
      sizes[d] += std::abs(value);
    }
  ASSERT_EQ(static_cast<std::int64_t>(found.size()), box.size());
  for (std::size_t d = 0; d < found.size(); ++d)
    ASSERT_LE(std::abs(found[d] - sums[d]), 1e-12 * sizes[d]) << d;
  for (std::int64_t p = 0; p < kLeft * kRight; ++p) {
    const Cplx* m = products.data() + p * kWaves;
    Cplx form;
    double size = 0.0;
    for (std::int64_t g = 0; g < kWaves; ++g)
      for (std::int64_t h = 0; h < kWaves; ++h) {
        const Cplx term = m[g] * matrix[static_cast<std::size_t>(g * kWaves + h)] * std::conj(m[h]);
        form += term;
        size += std::abs(term);
      }
    EXPECT_LE(std::abs(forms[static_cast<std::size_t>(p)] - form), 1e-12 * size);
  }
}

TEST_P(GwSigmaKernels, ClosedSumsOfTheModel) {
  check_closed_sums(GetParam(), Symmetry::kNone, false, 660);
  check_closed_sums(GetParam(), Symmetry::kHermitian, false, 670);
  check_closed_sums(GetParam(), Symmetry::kHermitian, true, 680);
}

// A change that a device keeps has the bits of one that passes through the host.
TEST_P(GwSigmaKernels, KeptChangesHaveTheBitsOfThoseOfTheHost) {
  constexpr int kWaves = 41;
  const auto kernels = gw::make_gw_kernels(GetParam());
  gw::ScreenedElements elements = random_elements(kWaves, 1, 690);
  const RandomChi chi(kWaves, false, 691);
  const RandomPoleModel own(kWaves, Symmetry::kHermitian, 692);
  const auto model = kernels->pole_sums().load(own.view(), {});
  const auto inverse = chi.inverted(*kernels);
  const gw::DifferenceBox box(waves_of(kWaves));
  const auto sums = [&](bool kept) {
    elements.kept = kept;
    const gw::PoleChange change = kernels->pole_sums().change_of_poles(*model, *inverse, elements);
    return kernels->pole_sums().load_changes(model, {&change})->sums_by_difference(0, -2.5, box);
  };
  EXPECT_EQ(sums(true), sums(false));
}

/// Runs all sums of a loaded model and its changes. Two tests compare the results of two ways to
/// load a model.
std::vector<Cplx> all_sums(gw::GwKernels& kernels,
                           const std::shared_ptr<const gw::LoadedPoleModel>& model, int n) {
  constexpr std::int64_t kLeft = 2, kRight = 5;
  const gw::DifferenceBox box(waves_of(n));
  auto products = test::random_complex(static_cast<std::size_t>(kLeft * kRight * n), 694);
  for (Cplx& value : products) value = value.real();
  const auto block = test::loaded_block(kernels, {products.data(), {kLeft, kRight, n}});
  std::vector<Cplx> found(kLeft * kRight);
  model->closed_forms(*block, -2.5, {found.data(), {kLeft, kRight}});
  const auto take = [&](const auto& list) { found.insert(found.end(), list.begin(), list.end()); };
  take(model->sums_by_difference(-2.5, box));
  const RandomChi chi(static_cast<std::size_t>(n), true, 695);
  const auto inverse = chi.inverted(kernels);
  const gw::PoleChange change =
      kernels.pole_sums().change_of_poles(*model, *inverse, random_elements(n, 1, 696));
  take(change.strength);
  take(change.real_strength);
  take(change.tau_per_ry);
  const auto loaded = kernels.pole_sums().load_changes(model, {})->of_rows({&change}, {32, n});
  take(loaded->sums_by_difference(0, -2.5, box));
  const std::vector<double> x(kLeft * kRight, -1.3), empty(kRight, 0.0);
  std::vector<double> total(kLeft), slope(kLeft), own(gw::kOwnSums * kLeft);
  loaded->add_response(*block,
                       {.x_ry = {x.data(), {kLeft, kRight}},
                        .occupation = {empty.data(), {kRight}},
                        .closed_x_ry = -2.5},
                       {{total.data(), {1, kLeft}},
                        {slope.data(), {1, kLeft}},
                        {own.data(), {1, gw::kOwnSums, kLeft}}});
  for (const auto* list : {&total, &slope, &own}) take(*list);
  return found;
}

// A device keeps one triangle of a real Hermitian model that is loaded for changes. All sums have
// the bits of those of the whole model, also on a device that copies it from another one.
TEST_P(GwSigmaKernels, ModelsForChangesHaveTheBitsOfWholeOnes) {
  constexpr int kWaves = 67;
  RandomPoleModel own(kWaves, Symmetry::kHermitian, 693);
  for (Cplx& value : own.strength) value = value.real();
  gw::PlasmonPoleView view = own.view();
  view.hermitian = view.real = true;
  const auto kernels = gw::make_gw_kernels(GetParam());
  const std::vector<Cplx> expected =
      all_sums(*kernels, kernels->pole_sums().load(view, {}), kWaves);
  const auto packed = kernels->pole_sums().load_for_changes(view, {});
  EXPECT_EQ(all_sums(*kernels, packed, kWaves), expected);
  for (const Device& device : list_devices()) {
    if (device.backend != GetParam().backend) continue;
    const auto other = gw::make_gw_kernels(device);
    EXPECT_EQ(all_sums(*other, other->pole_sums().copy_of(packed), kWaves), expected);
  }
}

// The model of a complex crystal is loaded whole, whatever it is loaded for.
TEST_P(GwSigmaKernels, ComplexModelsForChangesAreWhole) {
  constexpr int kWaves = 40;
  const RandomPoleModel own(kWaves, Symmetry::kHermitian, 697);
  const auto kernels = gw::make_gw_kernels(GetParam());
  EXPECT_EQ(all_sums(*kernels, kernels->pole_sums().load_for_changes(own.view(), {}), kWaves),
            all_sums(*kernels, kernels->pole_sums().load(own.view(), {}), kWaves));
}

}  // namespace
