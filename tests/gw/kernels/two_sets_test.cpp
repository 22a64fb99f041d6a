// The full matrix between two sets of pair products, on every device. The truth are the naive sums
// (tests/oracle/gw); sigma_problem.hpp derives the tolerance.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/gw/kernels/sigma_problem.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace {

using namespace quasi;
using gw::Cplx;
using test::Bands;
using test::GwSigmaKernels;
using test::RandomPoleModel;
using test::Symmetry;

struct TwoSetsCase {
  int n_g;
  std::int64_t n_left, n_m, n_bands, n_energies;
};

/// Deviation of Σ_lm(E) from 0.7 times the naive sums, over its tolerance; of every `every`-th l
/// and m.
double deviation_over_tolerance(const Device& device, const TwoSetsCase& size, Symmetry symmetry,
                                const gw::OffDiagonalOptions& options, double tolerance) {
  const RandomPoleModel model(size.n_g, symmetry, 41);
  Bands bands(size.n_bands, 42);
  for (std::size_t n = 0; n < bands.occupation.size(); ++n)
    bands.occupation[n] = n == 0 ? 1.0 : 0.0;
  std::vector<double> energies;
  for (std::int64_t e = 0; e < size.n_energies; ++e)
    energies.push_back(0.3 + 0.17 * static_cast<double>(e));
  const std::int64_t row = size.n_bands * size.n_g;
  const auto bra = test::random_complex(static_cast<std::size_t>(size.n_left * row), 43),
             ket = test::random_complex(static_cast<std::size_t>(size.n_m * row), 44);
  const auto kernels = gw::make_gw_kernels(device);
  const auto bra_block =
      test::loaded_block(*kernels, {bra.data(), {size.n_left, size.n_bands, size.n_g}});
  const auto ket_block =
      test::loaded_block(*kernels, {ket.data(), {size.n_m, size.n_bands, size.n_g}});
  std::vector<Cplx> sigma(static_cast<std::size_t>(size.n_energies * size.n_left * size.n_m),
                          {1.0, 2.0});
  kernels->pole_sums()
      .load(model.view(), {})
      ->add_offdiagonal_between(*bra_block, *ket_block,
                                {{energies.data(), {size.n_energies}},
                                 {bands.energy_ry.data(), {size.n_bands}},
                                 {bands.occupation.data(), {size.n_bands}},
                                 0.7},
                                options, {sigma.data(), {size.n_energies, size.n_left, size.n_m}});
  const std::int64_t every = std::max<std::int64_t>(1, std::max(size.n_left, size.n_m) / 20);
  double largest = 0.0;
  for (std::int64_t e = 0; e < size.n_energies; ++e) {
    std::vector<double> x;
    for (const double band : bands.energy_ry) x.push_back(energies[e] - band);
    for (std::int64_t l = 0; l < size.n_left; l += every)
      for (std::int64_t m = 0; m < size.n_m; m += every) {
        const Cplx expected =
            oracle::gw::off_diagonal(model.oracle, {}, {&bra[l * row], &bra[l * row] + row},
                                     {&ket[m * row], &ket[m * row] + row}, x, bands.occupation);
        const Cplx got =
            sigma[static_cast<std::size_t>((e * size.n_left + l) * size.n_m + m)] - Cplx(1.0, 2.0);
        largest = std::max(largest, std::abs(got - 0.7 * expected));
      }
  }
  return largest / (tolerance * test::absolute_sum(model) * static_cast<double>(size.n_bands));
}

// Sets of equal and of different sizes. CUDA uses its fused kernel for 90 and more states of the
// bra. A Hermitian model has no short cut here: the matrix between two sets is not Hermitian.
TEST_P(GwSigmaKernels, TwoSetsOfProductsAgreeWithTheNaiveSums) {
  for (const TwoSetsCase& size : {TwoSetsCase{29, 4, 7, 9, 5},
                                  {1, 1, 1, 1, 1},
                                  {37, 128, 128, 2, 5},
                                  {35, 128, 20, 2, 6},
                                  {35, 3, 128, 2, 3}})
    for (const Symmetry symmetry : {Symmetry::kNone, Symmetry::kHermitian})
      EXPECT_LE(deviation_over_tolerance(GetParam(), size, symmetry, {}, 1e-11), 1.0)
          << size.n_g << ' ' << size.n_left << ' ' << size.n_m;
}

// Separable sums take the second set, too. Their error is at most the tolerance times the sum of
// absolute terms.
TEST_P(GwSigmaKernels, TwoSetsOfProductsMayUseSeparableSums) {
  gw::OffDiagonalOptions options;
  options.method = gw::OffDiagonalOptions::Method::kRationalSums;
  options.tolerance_relative = 1e-6;
  for (const TwoSetsCase& size : {TwoSetsCase{29, 4, 7, 9, 5}, {37, 128, 40, 3, 5}})
    EXPECT_LE(deviation_over_tolerance(GetParam(), size, Symmetry::kHermitian, options, 2e-6), 1.0)
        << size.n_left;
}

}  // namespace
