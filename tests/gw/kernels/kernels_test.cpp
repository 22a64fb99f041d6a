// Pair products, polarizability and dense algebra of the gw kernels, on every device.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/gw/kernels/random_problem.hpp"
#include "tests/support/every_device.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace {

using namespace quasi;
using gw::Cplx;

class GwKernelsOnDevice : public test::OnEveryDevice {};
QUASI_ON_EVERY_DEVICE(GwKernelsOnDevice);

std::int32_t fold(const int* frequency, const std::array<int, 3>& box) {
  std::int32_t index = 0;
  for (int d = 0; d < 3; ++d) index = index * box[d] + (frequency[d] % box[d] + box[d]) % box[d];
  return index;
}

/// All integer vectors with |v_d| ≤ limit_d.
std::vector<int> frequencies_within(std::array<int, 3> limit) {
  std::vector<int> list;
  for (int i = -limit[0]; i <= limit[0]; ++i)
    for (int j = -limit[1]; j <= limit[1]; ++j)
      for (int k = -limit[2]; k <= limit[2]; ++k) list.insert(list.end(), {i, j, k});
  return list;
}

std::vector<std::int32_t> box_indices(const std::vector<int>& frequencies,
                                      const std::array<int, 3>& box) {
  std::vector<std::int32_t> index;
  for (std::size_t g = 0; g < frequencies.size(); g += 3)
    index.push_back(fold(&frequencies[g], box));
  return index;
}

/// χ(0) as a whole, from the triangle that the kernels keep.
void read_static(const gw::PartialChi& sum, std::int64_t n_g, std::vector<Cplx>& chi) {
  sum.read(chi.data());
  for (std::int64_t g = 0; g < n_g; ++g)
    for (std::int64_t h = 0; h < g; ++h) chi[g * n_g + h] = std::conj(chi[h * n_g + g]);
}

// Boxes with every radix, one axis of a single point, and odd sizes: the FFT route equals the plain
// convolution to rounding, 1e-12 for coefficients of order one.
TEST_P(GwKernelsOnDevice, PairProductsAreConvolutions) {
  struct Case {
    std::array<int, 3> box, psi, sphere;
  };
  for (const Case& c : {Case{{8, 9, 10}, {2, 2, 2}, {2, 3, 3}},
                        {{5, 7, 1}, {1, 2, 0}, {1, 2, 0}},
                        {{12, 6, 15}, {1, 1, 2}, {3, 2, 4}}}) {
    SCOPED_TRACE(c.box[0]);
    const auto psi = frequencies_within(c.psi);
    const auto sphere = frequencies_within(c.sphere);
    const auto psi_index = box_indices(psi, c.box);
    const auto sphere_index = box_indices(sphere, c.box);
    const auto n_pw = static_cast<std::int64_t>(psi_index.size());
    const auto n_g = static_cast<std::int64_t>(sphere_index.size());
    const auto left = test::random_complex(3 * n_pw, 41),
               right = test::random_complex(4 * n_pw, 42);
    const auto phase = test::random_complex(n_g, 43);

    const auto kernels = gw::make_gw_kernels(GetParam());
    gw::PairProductKernels& pairs = kernels->pair_products();
    const View<const std::int32_t, 1> positions{psi_index.data(), {n_pw}};
    const auto left_bands = pairs.load_bands(c.box, {left.data(), {3, n_pw}}, positions);
    const auto right_bands = pairs.load_bands(c.box, {right.data(), {4, n_pw}}, positions);
    const auto block = pairs.make_block();
    for (const bool with_phase : {false, true}) {
      const auto loaded = pairs.load_sphere(
          c.box, {sphere_index.data(), {n_g}},
          with_phase ? View<const Cplx, 1>{phase.data(), {n_g}} : View<const Cplx, 1>{});
      pairs.fill({*left_bands, {1, 3}}, {*right_bands, {0, 4}}, *loaded, *block);
      std::vector<Cplx> products(2 * 4 * n_g);
      block->read({products.data(), {2, 4, n_g}});
      for (int l = 0; l < 2; ++l)
        for (int n = 0; n < 4; ++n) {
          const auto expected = oracle::gw::pair_product(
              {left.begin() + (l + 1) * n_pw, left.begin() + (l + 2) * n_pw},
              {right.begin() + n * n_pw, right.begin() + (n + 1) * n_pw}, psi, psi, sphere,
              c.box.data());
          for (std::int64_t g = 0; g < n_g; ++g)
            ASSERT_LE(std::abs(products[(l * 4 + n) * n_g + g] -
                               (with_phase ? phase[g] : 1.0) * expected[g]),
                      1e-12 * static_cast<double>(n_pw))
                << l << ' ' << n << ' ' << g;
        }
    }
  }
}

TEST_P(GwKernelsOnDevice, StaticPolarizabilityAgreesWithTheNaiveSum) {
  const std::int64_t n_left = 3, n_right = 11;
  for (const std::int64_t n_g : {1, 37, 130}) {
    const auto kernels = gw::make_gw_kernels(GetParam());
    std::vector<Cplx> expected(n_g * n_g);
    const auto sum = kernels->polarizability().start({.n_static = n_g});
    for (std::uint32_t call = 0; call < 3; ++call) {
      const auto products = test::random_complex(n_left * n_right * n_g, 51 + call);
      std::vector<double> weight(n_left * n_right);
      std::vector<Cplx> complex_weight(weight.size());
      for (std::size_t p = 0; p < weight.size(); ++p) {
        weight[p] = (call == 1 ? 1.0 : -1.0) * static_cast<double>((7 * p) % 5);
        complex_weight[p] = weight[p];
      }
      const auto block = test::loaded_block(*kernels, {products.data(), {n_left, n_right, n_g}});
      sum->add(*block, {weight.data(), {n_left, n_right}});
      const auto one = oracle::gw::polarizability(static_cast<int>(n_g), products, complex_weight);
      for (std::size_t i = 0; i < one.size(); ++i) expected[i] += one[i];
    }
    std::vector<Cplx> chi(n_g * n_g);
    read_static(*sum->finish(), n_g, chi);
    for (std::size_t i = 0; i < chi.size(); ++i)
      ASSERT_LE(std::abs(chi[i] - expected[i]), 1e-11) << i;
  }
}

// Pairs added on the way against products that are made first and summed plainly. Real coefficients
// must take the real way and give what the complex way gives; in one block and in blocks of one
// left band. An odd number of right bands leaves one without a partner. 1e-13 of the largest
// element: sums of 99 terms.
TEST_P(GwKernelsOnDevice, PairsAddedToChiOnTheWayAreThoseOfTheBlock) {
  const std::array<int, 3> box{9, 8, 10};
  const auto psi = frequencies_within({1, 1, 2}), sphere = frequencies_within({2, 1, 2});
  const auto psi_index = box_indices(psi, box), sphere_index = box_indices(sphere, box);
  const auto n_pw = static_cast<std::int64_t>(psi_index.size()),
             n_g = static_cast<std::int64_t>(sphere_index.size());
  const std::int64_t n_left = 4, n_right = 33, l_begin = 1, n_begin = 2;
  for (const bool real_waves : {false, true})
    for (const std::int64_t n_heads : {0, 1, 3})
      for (const bool use_real : {false, true}) {
        SCOPED_TRACE(100 * real_waves + 10 * n_heads + use_real);
        auto left = test::random_complex(n_left * n_pw, 61),
             right = test::random_complex((n_right + n_begin) * n_pw, 62);
        auto head = test::random_complex(3 * (n_left - l_begin) * n_right, 63);
        if (real_waves)
          for (auto* list : {&left, &right, &head})
            for (Cplx& c : *list) c = c.real();
        std::vector<double> weight(static_cast<std::size_t>((n_left - l_begin) * n_right));
        for (std::size_t p = 0; p < weight.size(); ++p)
          weight[p] = -static_cast<double>((5 * p) % 7);
        const View<const double, 2> weights{weight.data(), {n_left - l_begin, n_right}};
        const View<const Cplx, 3> heads =
            n_heads > 0 ? View<const Cplx, 3>{head.data(), {n_heads, n_left - l_begin, n_right}}
                        : View<const Cplx, 3>{};
        const auto kernels = gw::make_gw_kernels(GetParam());
        gw::PairProductKernels& pairs = kernels->pair_products();
        const View<const std::int32_t, 1> positions{psi_index.data(), {n_pw}};
        const auto left_bands = pairs.load_bands(box, {left.data(), {n_left, n_pw}}, positions);
        const auto right_bands =
            pairs.load_bands(box, {right.data(), {n_right + n_begin, n_pw}}, positions);
        const auto loaded = pairs.load_sphere(box, {sphere_index.data(), {n_g}}, {});
        const gw::BandSelection of_left{*left_bands, {l_begin, n_left}},
            of_right{*right_bands, {n_begin, n_begin + n_right}};
        const auto block = pairs.make_block();
        pairs.fill(of_left, of_right, *loaded, *block);
        std::vector<Cplx> products(weight.size() * static_cast<std::size_t>(n_g));
        block->read({products.data(), {n_left - l_begin, n_right, n_g}});
        for (std::size_t i = 0; i < static_cast<std::size_t>(n_heads); ++i)
          for (std::size_t p = 0; p < weight.size(); ++p)
            products[p * static_cast<std::size_t>(n_g) + i] = head[i * weight.size() + p];
        const auto expected = oracle::gw::polarizability(static_cast<int>(n_g), products,
                                                         {weight.begin(), weight.end()});
        double largest = 0.0;
        for (const Cplx& value : expected) largest = std::max(largest, std::abs(value));
        for (const auto& [overlapped, block_bytes] : {std::pair{true, 0}, {true, 1}, {false, 1}}) {
          const auto sum = kernels->polarizability().start({.n_static = n_g});
          const auto report = sum->add_pairs(
              {of_left, of_right, *loaded, weights, heads},
              {.use_real = use_real, .overlapped = overlapped, .block_bytes = block_bytes});
          EXPECT_EQ(report.real, real_waves && use_real);
          std::vector<Cplx> chi(static_cast<std::size_t>(n_g * n_g));
          const auto finished = sum->finish();
          for (int read = 0; read < 2; ++read) {  // reading changes nothing
            read_static(*finished, n_g, chi);
            for (std::size_t i = 0; i < chi.size(); ++i)
              ASSERT_LE(std::abs(chi[i] - expected[i]), 1e-13 * largest) << i;
          }
        }
      }
}

// A sphere of so many plane waves that the symmetric product goes by panels on a device; a dozen
// pairs, a hundred of its rows against plain sums.
TEST_P(GwKernelsOnDevice, LargeRealPolarizabilityAgreesWithTheNaiveSum) {
  const std::array<int, 3> box{15, 15, 15};
  const auto psi = frequencies_within({1, 1, 1}), sphere = frequencies_within({7, 6, 6});
  const auto psi_index = box_indices(psi, box), sphere_index = box_indices(sphere, box);
  const auto n_pw = static_cast<std::int64_t>(psi_index.size()),
             n_g = static_cast<std::int64_t>(sphere_index.size());
  ASSERT_GT(n_g, 2048);
  auto left = test::random_complex(3 * n_pw, 71), right = test::random_complex(4 * n_pw, 72);
  for (auto* list : {&left, &right})
    for (Cplx& c : *list) c = c.real();
  const std::vector<double> weight{-1.0, -0.5, 0.0,   -2.0, -1.5,   -0.25,
                                   -3.0, -1.0, -0.75, -2.5, -0.125, -1.0};
  const auto kernels = gw::make_gw_kernels(GetParam());
  gw::PairProductKernels& pairs = kernels->pair_products();
  const View<const std::int32_t, 1> positions{psi_index.data(), {n_pw}};
  const auto left_bands = pairs.load_bands(box, {left.data(), {3, n_pw}}, positions);
  const auto right_bands = pairs.load_bands(box, {right.data(), {4, n_pw}}, positions);
  const auto loaded = pairs.load_sphere(box, {sphere_index.data(), {n_g}}, {});
  const gw::BandSelection of_left{*left_bands, {0, 3}}, of_right{*right_bands, {0, 4}};
  const auto block = pairs.make_block();
  pairs.fill(of_left, of_right, *loaded, *block);
  std::vector<Cplx> products(static_cast<std::size_t>(12 * n_g)),
      chi(static_cast<std::size_t>(n_g * n_g));
  block->read({products.data(), {3, 4, n_g}});
  const auto sum = kernels->polarizability().start({.n_static = n_g});
  EXPECT_TRUE(sum->add_pairs({of_left, of_right, *loaded, {weight.data(), {3, 4}}, {}}, {}).real);
  read_static(*sum->finish(), n_g, chi);
  for (std::int64_t g = 0; g < n_g; g += n_g / 100)
    for (std::int64_t h = 0; h < n_g; ++h) {
      Cplx expected;
      for (std::int64_t p = 0; p < 12; ++p)
        expected += weight[static_cast<std::size_t>(p)] *
                    std::conj(products[static_cast<std::size_t>(p * n_g + g)]) *
                    products[static_cast<std::size_t>(p * n_g + h)];
      ASSERT_LE(std::abs(chi[static_cast<std::size_t>(g * n_g + h)] - expected), 1e-11)
          << g << ' ' << h;
    }
}

TEST_P(GwKernelsOnDevice, OnePlaneWaveIsReplaced) {
  const std::int64_t n_left = 3, n_right = 5, n_g = 7, g = 2;
  auto products = test::random_complex(n_left * n_right * n_g, 57);
  const auto values = test::random_complex(n_left * n_right, 58);
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto block = test::loaded_block(*kernels, {products.data(), {n_left, n_right, n_g}});
  block->replace_plane_wave(g, {values.data(), {n_left, n_right}});
  for (std::int64_t p = 0; p < n_left * n_right; ++p) products[p * n_g + g] = values[p];
  std::vector<Cplx> back(products.size());
  block->read({back.data(), {n_left, n_right, n_g}});
  EXPECT_EQ(back, products);
}

TEST_P(GwKernelsOnDevice, WeightsOfOneSignAreDemanded) {
  const auto products = test::random_complex(2 * 3, 55);
  const std::vector<double> weight{1.0, -1.0};
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto sum = kernels->polarizability().start({.n_static = 3});
  const auto block = test::loaded_block(*kernels, {products.data(), {1, 2, 3}});
  EXPECT_THROW(sum->add(*block, {weight.data(), {1, 2}}), std::logic_error);
}

TEST_P(GwKernelsOnDevice, PolarizabilityAtFrequenciesAgreesWithTheNaiveSum) {
  const std::int64_t n_left = 2, n_right = 9, n_g = 41, n_frequencies = 3;
  const auto products = test::random_complex(n_left * n_right * n_g, 61);
  const auto weight = test::random_complex(n_frequencies * n_left * n_right, 62);
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto sum = kernels->polarizability().start({.n_frequencies = n_frequencies, .n = n_g});
  const auto block = test::loaded_block(*kernels, {products.data(), {n_left, n_right, n_g}});
  for (int call = 0; call < 2; ++call)
    sum->add_at_frequencies(*block, {weight.data(), {n_frequencies, n_left, n_right}});
  std::vector<Cplx> chi(n_frequencies * n_g * n_g);
  sum->finish()->read(chi.data());
  for (std::int64_t i = 0; i < n_frequencies; ++i) {
    const auto expected = oracle::gw::polarizability(
        n_g, products,
        {weight.begin() + i * n_left * n_right, weight.begin() + (i + 1) * n_left * n_right});
    for (std::size_t k = 0; k < expected.size(); ++k)
      ASSERT_LE(std::abs(chi[i * n_g * n_g + k] - 2.0 * expected[k]), 1e-11) << i << ' ' << k;
  }
}

TEST_P(GwKernelsOnDevice, ProjectionIsAProduct) {
  const std::int64_t n_left = 2, n_right = 3, n_g = 23, n_basis = 5;
  const auto products = test::random_complex(n_left * n_right * n_g, 71);
  const auto basis = test::random_complex(n_g * n_basis, 72);
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto block = test::loaded_block(*kernels, {products.data(), {n_left, n_right, n_g}});
  block->project({basis.data(), {n_g, n_basis}});
  std::vector<Cplx> projected(n_left * n_right * n_basis);
  block->read({projected.data(), {n_left, n_right, n_basis}});
  for (std::int64_t p = 0; p < n_left * n_right; ++p)
    for (std::int64_t b = 0; b < n_basis; ++b) {
      Cplx sum;
      for (std::int64_t g = 0; g < n_g; ++g) sum += products[p * n_g + g] * basis[g * n_basis + b];
      EXPECT_LE(std::abs(projected[p * n_basis + b] - sum), 1e-12);
    }
}

TEST_P(GwKernelsOnDevice, QuadraticFormsAgreeWithPlainLoops) {
  const std::int64_t n_left = 3, n_right = 4, n_g = 19;
  const auto products = test::random_complex(n_left * n_right * n_g, 81);
  const auto matrix = test::random_complex(n_g * n_g, 82);
  const std::vector<double> weight{0.5, -1.0, 0.0, 2.0, -0.3, 0.0, 1.7, 0.9, 0.1, 0.2, 0.3, -0.4};
  const auto form_of = [&](std::int64_t a, std::int64_t b) {
    Cplx sum;
    for (std::int64_t g = 0; g < n_g; ++g)
      for (std::int64_t h = 0; h < n_g; ++h)
        sum += products[a * n_g + g] * matrix[g * n_g + h] * std::conj(products[b * n_g + h]);
    return sum;
  };
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto block = test::loaded_block(*kernels, {products.data(), {n_left, n_right, n_g}});
  std::vector<Cplx> form(n_left * n_right);
  block->quadratic_forms({matrix.data(), {n_g, n_g}}, {form.data(), {n_left, n_right}});
  for (std::int64_t l = 0; l < n_left; ++l)
    for (std::int64_t n = 0; n < n_right; ++n)
      EXPECT_LE(std::abs(form[l * n_right + n] - form_of(l * n_right + n, l * n_right + n)), 1e-12);
  for (const std::int64_t n_energies : {1, 3}) {
    std::vector<Cplx> sum(n_energies * n_left * n_left, {1.0, 1.0});
    block->quadratic_form_matrix({matrix.data(), {n_g, n_g}},
                                 {weight.data(), {n_energies, n_right}},
                                 {sum.data(), {n_energies, n_left, n_left}});
    for (std::int64_t e = 0; e < n_energies; ++e)
      for (std::int64_t l = 0; l < n_left; ++l)
        for (std::int64_t m = 0; m < n_left; ++m) {
          Cplx expected(1.0, 1.0);
          for (std::int64_t n = 0; n < n_right; ++n)
            expected += weight[e * n_right + n] * form_of(l * n_right + n, m * n_right + n);
          EXPECT_LE(std::abs(sum[(e * n_left + l) * n_left + m] - expected), 1e-12);
        }
  }
}

// Sizes of real runs too: more frequencies than outer states, rows longer than a block.
TEST_P(GwKernelsOnDevice, DiagonalFormsAgreeWithPlainLoops) {
  struct Case {
    std::int64_t n_left, n_right, n_g, n_frequencies, n_energies;
  };
  for (const Case& c : {Case{3, 4, 19, 2, 3}, {1, 2, 7, 1, 1}, {15, 3, 301, 36, 5}}) {
    SCOPED_TRACE(c.n_left);
    const auto products =
        test::random_complex(static_cast<std::size_t>(c.n_left * c.n_right * c.n_g), 91);
    const auto diagonal =
        test::random_complex(static_cast<std::size_t>(c.n_frequencies * c.n_g), 92);
    const auto numbers = test::random_complex(
        static_cast<std::size_t>(c.n_right * c.n_frequencies * c.n_energies), 93);
    std::vector<double> weight;
    for (const Cplx& number : numbers) weight.push_back(number.real());
    const auto kernels = gw::make_gw_kernels(GetParam());
    const auto block =
        test::loaded_block(*kernels, {products.data(), {c.n_left, c.n_right, c.n_g}});
    std::vector<Cplx> sum(static_cast<std::size_t>(c.n_energies * c.n_left * c.n_left),
                          {1.0, -2.0});
    block->diagonal_form_matrix({diagonal.data(), {c.n_frequencies, c.n_g}},
                                {weight.data(), {c.n_right, c.n_frequencies, c.n_energies}},
                                {sum.data(), {c.n_energies, c.n_left, c.n_left}});
    for (std::int64_t e = 0; e < c.n_energies; ++e)
      for (std::int64_t l = 0; l < c.n_left; ++l)
        for (std::int64_t m = 0; m < c.n_left; ++m) {
          Cplx expected(1.0, -2.0);
          for (std::int64_t n = 0; n < c.n_right; ++n)
            for (std::int64_t g = 0; g < c.n_g; ++g) {
              Cplx d;
              for (std::int64_t f = 0; f < c.n_frequencies; ++f)
                d += weight[(n * c.n_frequencies + f) * c.n_energies + e] * diagonal[f * c.n_g + g];
              expected += products[(l * c.n_right + n) * c.n_g + g] * d *
                          std::conj(products[(m * c.n_right + n) * c.n_g + g]);
            }
          // 1e-12 a term of order one: rounding of up to 3e4 of them, in another order.
          EXPECT_LE(std::abs(sum[(e * c.n_left + l) * c.n_left + m] - expected),
                    c.n_g > 100 ? 1e-11 : 1e-12);
        }
  }
}

std::vector<Cplx> random_hermitian(std::int64_t n, double shift, std::uint32_t seed) {
  auto matrix = test::random_complex(n * n, seed);
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = 0; h <= g; ++h)
      matrix[g * n + h] =
          g == h ? Cplx(matrix[g * n + h].real() + shift) : std::conj(matrix[h * n + g]);
  return matrix;
}

/// max |(A·B − 1)|
double distance_from_one(const std::vector<Cplx>& a, const std::vector<Cplx>& b, std::int64_t n) {
  double worst = 0.0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      Cplx sum = i == j ? -1.0 : 0.0;
      for (std::int64_t k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
      worst = std::max(worst, std::abs(sum));
    }
  return worst;
}

TEST_P(GwKernelsOnDevice, InvertsMatrices) {
  const std::int64_t n = 61;
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto definite = random_hermitian(n, 40.0, 91);
  auto inverse = definite;
  kernels->dense().invert_positive_definite({inverse.data(), {n, n}});
  EXPECT_LE(distance_from_one(definite, inverse, n), 1e-12);
  const auto general = test::random_complex(n * n, 92);
  inverse = general;
  kernels->dense().invert_general({inverse.data(), {n, n}});
  EXPECT_LE(distance_from_one(general, inverse, n), 1e-10);  // condition number of order 1e3
}

TEST_P(GwKernelsOnDevice, NamesTheMinorOfAMatrixThatIsNotPositiveDefinite) {
  auto matrix = random_hermitian(12, 20.0, 93);
  matrix[7 * 12 + 7] = -1.0;
  const auto kernels = gw::make_gw_kernels(GetParam());
  try {
    kernels->dense().invert_positive_definite({matrix.data(), {12, 12}});
    FAIL() << "not refused";
  } catch (const NotConverged& failure) {
    EXPECT_NE(std::string(failure.what()).find("8"), std::string::npos) << failure.what();
  }
}

TEST_P(GwKernelsOnDevice, EigenvectorsSolveTheirEquation) {
  const std::int64_t n = 57, n_lowest = 20;
  const auto matrix = random_hermitian(n, 0.0, 94);
  std::vector<double> values(n_lowest);
  std::vector<Cplx> vectors(n_lowest * n);
  const auto kernels = gw::make_gw_kernels(GetParam());
  kernels->dense().eigen_hermitian({matrix.data(), {n, n}}, {values.data(), {n_lowest}},
                                   {vectors.data(), {n_lowest, n}});
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  for (std::int64_t i = 0; i < n_lowest; ++i)
    for (std::int64_t g = 0; g < n; ++g) {
      Cplx residual = -values[i] * vectors[i * n + g];
      for (std::int64_t h = 0; h < n; ++h) residual += matrix[g * n + h] * vectors[i * n + h];
      EXPECT_LE(std::abs(residual), 1e-12 * static_cast<double>(n));
    }
}

}  // namespace
