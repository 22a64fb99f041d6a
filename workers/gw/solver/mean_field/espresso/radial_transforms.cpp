#include "workers/gw/solver/mean_field/espresso/radial_transforms.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace quasi::gw {
namespace {

constexpr double kReach_bohr = 10.0;
constexpr double kTableStep_per_bohr = 0.01;
constexpr double kSquaredCharge = 2.0;  // e² in Rydberg units

/// Returns f(length) for every length. Threads share the lengths.
template <typename Function>
std::vector<double> for_lengths(const std::vector<double>& lengths, const Function& f) {
  std::vector<double> values(lengths.size());
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(lengths.size()); ++i)
    values[static_cast<std::size_t>(i)] = f(lengths[static_cast<std::size_t>(i)]);
  return values;
}

}  // namespace

double radial_integral(const std::vector<double>& values, const std::vector<double>& rab) {
  double sum = 0.0;
  for (std::size_t i = 1; i + 1 < values.size(); i += 2)
    sum += values[i - 1] * rab[i - 1] + 4.0 * values[i] * rab[i] + values[i + 1] * rab[i + 1];
  return sum / 3.0;
}

double spherical_bessel(int l, double x) {
  // Upward recursion in l loses digits if x is smaller than about l. The power series in x²
  // converges fast there.
  if (x < 0.3 + 0.5 * l) {
    double power = 1.0;
    for (int i = 1; i <= l; ++i) power *= x / (2 * i + 1);
    double term = 1.0, sum = 1.0;
    for (int i = 1; i <= 20; ++i) {
      term *= -0.5 * x * x / (i * (2.0 * (l + i) + 1.0));
      sum += term;
    }
    return power * sum;
  }
  double before = std::sin(x) / x;
  if (l == 0) return before;
  double now = (before - std::cos(x)) / x;
  for (int i = 1; i < l; ++i) {
    const double next = (2 * i + 1) / x * now - before;
    before = now;
    now = next;
  }
  return now;
}

void real_harmonics(int l, const Vec3& k, double* values) {
  const double length = std::sqrt(dot(k, k));
  const Vec3 n = length < 1e-12 ? Vec3{0.0, 0.0, 1.0} : (1.0 / length) * k;
  const double x = n[0], y = n[1], z = n[2];
  const auto scale = [](double a, double b) { return std::sqrt(a / (b * kPi)); };
  switch (l) {
    case 0:
      values[0] = scale(1, 4);
      break;
    case 1:
      for (int i = 0; i < 3; ++i) values[i] = scale(3, 4) * n[static_cast<std::size_t>(i)];
      break;
    case 2:
      values[0] = scale(15, 4) * x * y;
      values[1] = scale(15, 4) * y * z;
      values[2] = scale(15, 4) * z * x;
      values[3] = scale(15, 16) * (x * x - y * y);
      values[4] = scale(5, 16) * (3.0 * z * z - 1.0);
      break;
    default:
      values[0] = scale(105, 4) * x * y * z;
      values[1] = scale(105, 16) * z * (x * x - y * y);
      values[2] = scale(21, 32) * x * (5.0 * z * z - 1.0);
      values[3] = scale(21, 32) * y * (5.0 * z * z - 1.0);
      values[4] = scale(7, 16) * z * (5.0 * z * z - 3.0);
      values[5] = scale(35, 32) * x * (x * x - 3.0 * y * y);
      values[6] = scale(35, 32) * y * (3.0 * x * x - y * y);
  }
}

std::size_t points_of_integrals(const Pseudopotential& pseudo) {
  const auto beyond =
      std::find_if(pseudo.r.begin(), pseudo.r.end(), [](double r) { return r > kReach_bohr; });
  const std::size_t n = beyond == pseudo.r.end()
                            ? pseudo.r.size()
                            : static_cast<std::size_t>(beyond - pseudo.r.begin()) + 1;
  return 2 * ((n + 1) / 2) - 1;
}

std::vector<double> local_form_factors(const Pseudopotential& pseudo,
                                       const std::vector<double>& lengths) {
  const std::size_t n = points_of_integrals(pseudo);
  const double charge = kSquaredCharge * pseudo.valence;
  return for_lengths(lengths, [&](double g) {
    std::vector<double> f(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double r = pseudo.r[i];
      f[i] = g < 1e-8 ? r * (r * pseudo.local_ry[i] + charge)
                      : (r * pseudo.local_ry[i] + charge * std::erf(r)) * std::sin(g * r) / g;
    }
    const double integral = radial_integral(f, pseudo.rab);
    return 4.0 * kPi *
           (g < 1e-8 ? integral : integral - charge * std::exp(-0.25 * g * g) / (g * g));
  });
}

std::vector<double> core_form_factors(const Pseudopotential& pseudo,
                                      const std::vector<double>& lengths) {
  const std::size_t n = points_of_integrals(pseudo);
  return for_lengths(lengths, [&](double g) {
    std::vector<double> f(n);
    for (std::size_t i = 0; i < n; ++i)
      f[i] = pseudo.r[i] * pseudo.r[i] * pseudo.core[i] * spherical_bessel(0, g * pseudo.r[i]);
    return 4.0 * kPi * radial_integral(f, pseudo.rab);
  });
}

RadialTable::RadialTable(const Pseudopotential& pseudo, std::size_t projector, double q_max)
    : l_(pseudo.projectors[projector].l) {
  const std::vector<double>& r_beta = pseudo.projectors[projector].r_beta;
  std::vector<double> lengths(static_cast<std::size_t>(q_max / kTableStep_per_bohr) + 5);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    lengths[i] = kTableStep_per_bohr * static_cast<double>(i);
  values_ = for_lengths(lengths, [&](double q) {
    std::vector<double> f(r_beta.size());
    for (std::size_t i = 0; i < f.size(); ++i)
      f[i] = pseudo.r[i] * r_beta[i] * spherical_bessel(l_, q * pseudo.r[i]);
    return 4.0 * kPi * radial_integral(f, pseudo.rab);
  });
}

double RadialTable::at(double q) const {
  const double scaled = q / kTableStep_per_bohr;
  const auto first = static_cast<std::size_t>(scaled);
  const double p = scaled - static_cast<double>(first), u = 1.0 - p, v = 2.0 - p, w = 3.0 - p;
  return values_[first] * u * v * w / 6.0 + values_[first + 1] * p * v * w / 2.0 -
         values_[first + 2] * p * u * w / 2.0 + values_[first + 3] * p * u * v / 6.0;
}

}  // namespace quasi::gw
