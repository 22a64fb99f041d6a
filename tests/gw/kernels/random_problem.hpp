#pragma once

#include <complex>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "tests/oracle/gw/plasmon_pole_sums.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace quasi::test {

using gw::Cplx;

/// Numbers between −1 and 1 in both parts, from a printed-by-test seed.
inline std::vector<Cplx> random_complex(std::size_t count, std::uint32_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<Cplx> values(count);
  for (Cplx& value : values) {
    const double re = uniform(generator);
    value = {re, uniform(generator)};
  }
  return values;
}

/// A block of pair products with given values on the device of `kernels`.
inline std::unique_ptr<gw::PairBlock> loaded_block(gw::GwKernels& kernels,
                                                   View<const Cplx, 3> products) {
  auto block = kernels.pair_products().make_block();
  block->load(products);
  return block;
}

enum class Symmetry { kNone, kHermitian };

/// A plasmon-pole model as the equations have it and as the kernels want it: poles between 0.1 and
/// 30 Ry, one element in six static, one in nine skipped.
struct RandomPoleModel {
  oracle::gw::PoleModel oracle;
  std::vector<Cplx> strength;
  std::vector<double> pole_ry;

  RandomPoleModel(int n_g, Symmetry symmetry, std::uint32_t seed) {
    std::mt19937_64 generator(seed);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    const auto n = static_cast<std::size_t>(n_g);
    oracle.n_g = n_g;
    oracle.i_minus_epsinv = random_complex(n * n, seed + 1);
    oracle.pole_ry.resize(n * n);
    oracle.coulomb.resize(n);
    for (double& v : oracle.coulomb)
      v = symmetry == Symmetry::kNone ? 0.1 + uniform(generator) : 0.7;
    for (double& pole : oracle.pole_ry) {
      const double kind = uniform(generator);
      pole = 0.1 * std::pow(300.0, uniform(generator));
      if (kind < 1.0 / 6.0) pole = std::numeric_limits<double>::infinity();
      if (kind > 8.0 / 9.0) pole = 0.0;
    }
    if (symmetry == Symmetry::kHermitian)
      for (std::size_t g = 0; g < n; ++g)
        for (std::size_t h = 0; h <= g; ++h) {
          oracle.pole_ry[g * n + h] = oracle.pole_ry[h * n + g];
          oracle.i_minus_epsinv[g * n + h] = std::conj(oracle.i_minus_epsinv[h * n + g]);
          if (g == h) oracle.i_minus_epsinv[g * n + h] = oracle.i_minus_epsinv[g * n + h].real();
        }
    strength.resize(n * n);
    pole_ry.resize(n * n);
    for (std::size_t i = 0; i < n * n; ++i) {
      const bool finite = oracle.pole_ry[i] > 0.0 && oracle.pole_ry[i] < gw::kStaticPole_ry;
      pole_ry[i] = finite ? oracle.pole_ry[i] : gw::kStaticPole_ry;
      strength[i] = oracle.pole_ry[i] == 0.0
                        ? Cplx()
                        : 0.5 * oracle.i_minus_epsinv[i] * oracle.coulomb[i % n] * pole_ry[i];
    }
  }

  gw::PlasmonPoleView view() const {
    return {{strength.data(), {oracle.n_g, oracle.n_g}},
            {pole_ry.data(), {oracle.n_g, oracle.n_g}}};
  }
};

}  // namespace quasi::test
