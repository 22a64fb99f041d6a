// χ(0) without imaginary parts, which a device keeps as real numbers: its sums and its inversions.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tests/gw/kernels/random_problem.hpp"
#include "tests/support/every_device.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace {

using namespace quasi;
using gw::Cplx;

class RealChi : public test::OnEveryDevice {};
QUASI_ON_EVERY_DEVICE(RealChi);

constexpr std::int64_t kPlaneWaves = 37;

std::vector<Cplx> values_of(const gw::PartialChi& chi) {
  std::vector<Cplx> values(chi.shape().size());
  chi.read(values.data());
  return values;
}

/// A random real χ(0) that is negative definite, and an interaction.
struct RandomRealChi {
  std::int64_t n;
  std::vector<double> triangle, coulomb;  ///< G ≤ G', row by row; v(G)
  RandomRealChi(std::int64_t size, std::uint32_t seed) : n(size) {
    constexpr std::int64_t kVectors = 20;
    const auto random = test::random_complex(static_cast<std::size_t>(kVectors * n), seed);
    for (std::int64_t g = 0; g < n; ++g) {
      coulomb.push_back(0.2 + 0.1 * static_cast<double>(g % 7));
      for (std::int64_t h = g; h < n; ++h) {
        double sum = 0.0;
        for (std::int64_t p = 0; p < kVectors; ++p)
          sum -= 0.05 * random[p * n + g].real() * random[p * n + h].real();
        triangle.push_back(sum);
      }
    }
  }
  /// χ_GG' e^{i(θ_G − θ_G')}, where θ is `angle` times the number of G; [n][n]. The triangle
  /// G ≤ G' is filled.
  std::vector<Cplx> turned(double angle) const {
    std::vector<Cplx> values(n * n);
    std::size_t at = 0;
    for (std::int64_t g = 0; g < n; ++g)
      for (std::int64_t h = g; h < n; ++h)
        values[g * n + h] = std::polar(1.0, angle * static_cast<double>(g - h)) * triangle[at++];
    return values;
  }
  View<const double, 1> v() const { return {coulomb.data(), {n}}; }
};

// A real ε is inverted in real arithmetic. Phases of plane waves make the same matrix complex, and
// they multiply the elements of its inverse. 1e-12: the condition number is below 100. 4,500 plane
// waves take several blocks of a device; a CPU has no blocks.
TEST_P(RealChi, RealDielectricMatricesAreThoseOfComplexOnes) {
  constexpr double kAngle = 0.7;
  const auto kernels = gw::make_gw_kernels(GetParam());
  gw::PolarizabilityKernels& polarizability = kernels->polarizability();
  for (const std::int64_t n : {1, 97, GetParam().backend == Backend::kCpu ? 150 : 4500}) {
    const RandomRealChi chi(n, 61);
    const gw::ChiShape shape{.n_static = n};
    const auto inverse_of = [&](const gw::PartialChi& of) {
      std::vector<Cplx> inverse(static_cast<std::size_t>(n * n));
      polarizability.invert_dielectric(of, 0, {.coulomb = chi.v()}, {inverse.data(), {n, n}});
      return inverse;
    };
    const auto there = polarizability.load_triangle(n, chi.triangle.data());
    const std::vector<Cplx> real = inverse_of(*there), turned = chi.turned(kAngle),
                            complex = inverse_of(*polarizability.load(shape, turned.data()));
    double worst = 0.0, largest_imaginary = 0.0;
    for (std::int64_t g = 0; g < n; ++g)
      for (std::int64_t h = 0; h < n; ++h) {
        const Cplx back = std::polar(1.0, -kAngle * static_cast<double>(g - h));
        worst = std::max(worst, std::abs(back * complex[g * n + h] - real[g * n + h]));
        largest_imaginary = std::max(largest_imaginary, std::abs(real[g * n + h].imag()));
      }
    EXPECT_LT(worst, 1e-12) << n;
    EXPECT_EQ(largest_imaginary, 0.0);
    // ε⁻¹ = v^½ ε̃⁻¹ v^−½, and an inversion leaves χ as it is.
    EXPECT_EQ(inverse_of(*there), real);
    const auto rows =
        polarizability
            .invert_definite(polarizability.load_triangle(n, chi.triangle.data()), chi.v())
            ->rows(n);
    worst = 0.0;
    for (std::int64_t g = 0; g < n; ++g)
      for (std::int64_t h = 0; h < n; ++h)
        worst =
            std::max(worst, std::abs(std::sqrt(chi.coulomb[g] / chi.coulomb[h]) * rows[g * n + h] -
                                     real[g * n + h]));
    EXPECT_LT(worst, 1e-14) << n;
  }
}

// Where v is negative somewhere, ε itself is inverted by LU, which takes complex numbers.
TEST_P(RealChi, RealValuesAreInvertedWithANegativeInteraction) {
  const auto kernels = gw::make_gw_kernels(GetParam());
  gw::PolarizabilityKernels& polarizability = kernels->polarizability();
  RandomRealChi chi(kPlaneWaves, 62);
  chi.coulomb[5] = -0.1;
  std::vector<std::vector<Cplx>> inverses;
  for (const bool packed : {true, false}) {
    const auto there = packed
                           ? polarizability.load_triangle(kPlaneWaves, chi.triangle.data())
                           : polarizability.load({.n_static = kPlaneWaves}, chi.turned(0.0).data());
    auto& inverse = inverses.emplace_back(kPlaneWaves * kPlaneWaves);
    polarizability.invert_dielectric(*there, 0,
                                     {.coulomb = chi.v(), .positive = false, .definite = false},
                                     {inverse.data(), {kPlaneWaves, kPlaneWaves}});
  }
  EXPECT_EQ(inverses[0], inverses[1]);
  EXPECT_LT(std::abs(inverses[0][0] - 1.0), 1.0);
}

// Real and complex parts of χ add up element by element, on one device and on two.
TEST_P(RealChi, RealPartsAddUpWithComplexOnes) {
  const RandomRealChi one(kPlaneWaves, 63), other(kPlaneWaves, 64);
  const gw::ChiShape shape{.n_static = kPlaneWaves};
  const auto first = gw::make_gw_kernels(GetParam());
  const auto made = [&](gw::GwKernels& kernels, const RandomRealChi& chi, bool real) {
    return real ? kernels.polarizability().load_triangle(kPlaneWaves, chi.triangle.data())
                : kernels.polarizability().load(shape, chi.turned(0.7).data());
  };
  for (const Device& device : list_devices()) {
    if (device.backend != GetParam().backend) continue;
    SCOPED_TRACE(device.name());
    const auto second = gw::make_gw_kernels(device);
    for (const auto& [real, other_real] :
         {std::pair{true, true}, {true, false}, {false, true}, {false, false}}) {
      const auto sum = made(*first, one, real);
      sum->add(*made(*second, other, other_real));
      const auto a = one.turned(real ? 0.0 : 0.7), b = other.turned(other_real ? 0.0 : 0.7);
      const auto values = values_of(*sum), diagonal = sum->diagonal(), corner = sum->corner(3);
      for (std::int64_t g = 0; g < kPlaneWaves; ++g)
        for (std::int64_t h = g; h < kPlaneWaves; ++h) {
          const auto at = static_cast<std::size_t>(g * kPlaneWaves + h);
          ASSERT_EQ(values[at], a[at] + b[at]) << g << ' ' << h;
          if (g == h) {
            ASSERT_EQ(diagonal[static_cast<std::size_t>(g)], values[at]);
          }
          if (h < 3) {
            ASSERT_EQ(corner[static_cast<std::size_t>(3 * g + h)], values[at]);
          }
        }
      if (GetParam().backend == Backend::kCpu) continue;
      EXPECT_EQ(sum->packed_triangle().has_value(), real && other_real);
    }
  }
}

}  // namespace
