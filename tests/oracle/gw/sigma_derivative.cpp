#include "tests/oracle/gw/sigma_derivative.hpp"

#include <cstddef>

namespace quasi::oracle::gw {
namespace {

/// Returns SX − X and CH together: −ω̃²/(x² − ω̃²) if occupied, and ½ω̃/(x − ω̃).
long double factor(long double x, long double w, bool occupied) {
  const long double ch = 0.5L * w / (x - w);
  return occupied ? ch - w * w / (x * x - w * w) : ch;
}

/// Returns the derivative of `factor` with respect to x.
long double slope(long double x, long double w, bool occupied) {
  const long double ch = -0.5L * w / ((x - w) * (x - w));
  const long double d = x * x - w * w;
  return occupied ? ch + 2.0L * x * w * w / (d * d) : ch;
}

}  // namespace

Complex sigma_derivative(const PoleModel& model, const Side& bra, const Side& ket,
                         const std::vector<Complex>& coupling, double energy_ry) {
  const auto n_g = static_cast<std::size_t>(model.n_g);
  Complex sum;
  for (std::size_t i = 0; i < bra.energy_ry.size(); ++i)
    for (std::size_t j = 0; j < ket.energy_ry.size(); ++j)
      for (std::size_t g = 0; g < n_g; ++g)
        for (std::size_t h = 0; h < n_g; ++h) {
          const long double w = model.pole_ry[g * n_g + h];
          const long double a = ket.energy_ry[j], b = bra.energy_ry[i];
          const bool of_a = ket.occupation[j] == 1.0, of_b = bra.occupation[i] == 1.0;
          const long double quotient =
              a == b ? -slope(energy_ry - a, w, of_a)
                     : (factor(energy_ry - a, w, of_a) - factor(energy_ry - b, w, of_b)) / (a - b);
          sum += coupling[i * ket.energy_ry.size() + j] * bra.products[i * n_g + g] *
                 model.i_minus_epsinv[g * n_g + h] * model.coulomb[h] *
                 static_cast<double>(quotient) * std::conj(ket.products[j * n_g + h]);
        }
  return sum;
}

}  // namespace quasi::oracle::gw
