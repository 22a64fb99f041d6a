#pragma once

// The suite of the self-energy kernels that runs on every device, and the bands of its cases.
// Its tolerance is 1e-11 of the sum of absolute terms: up to 1e5 terms are rounded at 1e-16 each,
// and poles approached to γ = 0.037 Ry magnify the rounding of ω̃ by up to 1e3.

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/gw/kernels/random_problem.hpp"
#include "tests/support/every_device.hpp"

namespace quasi::test {

/// Suite of the kernels of the self-energy.
class GwSigmaKernels : public OnEveryDevice {};

/// Bands with energies E_n in ascending order: the lowest third is occupied, one band is half
/// filled, the others are empty. Energies of outer states lie among them, so that all branches of
/// the rules for poles occur.
struct Bands {
  std::vector<double> energy_ry, occupation;
  Bands(std::int64_t n, std::uint32_t seed) : energy_ry(n), occupation(n) {
    std::mt19937_64 generator(seed);
    std::uniform_real_distribution<double> uniform(-1.0, 6.0);
    for (double& e : energy_ry) e = uniform(generator);
    std::sort(energy_ry.begin(), energy_ry.end());
    for (std::int64_t i = 0; i < n; ++i) occupation[i] = i < n / 3 ? 1.0 : i == n / 3 ? 0.5 : 0.0;
  }
};

/// Σ|(1 − ε⁻¹)_GG'| of a model: the scale of the rounding of its sums.
inline double absolute_sum(const RandomPoleModel& model) {
  double sum = 0.0;
  for (const Cplx& value : model.oracle.i_minus_epsinv) sum += std::abs(value);
  return sum;
}

}  // namespace quasi::test
