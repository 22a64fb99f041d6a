#include "workers/gw/solver/mean_field/espresso/xc_functional.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "workers/gw/solver/mean_field/xc/libxc.hpp"

namespace quasi::gw {
namespace {

// These are the numbers by which libxc calls its functionals (xc_funcs.h of libxc).
constexpr int kSlater = 1, kPz = 9, kPw = 12, kPwMoreDigits = 13;
constexpr int kPbeExchange = 101, kPbeCorrelation = 130;
constexpr int kPbesolExchange = 116, kPbesolCorrelation = 133;

constexpr double kRydberg_per_hartree = 2.0;

// pw.x leaves out terms where a density (Bohr⁻³) or a squared gradient (Bohr⁻⁸) is small.
// These are its limits: the first for all terms, the second two for gradient terms, and the last
// two for the gradient terms of exchange with two spins.
constexpr double kLeastDensity = 1e-10;
constexpr double kLeastDensityOfGradient = 1e-6, kLeastSquaredGradient = 1e-10;
constexpr double kLeastDensityOfSpin = 1e-10, kLeastSquaredGradientOfSpin = 1e-20;
/// Density limit that libxc is given, Bohr⁻³. libxc raises smaller spin densities to its limit,
/// and V_x grows with the cube root of the density, so that the limit must be small.
constexpr double kLimitOfLibxc = 1e-24;
/// Largest polarisation |ρ↑ − ρ↓|/(ρ↑ + ρ↓) in the gradient terms of correlation, as
/// in pw.x.
constexpr double kLargestPolarisation = 1.0 - 1e-6;

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

/// Returns densities without negative values, as pw.x makes them for libxc. One spin has |ρ|. Two
/// spins have the total density |ρ↑ + ρ↓|, and their difference is at most `polarisation`
/// times it.
std::vector<double> positive_densities(const XcPoints& points, double polarisation) {
  std::vector<double> density(points.density.begin(), points.density.end());
  if (points.n_spins == 1) {
    for (double& value : density) value = std::abs(value);
    return density;
  }
  for (std::size_t i = 0; i < density.size(); i += 2) {
    const double sum = std::abs(density[i] + density[i + 1]), limit = polarisation * sum;
    const double difference = std::clamp(density[i] - density[i + 1], -limit, limit);
    density[i] = 0.5 * (sum + difference);
    density[i + 1] = 0.5 * (sum - difference);
  }
  return density;
}

/// Returns d(ρε)/dρ_s of a local functional, Hartree, [point][n_spins].
/// @param number  number of the functional in libxc
std::vector<double> local_potential(int number, const XcPoints& points) {
  const std::vector<double> density = positive_densities(points, 1.0);
  std::vector<double> potential(density.size());
  LibxcFunctional f(number, points.n_spins);
  f.set_least_density(kLimitOfLibxc);
  const auto spins = static_cast<std::size_t>(points.n_spins);
  f.local(density.size() / spins, density.data(), potential.data());
  for (std::size_t i = 0; i < density.size(); i += spins)
    if (density[i] + (spins == 2 ? density[i + 1] : 0.0) <= kLeastDensity)
      std::fill_n(potential.begin() + static_cast<std::ptrdiff_t>(i), spins, 0.0);
  return potential;
}

/// Calculates the gradient terms of a functional at chosen points. They are the functional less its
/// local part. pw.x evaluates both parts at different densities where a density is negative, so
/// that the parts are separate here, too.
struct GradientSample {
  std::vector<std::size_t> point;
  std::vector<double> density, products, by_density, by_products;

  void evaluate(int number, int local_part, int n_spins) {
    if (point.empty()) return;
    by_density.resize(density.size());
    by_products.resize(products.size());
    LibxcFunctional f(number, n_spins);
    f.set_least_density(kLimitOfLibxc);
    f.gradient(point.size(), density.data(), products.data(), by_density.data(),
               by_products.data());
    std::vector<double> local(density.size());
    LibxcFunctional part(local_part, n_spins);
    part.set_least_density(kLimitOfLibxc);
    part.local(point.size(), density.data(), local.data());
    for (std::size_t i = 0; i < local.size(); ++i) by_density[i] -= local[i];
  }
};

/// Adds the part of exchange that depends on the gradient of the density. The derivative of its
/// energy with respect to ρ is added to `potential`, and that with respect to ∇ρ to
/// points.by_gradient. With two spins E_x[ρ↑, ρ↓] = ½ E_x[2ρ↑] + ½ E_x[2ρ↓].
/// @param number     number of the functional in libxc
/// @param potential  V_x, Hartree, [point][n_spins]
void add_gradient_of_exchange(int number, const XcPoints& points, std::vector<double>& potential) {
  const auto spins = static_cast<std::size_t>(points.n_spins), products = 2 * spins - 1;
  const double scale = spins == 2 ? 2.0 : 1.0;
  for (std::size_t spin = 0; spin < spins; ++spin) {
    GradientSample sample;
    for (std::size_t i = 0; i < points.density.size() / spins; ++i) {
      const double rho = points.density[i * spins + spin], own = spins == 2 ? rho : std::abs(rho);
      const double squared = points.gradient[i * products + 2 * spin];
      const double total = spins == 2 ? rho + points.density[i * spins + 1 - spin] : own;
      if (total <= kLeastDensity ||
          own <= (spins == 2 ? kLeastDensityOfSpin : kLeastDensityOfGradient) ||
          squared <= (spins == 2 ? kLeastSquaredGradientOfSpin : kLeastSquaredGradient))
        continue;
      sample.point.push_back(i);
      sample.density.push_back(scale * own);
      sample.products.push_back(scale * scale * squared);
    }
    sample.evaluate(number, kSlater, 1);
    for (std::size_t j = 0; j < sample.point.size(); ++j) {
      potential[sample.point[j] * spins + spin] += sample.by_density[j];
      points.by_gradient[sample.point[j] * products + 2 * spin] +=
          kRydberg_per_hartree * scale * sample.by_products[j];
    }
  }
}

/// Adds the gradient terms of correlation to a potential, Hartree, [point][n_spins], and to
/// points.by_gradient. @param number  number of the functional in libxc
void add_gradient_of_correlation(int number, const XcPoints& points,
                                 std::vector<double>& potential) {
  const auto spins = static_cast<std::size_t>(points.n_spins), products = 2 * spins - 1;
  const std::vector<double> density = positive_densities(points, kLargestPolarisation);
  GradientSample sample;
  for (std::size_t i = 0; i < density.size() / spins; ++i) {
    const auto rho = points.density.subspan(i * spins, spins),
               of_point = points.gradient.subspan(i * products, products);
    double total = 0.0, squared = 0.0;
    for (std::size_t s = 0; s < spins; ++s) total += rho[s];
    for (std::size_t s = 0; s < products; ++s) squared += (s == 1 ? 2.0 : 1.0) * of_point[s];
    if (spins == 1) total = std::abs(total);
    if (spins == 2 && std::abs(rho[0] - rho[1]) > total) continue;
    if (total <= kLeastDensityOfGradient || squared <= kLeastSquaredGradient) continue;
    sample.point.push_back(i);
    for (std::size_t s = 0; s < spins; ++s) sample.density.push_back(density[i * spins + s]);
    sample.products.insert(sample.products.end(), of_point.begin(), of_point.end());
  }
  sample.evaluate(number, kPwMoreDigits, points.n_spins);
  for (std::size_t j = 0; j < sample.point.size(); ++j) {
    for (std::size_t s = 0; s < spins; ++s)
      potential[sample.point[j] * spins + s] += sample.by_density[j * spins + s];
    for (std::size_t s = 0; s < products; ++s)
      points.by_gradient[sample.point[j] * products + s] +=
          kRydberg_per_hartree * sample.by_products[j * products + s];
  }
}

}  // namespace

bool uses_gradient(XcFunctional functional) {
  return functional == XcFunctional::kPbe || functional == XcFunctional::kPbesol;
}

void evaluate_functional(XcFunctional functional, const XcPoints& points) {
  std::fill(points.by_gradient.begin(), points.by_gradient.end(), 0.0);
  const auto [slater, local_correlation] = local_parts_of(functional);
  std::vector<double> exchange = local_potential(slater, points),
                      correlation = local_potential(local_correlation, points);
  if (uses_gradient(functional)) {
    const auto [number, other] = gradient_parts_of(functional);
    add_gradient_of_exchange(number, points, exchange);
    add_gradient_of_correlation(other, points, correlation);
  }
  for (std::size_t i = 0; i < exchange.size(); ++i)
    points.by_density[i] = kRydberg_per_hartree * (exchange[i] + correlation[i]);
}

}  // namespace quasi::gw
