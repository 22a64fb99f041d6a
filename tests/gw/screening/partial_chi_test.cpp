// Parts of χ: added on one device or between two, inverted where they lie; bare exchange sums.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/gw/kernels/random_problem.hpp"
#include "tests/support/every_device.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace {

using namespace quasi;
using gw::Cplx;

class PartialChi : public test::OnEveryDevice {};
QUASI_ON_EVERY_DEVICE(PartialChi);

constexpr std::int64_t kLeft = 3, kRight = 11, kPlaneWaves = 37, kFrequencies = 2;

std::vector<double> static_weight() {
  std::vector<double> weight(kLeft * kRight);
  for (std::size_t p = 0; p < weight.size(); ++p)
    weight[p] = -0.03 * static_cast<double>((7 * p) % 5);
  return weight;
}

std::vector<Cplx> further_weight() {
  auto weight = test::random_complex(kFrequencies * kLeft * kRight, 32);
  for (Cplx& w : weight) w *= 0.05;
  return weight;
}

std::unique_ptr<gw::PartialChi> part(gw::GwKernels& kernels, std::uint32_t seed) {
  const auto products = test::random_complex(kLeft * kRight * kPlaneWaves, seed),
             further = further_weight();
  const auto weight = static_weight();
  const auto sum = kernels.polarizability().start(
      {.n_static = kPlaneWaves, .n_frequencies = kFrequencies, .n = kPlaneWaves});
  const auto block = test::loaded_block(kernels, {products.data(), {kLeft, kRight, kPlaneWaves}});
  sum->add(*block, {weight.data(), {kLeft, kRight}});
  sum->add_at_frequencies(*block, {further.data(), {kFrequencies, kLeft, kRight}});
  return sum->finish();
}

std::vector<Cplx> values_of(const gw::PartialChi& chi) {
  std::vector<Cplx> values(chi.shape().size());
  chi.read(values.data());
  return values;
}

/// χ of the parts of several seeds by plain sums, one matrix a frequency.
std::vector<std::vector<Cplx>> naive(std::initializer_list<std::uint32_t> seeds) {
  const auto weight = static_weight();
  const auto further = further_weight();
  std::vector<std::vector<Cplx>> sum(1 + kFrequencies,
                                     std::vector<Cplx>(kPlaneWaves * kPlaneWaves));
  for (const std::uint32_t seed : seeds) {
    const auto products = test::random_complex(kLeft * kRight * kPlaneWaves, seed);
    for (std::int64_t f = 0; f <= kFrequencies; ++f) {
      std::vector<Cplx> w(weight.begin(), weight.end());
      if (f > 0)
        w.assign(further.begin() + (f - 1) * kLeft * kRight, further.begin() + f * kLeft * kRight);
      const auto one = oracle::gw::polarizability(kPlaneWaves, products, w);
      for (std::size_t i = 0; i < one.size(); ++i) sum[f][i] += one[i];
    }
  }
  return sum;
}

// Of one device, and of two wherever there are two: element by element, so to the last bit the
// same.
TEST_P(PartialChi, PartsOfAnyDevicesAddUp) {
  const auto first = gw::make_gw_kernels(GetParam());
  const auto expected = naive({11, 12});
  std::vector<Cplx> on_one;
  for (const Device& other : list_devices()) {
    if (other.backend != GetParam().backend) continue;
    SCOPED_TRACE(other.name());
    const auto second = gw::make_gw_kernels(other);
    const auto sum = part(*first, 11), more = part(*second, 12);
    sum->add(*more);
    const auto values = values_of(*sum);
    for (std::int64_t f = 0; f <= kFrequencies; ++f)
      for (std::int64_t g = 0; g < kPlaneWaves; ++g)
        for (std::int64_t h = f == 0 ? g : 0; h < kPlaneWaves; ++h)
          ASSERT_LE(std::abs(values[(f * kPlaneWaves + g) * kPlaneWaves + h] -
                             expected[f][g * kPlaneWaves + h]),
                    1e-12)
              << f << ' ' << g << ' ' << h;
    const auto diagonal = sum->diagonal();
    for (std::int64_t g = 0; g < kPlaneWaves; ++g)
      EXPECT_EQ(diagonal[g], values[g * (kPlaneWaves + 1)]);
    if (on_one.empty()) on_one = values;
    EXPECT_EQ(values, on_one);
  }
}

TEST_P(PartialChi, WhatWasReadComesBack) {
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto chi = part(*kernels, 13);
  const auto values = values_of(*chi);
  const auto back = kernels->polarizability().load(chi->shape(), values.data());
  EXPECT_EQ(back->shape(), chi->shape());
  EXPECT_EQ(values_of(*back), values);
  back->add(*chi);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values_of(*back)[i], 2.0 * values[i]);
}

// ε ε⁻¹ = 1 with ε = 1 − v χ, by Cholesky and by LU, for positive v and where v changes its sign;
// 1e-11: the condition number is below 1e3.
TEST_P(PartialChi, DielectricMatricesAreInverted) {
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto chi = part(*kernels, 14);
  const auto expected = naive({14});
  for (const bool positive : {true, false}) {
    std::vector<double> v(kPlaneWaves);
    for (std::int64_t g = 0; g < kPlaneWaves; ++g)
      v[g] = (0.2 + 1.0 / static_cast<double>(1 + g)) * (positive || g % 3 > 0 ? 1.0 : -0.01);
    for (std::int64_t f = 0; f <= kFrequencies; ++f) {
      SCOPED_TRACE(testing::Message() << positive << f);
      std::vector<Cplx> inverse(kPlaneWaves * kPlaneWaves);
      kernels->polarizability().invert_dielectric(*chi, f,
                                                  {.coulomb = {v.data(), {kPlaneWaves}},
                                                   .positive = positive,
                                                   .definite = positive && f == 0},
                                                  {inverse.data(), {kPlaneWaves, kPlaneWaves}});
      for (std::int64_t g = 0; g < kPlaneWaves; ++g)
        for (std::int64_t h = 0; h < kPlaneWaves; ++h) {
          Cplx one = inverse[g * kPlaneWaves + h];
          for (std::int64_t k = 0; k < kPlaneWaves; ++k)
            one -= v[g] * expected[f][g * kPlaneWaves + k] * inverse[k * kPlaneWaves + h];
          ASSERT_LE(std::abs(one - (g == h ? 1.0 : 0.0)), 1e-11) << g << ' ' << h;
        }
    }
  }
}

// What was run before leaves nothing behind: the same bits as on kernels that are new.
TEST_P(PartialChi, WarmingUpChangesNothing) {
  const auto cold = gw::make_gw_kernels(GetParam()), warm = gw::make_gw_kernels(GetParam());
  gw::warm_up(*warm);
  EXPECT_EQ(values_of(*part(*warm, 16)), values_of(*part(*cold, 16)));
}

// c = a bᵀ, and no imaginary parts where there were none.
TEST_P(PartialChi, TransposedProducts) {
  const std::int64_t m = 5, n = 7, inner = 23;
  auto a = test::random_complex(m * inner, 21), b = test::random_complex(n * inner, 22);
  const auto kernels = gw::make_gw_kernels(GetParam());
  std::vector<Cplx> product(m * n);
  for (const bool real : {false, true}) {
    if (real)
      for (auto* list : {&a, &b})
        for (Cplx& value : *list) value = value.real();
    kernels->dense().multiply_transposed({a.data(), {m, inner}}, {b.data(), {n, inner}},
                                         {product.data(), {m, n}});
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        Cplx expected;
        for (std::int64_t k = 0; k < inner; ++k) expected += a[i * inner + k] * b[j * inner + k];
        EXPECT_LE(std::abs(product[i * n + j] - expected), 1e-13);
        if (real) {
          EXPECT_EQ(product[i * n + j].imag(), 0.0);
        }
      }
  }
}

TEST_P(PartialChi, WeightedNormsArePlainSums) {
  const auto products = test::random_complex(kLeft * kRight * kPlaneWaves, 15);
  std::vector<double> v(kPlaneWaves), sum(kLeft * kRight);
  for (std::int64_t g = 0; g < kPlaneWaves; ++g) v[g] = 1.0 / static_cast<double>(2 + g);
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto block = test::loaded_block(*kernels, {products.data(), {kLeft, kRight, kPlaneWaves}});
  block->weighted_norms({v.data(), {kPlaneWaves}}, {sum.data(), {kLeft, kRight}});
  for (std::int64_t p = 0; p < kLeft * kRight; ++p) {
    double expected = 0.0;
    for (std::int64_t g = 0; g < kPlaneWaves; ++g)
      expected += v[g] * std::norm(products[p * kPlaneWaves + g]);
    EXPECT_NEAR(sum[p], expected, 1e-13 * expected);
  }
}

// A pole model taken from another device: the same bits as if it had come from the host, and still
// there when the other has gone on.
TEST_P(PartialChi, PoleModelsGoFromDeviceToDevice) {
  for (const auto symmetry : {test::Symmetry::kNone, test::Symmetry::kHermitian}) {
    const test::RandomPoleModel model(kPlaneWaves, symmetry, 41), next(kPlaneWaves, symmetry, 42);
    const auto products = test::random_complex(kLeft * kRight * kPlaneWaves, 43);
    const std::vector<double> x(kLeft * kRight, -2.0), occupation(kRight, 0.0);
    const auto sums = [&](gw::GwKernels& kernels, const gw::LoadedPoleModel& poles) {
      const auto block =
          test::loaded_block(kernels, {products.data(), {kLeft, kRight, kPlaneWaves}});
      std::vector<Cplx> total(kLeft), sx(kLeft), slope(kLeft);
      poles.add_diagonal_slope(
          *block, {{x.data(), {kLeft, kRight, 1}}, {occupation.data(), {kRight}}, 1.0},
          {{total.data(), {kLeft}}, {sx.data(), {kLeft}}, {slope.data(), {kLeft}}});
      total.insert(total.end(), slope.begin(), slope.end());
      return total;
    };
    const auto first = gw::make_gw_kernels(GetParam());
    for (const Device& other : list_devices()) {
      if (other.backend != GetParam().backend) continue;
      SCOPED_TRACE(other.name());
      const auto second = gw::make_gw_kernels(other);
      auto on_first = first->pole_sums().load(model.view(), {});
      const auto expected = sums(*first, *on_first);
      const auto on_second = second->pole_sums().copy_of(on_first);
      on_first = first->pole_sums().load(next.view(), {});
      EXPECT_EQ(sums(*second, *on_second), expected);
      EXPECT_NE(sums(*first, *on_first), expected);
    }
  }
}

// Matrices without imaginary parts take a way of their own on some devices: their inverse times
// themselves is 1, and one that is not positive definite is named.
TEST_P(PartialChi, RealMatricesAreInverted) {
  const auto kernels = gw::make_gw_kernels(GetParam());
  const auto n = static_cast<std::size_t>(kPlaneWaves);
  const auto random = test::random_complex(n * n, 51);
  std::vector<Cplx> matrix(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t k = 0; k < n; ++k)
        matrix[i * n + j] +=
            random[i * n + k].real() * random[j * n + k].real() + (i == j && i == k ? 1.0 : 0.0);
  auto inverse = matrix;
  kernels->dense().invert_positive_definite({inverse.data(), {kPlaneWaves, kPlaneWaves}});
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      Cplx product;
      for (std::size_t k = 0; k < n; ++k) product += matrix[i * n + k] * inverse[k * n + j];
      EXPECT_LT(std::abs(product - (i == j ? 1.0 : 0.0)), 1e-11) << i << ' ' << j;
    }
  matrix[5 * n + 5] = -1.0;
  try {
    kernels->dense().invert_positive_definite({matrix.data(), {kPlaneWaves, kPlaneWaves}});
    FAIL() << "no error";
  } catch (const NotConverged& error) {
    EXPECT_NE(std::string(error.what()).find("leading minor 6"), std::string::npos) << error.what();
  }
}

// A real χ(0) passes as the triangle G ≤ G' to a device and back without a changed bit. 2,900
// plane waves take more than one piece of the device's buffer.
TEST_P(PartialChi, TrianglesKeepTheirBits) {
  const auto kernels = gw::make_gw_kernels(GetParam());
  gw::PolarizabilityKernels& chi = kernels->polarizability();
  for (const std::int64_t n : {1, 37, 2900}) {
    std::vector<double> triangle(static_cast<std::size_t>(gw::triangle_size(n)));
    for (std::size_t i = 0; i < triangle.size(); ++i)
      triangle[i] = std::sin(static_cast<double>(i));
    const auto there = chi.load_triangle(n, triangle.data());
    ASSERT_EQ(there->shape(), gw::ChiShape{.n_static = n});
    const std::vector<Cplx> values = values_of(*there);
    std::size_t at = 0, wrong = 0;
    for (std::int64_t g = 0; g < n; ++g)
      for (std::int64_t h = 0; h < n; ++h)
        wrong += values[static_cast<std::size_t>(g * n + h)] != (h < g ? Cplx() : triangle[at++]);
    EXPECT_EQ(wrong, 0u);
    const auto packed = there->packed_triangle();
    EXPECT_EQ(packed.has_value(), GetParam().backend != Backend::kCpu);
    if (!packed) continue;
    ASSERT_EQ(packed->size(), 1 + triangle.size());
    EXPECT_EQ((*packed)[0], 1.0);
    EXPECT_TRUE(std::equal(triangle.begin(), triangle.end(), packed->begin() + 1));
  }
}

TEST_P(PartialChi, ComplexValuesAndFrequenciesAreNotPackedByADevice) {
  const auto kernels = gw::make_gw_kernels(GetParam());
  EXPECT_FALSE(part(*kernels, 21)->packed_triangle());
  const std::vector<Cplx> complex{1.0, {0.5, 0.25}, 0.0, 2.0};
  EXPECT_FALSE(kernels->polarizability().load({.n_static = 2}, complex.data())->packed_triangle());
}

}  // namespace
