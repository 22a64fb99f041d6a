#include "workers/gw/solver/mean_field/espresso/xc_functional.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "workers/gw/solver/mean_field/xc/libxc.hpp"

namespace quasi::gw {
namespace {

// Numbers of the functionals of libxc, from its documentation.
constexpr int kSlater = 1, kPz = 9, kPw = 12, kPwMoreDigits = 13;
constexpr int kPbeExchange = 101, kPbeCorrelation = 130;
constexpr int kPbesolExchange = 116, kPbesolCorrelation = 133;

constexpr double kLeastDensity = 1e-10, kLeastDensityOfGradient = 1e-6;
constexpr double kLeastSquaredGradient = 1e-10;
constexpr double kRydberg_per_hartree = 2.0;

std::array<int, 2> local_parts_of(XcFunctional functional) {
  switch (functional) {
    case XcFunctional::kPerdewZunger:
      return {kSlater, kPz};
    case XcFunctional::kPerdewWang:
      return {kSlater, kPw};
    default:
      return {kSlater, kPwMoreDigits};
  }
}

std::array<int, 2> gradient_parts_of(XcFunctional functional) {
  if (functional == XcFunctional::kPbe) return {kPbeExchange, kPbeCorrelation};
  return {kPbesolExchange, kPbesolCorrelation};
}

/// Returns the densities that libxc takes. For one spin they are |ρ|, for two the spin densities
/// of |ρ| and of a magnetisation that does not exceed it.
std::vector<double> positive_densities(const XcPoints& points) {
  std::vector<double> density(points.density.begin(), points.density.end());
  if (points.n_spins == 1) {
    for (double& value : density) value = std::abs(value);
    return density;
  }
  for (std::size_t i = 0; i < density.size(); i += 2) {
    const double sum = std::abs(density[i] + density[i + 1]);
    const double difference = std::clamp(density[i] - density[i + 1], -sum, sum);
    density[i] = 0.5 * (sum + difference);
    density[i + 1] = 0.5 * (sum - difference);
  }
  return density;
}

/// Replaces the local derivatives of the points `chosen` by those of the whole functional.
void add_gradient(XcFunctional functional, const std::vector<double>& density,
                  const std::vector<std::size_t>& chosen, const XcPoints& points) {
  const auto spins = static_cast<std::size_t>(points.n_spins), products = 2 * spins - 1;
  std::vector<double> rho, sigma;
  for (const std::size_t at : chosen) {
    for (std::size_t s = 0; s < spins; ++s) rho.push_back(density[at * spins + s]);
    for (std::size_t s = 0; s < products; ++s) sigma.push_back(points.gradient[at * products + s]);
  }
  std::vector<double> by_rho(rho.size()), by_sigma(sigma.size());
  for (const std::size_t at : chosen)
    for (std::size_t s = 0; s < spins; ++s) points.by_density[at * spins + s] = 0.0;
  for (const int part : gradient_parts_of(functional)) {
    LibxcFunctional f(part, points.n_spins);
    f.set_least_density(kLeastDensity);
    f.gradient(chosen.size(), rho.data(), sigma.data(), by_rho.data(), by_sigma.data());
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      for (std::size_t s = 0; s < spins; ++s)
        points.by_density[chosen[i] * spins + s] += kRydberg_per_hartree * by_rho[i * spins + s];
      for (std::size_t s = 0; s < products; ++s)
        points.by_gradient[chosen[i] * products + s] +=
            kRydberg_per_hartree * by_sigma[i * products + s];
    }
  }
}

}  // namespace

bool uses_gradient(XcFunctional functional) {
  return functional == XcFunctional::kPbe || functional == XcFunctional::kPbesol;
}

void evaluate_functional(XcFunctional functional, const XcPoints& points) {
  const auto spins = static_cast<std::size_t>(points.n_spins), products = 2 * spins - 1;
  const std::size_t n = points.density.size() / spins;
  const std::vector<double> density = positive_densities(points);
  std::fill(points.by_density.begin(), points.by_density.end(), 0.0);
  std::fill(points.by_gradient.begin(), points.by_gradient.end(), 0.0);
  std::vector<double> part(density.size());
  for (const int number : local_parts_of(functional)) {
    LibxcFunctional f(number, points.n_spins);
    f.set_least_density(kLeastDensity);
    f.local(n, density.data(), part.data());
    for (std::size_t i = 0; i < part.size(); ++i)
      points.by_density[i] += kRydberg_per_hartree * part[i];
  }
  if (!uses_gradient(functional)) return;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < n; ++i) {
    double total = 0.0, squared = 0.0;
    for (std::size_t s = 0; s < spins; ++s) total += density[i * spins + s];
    for (std::size_t s = 0; s < products; ++s)
      squared += (s == 1 ? 2.0 : 1.0) * points.gradient[i * products + s];
    if (total > kLeastDensityOfGradient && squared > kLeastSquaredGradient) chosen.push_back(i);
  }
  add_gradient(functional, density, chosen, points);
}

}  // namespace quasi::gw
