#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "workers/backend/stopwatch.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

/// Random data of the timed GW kernels, and their timing.
namespace quasi::gw {

/// Returns the wall seconds of one call.
double seconds_of(const auto& work) {
  const Stopwatch clock;
  work();
  return clock.seconds();
}

/// Returns the shorter time of two calls, after one call that loads the device's code.
double best_seconds_of(const auto& work) {
  work();
  return std::min(seconds_of(work), seconds_of(work));
}

/// Returns a random number in [0, 1) that depends on the counter alone.
inline double uniform(std::uint64_t counter) {
  std::uint64_t z = counter * 0x9e3779b97f4a7c15u + 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/// Returns random numbers with both parts in [-0.5, 0.5).
inline std::vector<Cplx> random_complex(std::int64_t count, std::uint64_t seed) {
  std::vector<Cplx> values(static_cast<std::size_t>(count));
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::uint64_t>(i) + (seed << 40);
    values[static_cast<std::size_t>(i)] = {uniform(2 * at) - 0.5, uniform(2 * at + 1) - 0.5};
  }
  return values;
}

enum class ModelSymmetry { kNone, kHermitian };

/// A plasmon-pole model with the range of silicon: poles from 0.46 to 93 Ry, uniform in the
/// logarithm, and one element in ten static.
struct RandomPoleModel {
  std::int64_t n_g;
  std::vector<Cplx> strength;
  std::vector<double> pole_ry;
  RandomPoleModel(std::int64_t n, ModelSymmetry symmetry)
      : n_g(n), strength(static_cast<std::size_t>(n * n)), pole_ry(strength.size()) {
#pragma omp parallel for schedule(static)
    for (std::int64_t g = 0; g < n; ++g)
      for (std::int64_t h = 0; h < n; ++h) {
        const bool swap = symmetry == ModelSymmetry::kHermitian && h < g;
        const auto at = static_cast<std::uint64_t>(swap ? h * n + g : g * n + h);
        const double pole =
            uniform(4 * at) < 0.1 ? kStaticPole_ry : 0.46 * std::pow(202.0, uniform(4 * at + 1));
        const Cplx b(uniform(4 * at + 2) - 0.5, symmetry == ModelSymmetry::kHermitian && g == h
                                                    ? 0.0
                                                    : uniform(4 * at + 3) - 0.5);
        pole_ry[static_cast<std::size_t>(g * n + h)] = pole;
        strength[static_cast<std::size_t>(g * n + h)] = pole * (swap ? std::conj(b) : b);
      }
  }
  PlasmonPoleView view() const {
    return {{strength.data(), {n_g, n_g}}, {pole_ry.data(), {n_g, n_g}}};
  }
};

/// Loads random pair products.
inline std::unique_ptr<PairBlock> loaded_block(GwKernels& kernels, std::int64_t n_left,
                                               std::int64_t n_right, std::int64_t n_g,
                                               std::uint64_t seed) {
  auto block = kernels.pair_products().make_block();
  const auto products = random_complex(n_left * n_right * n_g, seed);
  block->load({products.data(), {n_left, n_right, n_g}});
  return block;
}

/// Loads a random plasmon-pole model.
inline std::shared_ptr<const LoadedPoleModel> loaded_model(GwKernels& kernels, std::int64_t n_g,
                                                           ModelSymmetry symmetry) {
  const RandomPoleModel model(n_g, symmetry);
  return kernels.pole_sums().load(model.view(), {});
}

}  // namespace quasi::gw
