// The polarizability χ of the gw kernels, static and at frequencies. The truth is the naive sum
// over pairs (tests/oracle/gw), on every device.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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

/// Reads all of χ(0): the kernels keep one triangle, and χ(0) is Hermitian.
void read_static(const gw::PartialChi& sum, std::int64_t n_g, std::vector<Cplx>& chi) {
  sum.read(chi.data());
  for (std::int64_t g = 0; g < n_g; ++g)
    for (std::int64_t h = 0; h < g; ++h) chi[g * n_g + h] = std::conj(chi[h * n_g + g]);
}

// χ(0) from three blocks with weights of both signs equals the plain sum over pairs. One call adds
// weights of one sign only.
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

// `add_pairs` makes products and adds them to χ without storing them all. Its χ equals the plain
// sum over products that are made first. Real coefficients must take the real path and give the
// result of the complex path, in one block and in blocks of one left band. An odd number of right
// bands leaves one without a partner. The tolerance is 1e-13 of the largest element, for sums of 99
// terms.
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
          for (int read = 0; read < 2; ++read) {  // Reading changes nothing.
            read_static(*finished, n_g, chi);
            for (std::size_t i = 0; i < chi.size(); ++i)
              ASSERT_LE(std::abs(chi[i] - expected[i]), 1e-13 * largest) << i;
          }
        }
      }
}

// A sphere of more than 2048 plane waves makes a device compute the symmetric product by panels.
// With a dozen pairs, about a hundred rows of χ equal plain sums.
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

// One call of `add` takes weights of one sign; weights of both signs are a programming error.
TEST_P(GwKernelsOnDevice, WeightsOfOneSignAreDemanded) {
  const auto products = test::random_complex(2 * 3, 55);
  const std::vector<double> weight{1.0, -1.0};
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto sum = kernels->polarizability().start({.n_static = 3});
  const auto block = test::loaded_block(*kernels, {products.data(), {1, 2, 3}});
  EXPECT_THROW(sum->add(*block, {weight.data(), {1, 2}}), std::logic_error);
}

// χ(ω) with complex weights equals the plain sum at each frequency. The block is added twice, so
// that sums are seen to accumulate.
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

}  // namespace
