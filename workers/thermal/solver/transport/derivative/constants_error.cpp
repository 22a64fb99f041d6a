#include "workers/thermal/solver/transport/derivative/constants_error.hpp"

#include <cmath>

#include "workers/backend/error.hpp"

namespace quasi::thermal {

ConstantsError kappa_error_of_constants(const ConstantsCovariance& covariance,
                                        const std::vector<double>& derivative) {
  constexpr double kRounding = 1e-12;
  const auto n = static_cast<std::size_t>(covariance.n_parameters);
  ConstantsError result{.gradient = std::vector<double>(n, 0.0)};
  for (const ConstantsCovariance::Entry& entry : covariance.basis)
    result.gradient[static_cast<std::size_t>(entry.parameter)] +=
        entry.value * derivative[static_cast<std::size_t>(entry.element)];
  double variance = 0.0, sizes = 0.0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const double term =
          result.gradient[i] * covariance.covariance[i * n + j] * result.gradient[j];
      variance += term;
      sizes += std::fabs(term);
    }
  if (variance < -kRounding * sizes)
    throw InvalidInput(
        "covariance.hdf5: the variance of κ is negative, so that '/covariance' has a negative "
        "eigenvalue; a covariance has none");
  result.kappa_w_per_mk = std::sqrt(std::fmax(variance, 0.0));
  return result;
}

}  // namespace quasi::thermal
