#pragma once

// Bands and changes of plasmon poles for the tests of the response of Σ.

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/gw/kernels/sigma_problem.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::test::response {

inline constexpr std::int64_t kLeft = 2, kBands = 11;
inline constexpr double kStep = 1e-6;  ///< of the central differences, in changes of the model

/// Energies and occupations of bands on both sides of the outer states.
struct Rows {
  std::vector<double> x_ry, occupation;
  Rows() {
    for (std::int64_t n = 0; n < kBands; ++n) occupation.push_back(n < 4 ? 1.0 : 0.0);
    for (std::int64_t l = 0; l < kLeft; ++l)
      for (std::int64_t n = 0; n < kBands; ++n)
        x_ry.push_back(1.3 + 0.4 * static_cast<double>(l) - 0.37 * static_cast<double>(n));
  }
};

/// A change of a random model: of δ − ε⁻¹ by up to 1, and of 1/ω̃ by up to 0.3/ω̃.
struct Change {
  std::vector<Cplx> screening;
  std::vector<double> tau_per_ry;
  Change(const RandomPoleModel& model, Symmetry symmetry, std::uint32_t seed) {
    const auto n = static_cast<std::size_t>(model.oracle.n_g);
    screening = random_complex(n * n, seed);
    for (std::size_t i = 0; i < n * n; ++i) {
      const double pole = model.oracle.pole_ry[i];
      const bool has_pole = pole > 0.0 && std::isfinite(pole);
      tau_per_ry.push_back(has_pole ? 0.3 * screening[i].real() / pole : 0.0);
      if (pole == 0.0) screening[i] = 0.0;
    }
    for (std::size_t g = 0; g < n && symmetry == Symmetry::kHermitian; ++g)
      for (std::size_t h = 0; h <= g; ++h) {
        tau_per_ry[g * n + h] = tau_per_ry[h * n + g];
        screening[g * n + h] = std::conj(screening[h * n + g]);
        if (g == h) screening[g * n + h] = screening[g * n + h].real();
      }
  }
  gw::PoleChange packed(const RandomPoleModel& model, Symmetry symmetry) const {
    gw::PoleChange change;
    const auto n = static_cast<std::size_t>(model.oracle.n_g);
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < (symmetry == Symmetry::kHermitian ? g + 1 : n); ++h) {
        change.strength.emplace_back(
            Cplx(0.5 * kStep * model.oracle.coulomb[h] * screening[g * n + h]));
        change.tau_per_ry.push_back(static_cast<float>(kStep * tau_per_ry[g * n + h]));
      }
    return change;
  }
  oracle::gw::PoleModel added(oracle::gw::PoleModel model, double factor) const {
    for (std::size_t i = 0; i < screening.size(); ++i) {
      model.i_minus_epsinv[i] += factor * screening[i];
      if (tau_per_ry[i] != 0.0)
        model.pole_ry[i] = 1.0 / (1.0 / model.pole_ry[i] + factor * tau_per_ry[i]);
    }
    return model;
  }
};

}  // namespace quasi::test::response
