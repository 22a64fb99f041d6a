// Accuracy of bands by character between the points of the grid. The truth is a correction that is
// known everywhere: a function of the energy, or Σ computed at the points of a finer grid.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/gw/bands/character_crystal.hpp"
#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/solver/mean_field/density.hpp"
#include "workers/gw/solver/screening/sub_grid.hpp"

namespace quasi::gw {
namespace {

using test::CharacterCrystal;
using test::Table;

/// True for a point of the unshifted n × n × n grid.
bool on_grid(const Vec3& k, int n) {
  IVec3 steps{};
  return nearest_lattice_point(static_cast<double>(n) * k, &steps);
}

/// −2 (3ρ/π)^⅓ Ry of the density of the model: the local exchange potential.
PlaneWaveField local_exchange(const MeanField& field) {
  constexpr int n = 15;
  PlaneWaveField v{.header = field.density.header,
                   .values = {std::vector<Cplx>(field.density.header.g.size())}};
  const auto& g = field.density.header.g;
  for (int i = 0; i < n * n * n; ++i) {
    const Vec3 r{1.0 * (i / (n * n)) / n, 1.0 * (i / n % n) / n, 1.0 * (i % n) / n};
    std::vector<Cplx> wave(g.size());
    double rho = 0.0;
    for (std::size_t j = 0; j < g.size(); ++j) {
      wave[j] = std::polar(1.0, 2.0 * kPi * dot(to_real(g[j]), r));
      rho += (field.density.values[0][j] * wave[j]).real() / field.crystal().volume_bohr3;
    }
    const double value = -2.0 * std::cbrt(3.0 * std::max(rho, 0.0) / kPi) / (n * n * n);
    for (std::size_t j = 0; j < g.size(); ++j) v.values[0][j] += value * std::conj(wave[j]);
  }
  return v;
}

// The correction stretches all energies by a tenth from the valence top, as corrections in
// semiconductors do, along a path without symmetry. From a 4×4×4 to an 8×8×8 grid the error must
// fall by 4 (h²); 3.6 is measured (40 and 11 meV) and 3 is required. The five lowest bands of ten
// are compared, which stay inside the window.
TEST(BandCharacter, ErrorsFallAsTheSquareOfTheSpacing) {
  constexpr std::size_t n_shown = 5;
  const BandPath path{.corners = {{0.03, 0.05, 0.02}, {0.31, 0.44, 0.17}, {0.12, 0.48, 0.39}},
                      .points_per_segment = 12};
  CharacterCrystal four("silicon", 4), eight("silicon", 8);
  const double top_ev = four.energies(4)[3][0];
  std::vector<double> error;
  for (CharacterCrystal* c : {&four, &eight}) {
    Table correction = c->energies(c->window(12));
    for (auto& band : correction)
      for (double& value : band) value = 0.1 * (value - top_ev);
    const CharacterBands bands = c->along(correction, path, c->states);
    error.push_back(0.0);
    for (std::size_t i = 0; i < bands.mean_field.k.size(); ++i) {
      const DenseStates s = c->states(bands.mean_field.k[i], 0, static_cast<int>(n_shown));
      for (std::size_t b = 0; b < bands.corrected_ev.size(); ++b) {
        const double energy = bands.mean_field.energy_ev[b][i];
        if (energy < s.energy_ry.back() * kRydberg_ev + 1e-6)
          error.back() += std::abs(bands.corrected_ev[b][i] - energy - 0.1 * (energy - top_ev)) /
                          (n_shown * static_cast<double>(bands.mean_field.k.size()));
      }
    }
  }
  EXPECT_GT(error[0] / error[1], 3.0) << error[0] << ' ' << error[1];
  EXPECT_GT(error[0], 1e-3) << "no error shows no order";
  EXPECT_LT(error[1], 0.02);
}

/// Σ less a local exchange of every band, averaged over multiplets, in eV: [irreducible k][band].
Table direct_corrections(test::SmallSilicon& s, std::size_t n_bands) {
  const int n = static_cast<int>(n_bands);
  const SigmaOptions o = s.options(n);
  EXPECT_EQ(o.band_max, n);
  const auto list = quasiparticles(s.field, s.sigma(o), {}, o, {Derivative::kAnalytic, 0.0}, false);
  const PlaneWaveField potential = local_exchange(s.field);
  Table correction;
  for (int ik = 0; ik < s.field.waves.n_k(); ++ik) {
    const auto matrix = potential_matrix(s.field, potential, {ik, 0, 0, n}, *s.kernels);
    correction.emplace_back();
    for (const auto& [begin, end] : multiplets(s.field.waves, 0, ik, 0, n))
      for (int b = begin; b < end; ++b) {
        double vxc_ev = 0.0;
        for (int m = begin; m < end; ++m)
          vxc_ev += matrix[static_cast<std::size_t>(m) * (n_bands + 1)].real() * kRydberg_ev /
                    (end - begin);
        const auto state = static_cast<std::size_t>(ik) * n_bands + static_cast<std::size_t>(b);
        correction.back().push_back(list[state].sigma_ev - vxc_ev);
      }
  }
  return correction;
}

/// Energies at the points of a sub-grid, their corrections, and their sums, in eV.
struct SubGridTables {
  Table energy, correction, corrected;
};

SubGridTables tables_on(const MeanField& coarse, const MeanField& fine, const Table& direct) {
  const std::size_t n_bands = direct.front().size();
  SubGridTables tables;
  tables.energy.assign(n_bands, std::vector<double>(coarse.waves.k.size()));
  tables.correction = tables.corrected = tables.energy;
  for (std::size_t ik = 0; ik < fine.waves.k.size(); ++ik)
    for (std::size_t jk = 0; jk < coarse.waves.k.size(); ++jk) {
      const Vec3 d = fine.waves.k[ik] - coarse.waves.k[jk];
      if (dot(d, d) > 1e-12) continue;
      for (std::size_t b = 0; b < n_bands; ++b) {
        tables.energy[b][jk] =
            fine.waves.energy(0, static_cast<int>(ik), static_cast<int>(b)) * kRydberg_ev;
        tables.correction[b][jk] = direct[ik][b];
        tables.corrected[b][jk] = tables.energy[b][jk] + tables.correction[b][jk];
      }
    }
  return tables;
}

// Σ less a local exchange is known at every point of a 6×6×6 grid. Its values on the 2×2×2 and
// 3×3×3 sub-grids alone are carried to the other points. The seven lowest bands of ten have
// corrections from −2 to 1 eV. The errors are 0.05 and 0.06 eV in the mean and 0.18 and 0.19 eV at
// worst; by rank they are 1.0 and 0.8 eV. These grids are too coarse for errors to fall as the
// square of the spacing.
TEST(BandCharacter, ApproachesTheDirectCalculation) {
  EmpiricalCrystal crystal = test::SmallSilicon::small_crystal();
  crystal.k_grid = {6, 6, 6};
  crystal.bands = 14;
  crystal.by_velocity = true;
  test::SmallSilicon s(crystal);
  const auto n = static_cast<std::size_t>(whole_band_counts(s.field.waves, 5, 13).back());
  const Table direct = direct_corrections(s, n);
  const StatesAt states = empirical_states(crystal, s.field.crystal(), *s.kernels);
  SilentProgress silent;
  for (const int grid : {2, 3}) {
    const MeanField coarse = on_sub_grid(s.field, {grid, grid, grid});
    const SubGridTables tables = tables_on(coarse, s.field, direct);
    double sum = 0.0, worst = 0.0, rank_sum = 0.0;
    int compared = 0;
    for (std::size_t ik = 0; ik < s.field.waves.k.size(); ++ik) {
      const Vec3& k = s.field.waves.k[ik];
      if (on_grid(k, 2) || on_grid(k, 3)) continue;
      const BandPath there{.corners = {k, k}, .points_per_segment = 2};
      const CharacterBands bands =
          bands_by_character(coarse, {0, 0, static_cast<int>(n), tables.energy, tables.correction},
                             there, states, silent);
      const PathBands rank = interpolate_bands(coarse, tables.corrected, there);
      for (std::size_t b = 0; b < 7; ++b) {
        const double energy_ev =
            s.field.waves.energy(0, static_cast<int>(ik), static_cast<int>(b)) * kRydberg_ev;
        const double error =
            std::abs(bands.corrected_ev[b][0] - bands.mean_field.energy_ev[b][0] - direct[ik][b]);
        sum += error;
        rank_sum += std::abs(rank.energy_ev[b][0] - energy_ev - direct[ik][b]);
        worst = std::max(worst, error);
        ++compared;
      }
    }
    EXPECT_EQ(compared, 70);
    EXPECT_LT(sum / compared, 0.08) << grid;
    EXPECT_LT(worst, 0.25) << grid;
    EXPECT_GT(rank_sum, 8.0 * sum) << grid;
  }
}

}  // namespace
}  // namespace quasi::gw
