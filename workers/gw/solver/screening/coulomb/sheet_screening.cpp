#include "workers/gw/solver/screening/coulomb/sheet_screening.hpp"

#include <cmath>
#include <utility>

namespace quasi::gw {

SheetScreening::SheetScreening(std::vector<double> p, std::vector<std::complex<double>> gamma)
    : p_(std::move(p)), weight_(p_.size(), 1.0), gamma_(std::move(gamma)) {
  // Weights of the barycentric form of the polynomial. Lengths are scaled, so that none overflows.
  for (std::size_t i = 0; i < p_.size(); ++i)
    for (std::size_t j = 0; j < p_.size(); ++j)
      if (i != j) weight_[i] *= p_.back() / (p_[i] - p_[j]);
}

std::complex<double> SheetScreening::operator()(double p) const {
  if (p_.size() == 1) return gamma_[0];
  std::complex<double> numerator;
  double denominator = 0.0;
  for (std::size_t i = 0; i < p_.size(); ++i) {
    if (p == p_[i]) return gamma_[i];
    const double part = weight_[i] / (p - p_[i]);
    numerator += part * (gamma_[i] - gamma_.back());
    denominator += part;
  }
  constexpr double kPower = 8.0, kGone = 1e-12;
  const double inside = std::exp(-std::pow(p / p_.back(), kPower));
  if (inside < kGone) return gamma_.back();
  return gamma_.back() + inside * numerator / denominator;
}

std::vector<double> sample_lengths(int n, double longest) {
  std::vector<double> lengths;
  for (int j = 1; j <= n; ++j) lengths.push_back(0.5 * longest * (1.0 - std::cos(kPi * j / n)));
  return lengths;
}

}  // namespace quasi::gw
