// Pair products M_ln(G) of the gw kernels and the forms made of them. The truth are plain
// convolutions and plain loops over the same numbers, on every device.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/kernels/gw_kernels_on_device.hpp"
#include "tests/gw/kernels/random_problem.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace {

using namespace quasi;
using gw::Cplx;
using test::box_indices;
using test::frequencies_within;
using test::GwKernelsOnDevice;

QUASI_ON_EVERY_DEVICE(GwKernelsOnDevice);

// The products made by FFT equal the plain convolution to rounding: 1e-12 for coefficients of order
// one. The boxes have every radix, odd sizes and one axis of a single point.
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

// The product of spinors is the sum of the convolutions of both components: 1e-12 for coefficients
// of order one. A small and a large sphere make the CPU take both of its ways. Real coefficients
// make a device put two products into one transform. The density is the sum of both components too.
TEST_P(GwKernelsOnDevice, ProductsOfSpinorsAddComponents) {
  struct Case {
    std::array<int, 3> box, psi, sphere;
    bool real;
  };
  for (const Case& c : {Case{{8, 9, 10}, {2, 2, 2}, {2, 3, 3}, false},
                        {{8, 9, 10}, {1, 1, 1}, {1, 0, 0}, false},
                        {{8, 9, 10}, {2, 2, 2}, {2, 3, 3}, true}}) {
    const auto psi = frequencies_within(c.psi), sphere = frequencies_within(c.sphere);
    const auto psi_index = box_indices(psi, c.box), sphere_index = box_indices(sphere, c.box);
    const auto n_pw = static_cast<std::int64_t>(psi_index.size()),
               n_g = static_cast<std::int64_t>(sphere_index.size());
    auto left = test::random_complex(3 * 2 * n_pw, 44), right = test::random_complex(8 * n_pw, 45);
    for (auto* list : {&left, &right})
      for (Cplx& value : *list) value = c.real ? value.real() : value;
    const auto kernels = gw::make_gw_kernels(GetParam());
    gw::PairProductKernels& pairs = kernels->pair_products();
    const View<const std::int32_t, 1> positions{psi_index.data(), {n_pw}};
    const auto left_bands = pairs.load_bands(c.box, {left.data(), {3, 2 * n_pw}}, positions);
    const auto right_bands = pairs.load_bands(c.box, {right.data(), {4, 2 * n_pw}}, positions);
    const auto loaded = pairs.load_sphere(c.box, {sphere_index.data(), {n_g}}, {});
    const auto block = pairs.make_block();
    pairs.fill({*left_bands, {1, 3}}, {*right_bands, {1, 4}}, *loaded, *block);
    std::vector<Cplx> products(2 * 3 * n_g), density(n_g), expected_density(n_g);
    block->read({products.data(), {2, 3, n_g}});
    pairs.add_density({*right_bands, {1, 3}}, *loaded, 0.5, {density.data(), {n_g}});
    const auto product = [&](const std::vector<Cplx>& a, std::int64_t l, const std::vector<Cplx>& b,
                             std::int64_t n) {
      std::vector<Cplx> sum(n_g);
      for (std::int64_t s = 0; s < 2; ++s) {
        const auto part = oracle::gw::pair_product(
            {a.begin() + (2 * l + s) * n_pw, a.begin() + (2 * l + s + 1) * n_pw},
            {b.begin() + (2 * n + s) * n_pw, b.begin() + (2 * n + s + 1) * n_pw}, psi, psi, sphere,
            c.box.data());
        for (std::int64_t g = 0; g < n_g; ++g) sum[g] += part[g];
      }
      return sum;
    };
    for (std::int64_t n = 1; n < 4; ++n) {
      for (std::int64_t l = 1; l < 3; ++l) {
        const auto expected = product(left, l, right, n);
        for (std::int64_t g = 0; g < n_g; ++g)
          ASSERT_LE(std::abs(products[((l - 1) * 3 + n - 1) * n_g + g] - expected[g]),
                    1e-12 * static_cast<double>(n_pw));
      }
      const auto own = product(right, n, right, n);
      for (std::int64_t g = 0; g < n_g && n < 3; ++g)
        expected_density[g] += 0.5 * std::conj(own[g]);
    }
    for (std::int64_t g = 0; g < n_g; ++g)
      EXPECT_LE(std::abs(density[g] - expected_density[g]), 1e-12 * static_cast<double>(n_pw));
  }
}

// `replace_plane_wave` changes the products of one plane wave and leaves all others as they are.
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

// Projection onto a basis is the product of the pair products with the basis matrix.
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

// The forms M W M† of single pairs, and their weighted sums over right bands for pairs of outer
// states, equal plain loops.
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

// The forms M D M† with diagonal D, summed over right bands, equal plain loops. One case has the
// sizes of real runs: more frequencies than outer states, and rows longer than a block.
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
          // The large case adds 3e4 terms of order one in another order: 1e-11.
          EXPECT_LE(std::abs(sum[(e * c.n_left + l) * c.n_left + m] - expected),
                    c.n_g > 100 ? 1e-11 : 1e-12);
        }
  }
}

}  // namespace
