#include <gtest/gtest.h>
#include <lapacke.h>

#include <cmath>
#include <random>

#include "tests/mosfet/fixtures.hpp"
#include "tests/support/reference_data.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/kernels/electrostatics/level_response.hpp"
#include "workers/mosfet/kernels/electrostatics/subbands.hpp"
#include "workers/mosfet/physics/tridiagonal.hpp"
#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {
namespace {

// The flat 6 nm well with 1 nm oxides. On an equal mesh the scheme's levels are known to 1e-9 eV,
// and the error against the transcendental equation falls fourfold when Δz is halved.
TEST(Schroedinger, FiniteWellHasTheLevelsOfItsMesh) {
  QUASI_NEED_REFERENCE("device/levels_flat_well.csv");
  const auto rows = test::read_csv(test::reference_dir() / "device/levels_flat_well.csv");
  int compared = 0;
  for (const int nz : {33, 65, 129, 257}) {
    const Structure s = make_structure(test::default_deck(33, nz));
    const Subbands levels = solve_subbands(s, std::vector<double>(33 * nz, 0.0));
    for (const auto& row : rows) {
      if (row[2] != nz || row[1] >= 6) continue;
      const auto family = static_cast<std::size_t>(s.family_of[static_cast<std::size_t>(row[0])]);
      const auto p = static_cast<std::size_t>(row[1]);
      EXPECT_NEAR(levels.energy_ev[(family * 6 + p) * 33], row[3], 1e-9);
      ++compared;
    }
  }
  EXPECT_GE(compared, 16);
}

TEST(Schroedinger, FiniteWellIsSecondOrder) {
  // Levels of the continuous well, from its transcendental equation.
  const double exact_ev[] = {0.0426190913791, 0.01011565};
  const double tolerance[] = {0.05, 0.1};
  for (const int valley : {0, 2}) {
    double error[3];
    int k = 0;
    for (const int nz : {129, 257, 513}) {
      const Structure s = make_structure(test::default_deck(33, nz));
      const Subbands levels = solve_subbands(s, std::vector<double>(33 * nz, 0.0));
      error[k++] = levels.energy_ev[static_cast<std::size_t>(s.family_of[valley]) * 6 * 33] -
                   exact_ev[valley / 2];
    }
    EXPECT_NEAR(error[0] / error[1], 4.0, 2.0 * tolerance[valley / 2]);
    EXPECT_NEAR(error[1] / error[2], 4.0, tolerance[valley / 2]);
  }
}

// −ψ'' on N nodes has the eigenvalues (2/h)² sin²(πp/2(N−1)): relative error (πp/(N−1))²/12.
TEST(Schroedinger, InfiniteWellErrorIsKnown) {
  const int n = 63;
  const std::vector<double> diagonal(n, 2.0), off(n - 1, -1.0);
  const Tridiagonal t{diagonal.data(), off.data(), n, 4.0};
  for (int p = 1; p <= 6; ++p) {
    const double k = units::kPi * p / (n + 1);
    const double relative = 1.0 - bisect_level(t, p - 1) / (k * k);
    EXPECT_NEAR(relative / (k * k / 12.0), 1.0, 1e-2 * p * p);
  }
}

// Warm and cold starts against LAPACK: 1e-13 of ‖T‖ in the levels, 1e-9 in the vectors.
TEST(Schroedinger, TwistedFactorisationAgreesWithLapack) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  const Structure s = make_structure(test::default_deck(33, 65));
  const int n = s.interior();
  for (int trial = 0; trial < 20; ++trial) {
    const auto& f = s.families[trial % 2];
    std::vector<double> diagonal = f.base_ev, v(65);
    const double tilt = uniform(random), bow = uniform(random);
    for (int j = 0; j < 65; ++j) v[j] = tilt * j / 64.0 + bow * std::sin(j * 0.05);
    for (int k = 0; k < n; ++k) diagonal[k] -= v[k + 1];
    std::vector<double> energy(n), vectors(n * n), psi(n), forward(n), backward(n);
    all_states(s, trial % 2, v.data(), energy.data(), vectors.data());
    const Tridiagonal t{diagonal.data(), f.off_ev.data(), n,
                        gershgorin_bound(diagonal.data(), f.off_ev.data(), n)};
    for (int p = 0; p < 6; ++p)
      for (const bool warm : {false, true}) {
        double level = energy[p] + (warm ? 1e-4 * uniform(random) : 0.0);
        ASSERT_TRUE(solve_level(t, p, warm, s.dz_nm, &level,
                                {psi.data(), forward.data(), backward.data()}));
        EXPECT_NEAR(level, energy[p], 1e-13 * t.scale_ev);
        double overlap = 0.0, norm = 0.0;
        for (int k = 0; k < n; ++k) {
          overlap += psi[k] * vectors[p * n + k] * s.dz_nm;
          norm += psi[k] * psi[k] * s.dz_nm;
        }
        EXPECT_NEAR(std::fabs(overlap), 1.0, 1e-9);
        EXPECT_NEAR(norm, 1.0, 1e-13);
      }
  }
}

// The level found from a shift near another level must not be accepted.
TEST(Schroedinger, AWrongWarmStartIsNoticed) {
  const int n = 63;
  std::vector<double> diagonal(n, 2.0), off(n - 1, -1.0), psi(n), forward(n), backward(n);
  const Tridiagonal t{diagonal.data(), off.data(), n, 4.0};
  double level = bisect_level(t, 3);
  ASSERT_TRUE(solve_level(t, 1, true, 1.0, &level, {psi.data(), forward.data(), backward.data()}));
  EXPECT_NEAR(level, 2.0 - 2.0 * std::cos(2.0 * units::kPi / 64.0), 1e-12);
}

// First-order perturbation theory with all states: δN = A δV, checked by a difference quotient.
TEST(Schroedinger, ColumnResponseIsTheDerivativeOfTheDensity) {
  for (const int subbands : {2, 6}) {
    const Structure s =
        make_structure(test::default_deck(33, 33, {{"mesh.subbands", std::to_string(subbands)}}));
    const int n = s.interior(), nz = s.nz;
    std::vector<double> v(nz), sheet(3 * subbands);
    for (int j = 0; j < nz; ++j) v[j] = 0.1 * std::cos(0.2 * j);
    for (std::size_t k = 0; k < sheet.size(); ++k) sheet[k] = 0.1 / (1.0 + static_cast<double>(k));
    const auto density = [&](const std::vector<double>& potential) {
      std::vector<double> result(nz, 0.0), energy(n), vectors(n * n);
      for (int valley = 0; valley < 3; ++valley) {
        all_states(s, s.family_of[valley], potential.data(), energy.data(), vectors.data());
        for (int p = 0; p < subbands; ++p)
          for (int k = 0; k < n; ++k)
            result[k + 1] +=
                2.0 * sheet[valley * subbands + p] * vectors[p * n + k] * vectors[p * n + k];
      }
      return result;
    };
    std::vector<std::vector<double>> energy(2, std::vector<double>(n)),
        vectors(2, std::vector<double>(n * n));
    for (int f = 0; f < 2; ++f) all_states(s, f, v.data(), energy[f].data(), vectors[f].data());
    std::vector<double> response(nz * nz);
    column_response(s,
                    {{energy[0].data(), energy[1].data()}, {vectors[0].data(), vectors[1].data()}},
                    sheet.data(), nullptr, false, response.data());
    std::vector<double> up = v, down = v, delta(nz);
    const double h = 1e-5;
    for (int j = 0; j < nz; ++j) {
      delta[j] = std::sin(0.15 * j) + 0.3 * std::cos(0.4 * j);
      up[j] += h * delta[j];
      down[j] -= h * delta[j];
    }
    const auto above = density(up), below = density(down);
    for (int j = 1; j < nz - 1; ++j) {
      double predicted = 0.0;
      for (int k = 0; k < nz; ++k) predicted += response[j * nz + k] * s.dz_nm * delta[k];
      EXPECT_NEAR(predicted, (above[j] - below[j]) / (2.0 * h), 2e-7) << "subbands " << subbands;
    }
  }
}

// The response of the density is a sum over all states. Green's functions of the transported levels
// alone give the same response. Two wells behind a barrier of 3 eV have pairs of levels closer than
// 1e-6 eV, for which the sum over all states is used.
TEST(Schroedinger, ResponseOfTransportedLevelsAgreesWithAllStates) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  for (const int subbands : {1, 2, 6})
    for (const double barrier_v : {0.0, 0.1, 3.0}) {
      const Structure s =
          make_structure(test::default_deck(33, 65, {{"mesh.subbands", std::to_string(subbands)}}));
      const int n = s.interior(), nz = s.nz;
      std::vector<double> v(nz), sheet(3 * subbands), slope(sheet.size());
      for (int j = 0; j < nz; ++j)
        v[j] = 0.1 * std::cos(0.1 * (j - 32)) - (std::abs(j - 32) < 16) * barrier_v;
      for (std::size_t k = 0; k < sheet.size(); ++k)
        sheet[k] = 0.1 * uniform(random), slope[k] = sheet[k] / 0.0259;
      std::vector<std::vector<double>> energy(2, std::vector<double>(n)),
          vectors(2, std::vector<double>(n * n));
      ColumnLevels levels{.energies = {{}, {}}, .psi = {{}, {}}};
      for (int f = 0; f < 2; ++f) {
        all_states(s, f, v.data(), energy[f].data(), vectors[f].data());
        for (int p = 0; p < subbands; ++p) {
          levels.energies[f].push_back(energy[f][p]);
          levels.psi[f].push_back(&vectors[f][p * n]);
        }
      }
      std::vector<double> all(nz * nz), fast(nz * nz);
      column_response(
          s, {{energy[0].data(), energy[1].data()}, {vectors[0].data(), vectors[1].data()}},
          sheet.data(), slope.data(), false, all.data());
      const bool is_fast =
          level_response(s, v.data(), levels, sheet.data(), slope.data(), fast.data());
      EXPECT_EQ(is_fast, barrier_v < 1.0) << subbands;
      if (!is_fast) continue;
      const double largest = *std::max_element(all.begin(), all.end());
      for (std::size_t k = 0; k < all.size(); ++k)
        EXPECT_NEAR(fast[k], all[k], 1e-11 * largest) << subbands << ' ' << barrier_v << ' ' << k;
    }
}

}  // namespace
}  // namespace quasi::mosfet
