// Tests the kernels of matrices between plane waves that are cut into slices (docs/theory/gw.md
// 4.3). They must agree with the naive sums of tests/oracle/gw and with plain loops, on every
// device.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "tests/gw/kernels/gw_kernels_on_device.hpp"
#include "tests/gw/kernels/sigma_problem.hpp"
#include "workers/gw/kernels/pole_sums/changes/closed_sums.hpp"

namespace {

using namespace quasi;
using gw::Cplx;
using gw::ElementRows;
using test::absolute_sum;
using test::Bands;
using test::box_indices;
using test::frequencies_within;
using test::RandomPoleModel;
using test::Symmetry;

class GwSlices : public test::OnEveryDevice {};
QUASI_ON_EVERY_DEVICE(GwSlices);

/// Expects that slices follow each other from 0 to n.
void expect_cover(const std::vector<ElementRows>& slices, std::int64_t n) {
  std::int64_t end = 0;
  for (const ElementRows& rows : slices) {
    EXPECT_EQ(rows.begin, end);
    EXPECT_GT(rows.end, rows.begin);
    end = rows.end;
  }
  EXPECT_EQ(end, n);
}

// Slices cover all rows once. A triangle of a large matrix is cut into equal numbers of elements,
// to 2 %. Ends at multiples of 32 rows move 16 rows of up to 5,000 elements at either end, a tenth.
TEST(ColumnSlices, CoverAllRowsInEqualShares) {
  for (const std::int64_t n : {1, 31, 33, 130, 5000})
    for (const std::int64_t count : {1, 2, 7, 64}) {
      expect_cover(gw::slices_of_upper_triangle(n, count), n);
      expect_cover(gw::slices_of_lower_triangle(n, count), n);
    }
  const double n = 5000.0, share = n * n / 2.0 / 8.0;
  for (const ElementRows& rows : gw::slices_of_upper_triangle(5000, 8))
    EXPECT_NEAR(
        static_cast<double>(rows.size()) * (n - 0.5 * static_cast<double>(rows.begin + rows.end)),
        share, 0.02 * share);
  for (const ElementRows& rows : gw::slices_of_lower_triangle(5000, 8)) {
    EXPECT_NEAR(static_cast<double>(rows.size()) * 0.5 * static_cast<double>(rows.begin + rows.end),
                share, 0.1 * share);
    EXPECT_TRUE(rows.begin % gw::kRowsOfRange == 0);
  }
}

/// Holds bands and a sphere of plane waves, whose products are the terms of χ.
struct PairProblem {
  std::array<int, 3> box{9, 8, 10};
  std::vector<std::int32_t> psi_index = box_indices(frequencies_within({1, 1, 2}), box),
                            sphere_index = box_indices(frequencies_within({2, 1, 2}), box);
  std::int64_t n_left = 3, n_right = 17;
  std::vector<Cplx> left, right, head;
  std::vector<double> weight;

  explicit PairProblem(bool real)
      : left(test::random_complex(static_cast<std::size_t>(n_left * n_pw()), 81)),
        right(test::random_complex(static_cast<std::size_t>(n_right * n_pw()), 82)),
        head(test::random_complex(static_cast<std::size_t>(3 * n_left * n_right), 83)) {
    if (real)
      for (auto* list : {&left, &right, &head})
        for (Cplx& c : *list) c = c.real();
    for (std::int64_t p = 0; p < n_left * n_right; ++p)
      weight.push_back(-static_cast<double>((5 * p) % 7));
  }
  std::int64_t n_pw() const { return static_cast<std::int64_t>(psi_index.size()); }
  std::int64_t n_g() const { return static_cast<std::int64_t>(sphere_index.size()); }
};

// The rows of all slices are those of the naive sum over pairs, in blocks of one left band and in
// one block. Half of the terms are real, the other half not, where the states are complex. The
// tolerance is 1e-13 of the largest element, for sums of 102 terms.
void check_chi(const Device& device, bool real, std::int64_t count) {
  SCOPED_TRACE(std::to_string(real) + " real, slices " + std::to_string(count));
  const PairProblem of(true), further(real);
  const auto kernels = gw::make_gw_kernels(device);
  gw::PairProductKernels& pairs = kernels->pair_products();
  const std::int64_t n_g = of.n_g();
  const auto slices = gw::slices_of_upper_triangle(n_g, count);
  const auto sum = kernels->polarizability().start_slices(n_g, slices);
  std::vector<Cplx> expected(static_cast<std::size_t>(n_g * n_g));
  const View<const std::int32_t, 1> positions{of.psi_index.data(), {of.n_pw()}};
  const auto sphere = pairs.load_sphere(of.box, {of.sphere_index.data(), {n_g}}, {});
  for (const PairProblem* one : {&of, &further}) {
    const auto left = pairs.load_bands(one->box, {one->left.data(), {one->n_left, one->n_pw()}},
                                       positions),
               right = pairs.load_bands(one->box, {one->right.data(), {one->n_right, one->n_pw()}},
                                        positions);
    const gw::BandSelection of_left{*left, {0, one->n_left}}, of_right{*right, {0, one->n_right}};
    const auto block = pairs.make_block();
    pairs.fill(of_left, of_right, *sphere, *block);
    std::vector<Cplx> products(one->weight.size() * static_cast<std::size_t>(n_g));
    block->read({products.data(), {one->n_left, one->n_right, n_g}});
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t p = 0; p < one->weight.size(); ++p)
        products[p * static_cast<std::size_t>(n_g) + i] = one->head[i * one->weight.size() + p];
    const auto terms = oracle::gw::polarizability(static_cast<int>(n_g), products,
                                                  {one->weight.begin(), one->weight.end()});
    for (std::size_t i = 0; i < terms.size(); ++i) expected[i] += terms[i];
    sum->add_pairs({of_left,
                    of_right,
                    *sphere,
                    {one->weight.data(), {one->n_left, one->n_right}},
                    {one->head.data(), {3, one->n_left, one->n_right}}},
                   {.block_bytes = one == &of ? 1 : 0});
  }
  double largest = 0.0;
  for (const Cplx& value : expected) largest = std::max(largest, std::abs(value));
  const std::vector<gw::ChiSlice> found = sum->finish();
  ASSERT_EQ(found.size(), slices.size());
  for (const gw::ChiSlice& slice : found) {
    EXPECT_EQ(slice.real, real);
    const double* at = slice.values.data();
    for (std::int64_t g = slice.rows.begin; g < slice.rows.end; ++g)
      for (std::int64_t h = g; h < n_g; ++h) {
        const double re = *at++, im = real ? 0.0 : *at++;
        ASSERT_LE(std::abs(Cplx(re, im) - expected[static_cast<std::size_t>(g * n_g + h)]),
                  1e-13 * largest)
            << g << ' ' << h;
      }
    EXPECT_EQ(at, slice.values.data() + slice.values.size());
  }
}

TEST_P(GwSlices, RowsOfChiAreThoseOfTheNaiveSum) {
  for (const bool real : {true, false})
    for (const std::int64_t count : {1, 3, 5}) check_chi(GetParam(), real, count);
}

// Products of parts of larger arrays equal plain loops, and the rest of C stays as it is. The
// tolerance is 1e-14 for each of 23 terms of the order 1.
template <typename T>
void check_product(const Device& device) {
  const std::int64_t rows = 19, columns = 31, depth = 23, stride = 40;
  const auto of = [&](std::uint32_t seed) {
    const auto values = test::random_complex(static_cast<std::size_t>(depth * stride), seed);
    std::vector<T> list;
    for (const Cplx& value : values) {
      if constexpr (std::is_same_v<T, double>)
        list.push_back(value.real());
      else
        list.push_back(value);
    }
    return list;
  };
  const std::vector<T> a = of(91), b = of(92), before = of(93);
  std::vector<T> c = before;
  const auto kernels = gw::make_gw_kernels(device);
  kernels->dense().add_adjoint_product(gw::AdjointProduct<T>{.rows = rows,
                                                             .columns = columns,
                                                             .depth = depth,
                                                             .alpha = -0.5,
                                                             .a = a.data() + 2,
                                                             .a_stride = stride,
                                                             .b = b.data() + 3,
                                                             .b_stride = stride,
                                                             .c = c.data() + 4,
                                                             .c_stride = stride});
  for (std::int64_t i = 0; i < depth; ++i)
    for (std::int64_t j = 0; j < stride; ++j) {
      T expected = before[static_cast<std::size_t>(i * stride + j)];
      const bool inside = i < rows && j >= 4 && j < 4 + columns;
      for (std::int64_t p = 0; p < depth && inside; ++p) {
        const Cplx left = std::conj(Cplx(a[static_cast<std::size_t>(p * stride + 2 + i)]));
        const Cplx term = -0.5 * left * Cplx(b[static_cast<std::size_t>(p * stride + 3 + j - 4)]);
        if constexpr (std::is_same_v<T, double>)
          expected += term.real();
        else
          expected += term;
      }
      ASSERT_LE(std::abs(c[static_cast<std::size_t>(i * stride + j)] - expected),
                inside ? 3e-13 : 0.0)
          << i << ' ' << j;
    }
}

TEST_P(GwSlices, ProductsOfPartsOfMatrices) {
  check_product<double>(GetParam());
  check_product<Cplx>(GetParam());
}

/// Expects that the sums over the rows of all slices add up to the naive sums.
void check_poles(const Device& device, Symmetry symmetry, std::int64_t count) {
  const int n_g = 130;
  const std::int64_t n_bands = 14, n_left = 2;
  const RandomPoleModel model(n_g, symmetry, 300);
  const Bands bands(n_bands, 307);
  const auto products = test::random_complex(static_cast<std::size_t>(n_left * n_bands * n_g), 309);
  std::vector<double> x;
  for (std::int64_t l = 0; l < n_left; ++l)
    for (const double energy : bands.energy_ry)
      x.push_back(0.4 + 0.9 * static_cast<double>(l) - energy);
  const auto kernels = gw::make_gw_kernels(device);
  const auto block = test::loaded_block(*kernels, {products.data(), {n_left, n_bands, n_g}});
  const gw::DiagonalTerms terms{
      {x.data(), {n_left, n_bands, 1}}, {bands.occupation.data(), {n_bands}}, 0.37};
  std::vector<Cplx> total(n_left), sx(n_left), of_slope(n_left), slope(n_left);
  const auto slices = gw::slices_of_lower_triangle(n_g, count);
  ASSERT_GE(slices.size(), 3u);
  for (const ElementRows& rows : slices) {
    const auto poles = kernels->pole_sums().load_rows(model.view(), {}, rows);
    EXPECT_FALSE(poles->is_whole());
    poles->add_diagonal(*block, terms, {{total.data(), {n_left, 1}}, {sx.data(), {n_left, 1}}});
    poles->add_diagonal_slope(*block, terms,
                              {{of_slope.data(), {n_left}}, {}, {slope.data(), {n_left}}});
    std::vector<Cplx> form(static_cast<std::size_t>(n_left * n_bands));
    EXPECT_THROW(poles->closed_forms(*block, -3.0, {form.data(), {n_left, n_bands}}),
                 std::logic_error);
  }
  const double tolerance = 1e-11 * absolute_sum(model) * static_cast<double>(n_bands);
  for (std::int64_t l = 0; l < n_left; ++l) {
    const auto at = static_cast<std::size_t>(l);
    const std::vector<double> x_of_l(x.begin() + l * n_bands, x.begin() + (l + 1) * n_bands);
    const std::vector<Cplx> m(products.begin() + l * n_bands * n_g,
                              products.begin() + (l + 1) * n_bands * n_g);
    const auto expected = oracle::gw::diagonal(model.oracle, {}, m, x_of_l, bands.occupation);
    const auto slopes = oracle::gw::diagonal_slope(model.oracle, {}, m, x_of_l, bands.occupation);
    EXPECT_LE(std::abs(total[at] - 0.37 * (expected.sx + expected.ch)), tolerance) << l;
    EXPECT_LE(std::abs(of_slope[at] - 0.37 * (expected.sx + expected.ch)), tolerance) << l;
    EXPECT_LE(std::abs(sx[at] - 0.37 * expected.sx), tolerance) << l;
    EXPECT_LE(std::abs(slope[at] - 0.37 * (slopes.sx + slopes.ch)),
              1e-11 * std::max(slopes.magnitude, absolute_sum(model) * n_bands))
        << l;
  }
}

TEST_P(GwSlices, RowsOfPolesAddUpToTheNaiveSums) {
  for (const Symmetry symmetry : {Symmetry::kNone, Symmetry::kHermitian})
    for (const std::int64_t count : {4, 13}) check_poles(GetParam(), symmetry, count);
}

// The sums by difference of all slices add up to plain sums of F v̄ over pairs of plane waves on a
// line, to 1e-12 of the largest. Static elements act as F v̄ = −B.
TEST_P(GwSlices, SumsByDifferenceAddUp) {
  const int n_g = 100;
  const double x_ry = -3.0;
  for (const Symmetry symmetry : {Symmetry::kNone, Symmetry::kHermitian}) {
    const RandomPoleModel model(n_g, symmetry, 310);
    std::vector<gw::IVec3> waves;
    for (int g = 0; g < n_g; ++g) waves.push_back({g, 0, 0});
    const gw::DifferenceBox box(waves);
    std::vector<Cplx> expected(static_cast<std::size_t>(box.size())), found = expected;
    for (int g = 0; g < n_g; ++g)
      for (int h = 0; h < n_g; ++h) {
        const auto at = static_cast<std::size_t>(g * n_g + h);
        expected[static_cast<std::size_t>(box.position({g - h, 0, 0}))] +=
            model.strength[at] / (x_ry - model.pole_ry[at]);
      }
    const auto kernels = gw::make_gw_kernels(GetParam());
    for (const ElementRows& rows : gw::slices_of_lower_triangle(n_g, 5)) {
      const auto sums =
          kernels->pole_sums().load_rows(model.view(), {}, rows)->sums_by_difference(x_ry, box);
      for (std::size_t d = 0; d < sums.size(); ++d) found[d] += sums[d];
    }
    double largest = 0.0;
    for (const Cplx& value : expected) largest = std::max(largest, std::abs(value));
    for (std::size_t d = 0; d < found.size(); ++d)
      ASSERT_LE(std::abs(found[d] - expected[d]), 1e-12 * largest) << d;
  }
}

}  // namespace
