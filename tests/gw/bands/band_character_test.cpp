// Bands along a path whose corrections follow the character of states (docs/theory/gw.md 10). They
// are exact at the grid, independent of phases and of the basis of multiplets, and follow states
// through crossings. The truth are the corrections given at the grid and symmetry.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/gw/bands/character_crystal.hpp"
#include "tests/gw/support/small_silicon.hpp"

namespace quasi::gw {
namespace {

using test::CharacterCrystal;
using test::Table;

/// A correction that is a smooth function of the state and differs between representations, in eV:
/// 0.3 eV · ⟨n|(k+G)²/Ry|n⟩ of each band, averaged over multiplets.
std::vector<double> kinetic_ev(const DenseStates& s, std::size_t n_bands) {
  std::vector<double> value(n_bands);
  const std::size_t n_g = s.sphere.g.size();
  for (std::size_t b = 0; b < n_bands; ++b)
    for (std::size_t i = 0; i < n_g; ++i)
      value[b] += 0.3 * s.sphere.kinetic_ry[i] * std::norm(s.coefficients[b * n_g + i]);
  for (std::size_t begin = 0, end = 0; begin < n_bands; begin = end) {
    double sum = 0.0;
    for (end = begin; end < n_bands &&
                      (end == begin || s.energy_ry[end] - s.energy_ry[end - 1] < kDegenerate_ry);)
      sum += value[end++];
    for (std::size_t b = begin; b < end; ++b) value[b] = sum / static_cast<double>(end - begin);
  }
  return value;
}

/// The correction of kinetic_ev at the irreducible points of the grid.
Table kinetic_on_grid(CharacterCrystal& c, int n_bands) {
  Table t(static_cast<std::size_t>(n_bands), std::vector<double>(c.field.waves.k.size()));
  for (std::size_t ik = 0; ik < c.field.waves.k.size(); ++ik) {
    const auto value =
        kinetic_ev(c.states(c.field.waves.k[ik], 0, n_bands), static_cast<std::size_t>(n_bands));
    for (std::size_t b = 0; b < value.size(); ++b) t[b][ik] = value[b];
  }
  return t;
}

// At every point of the grid, and at its images by other G, the result is the mean-field energy
// plus the given correction: 1e-10 eV. The corrections differ by up to 3 eV, so that they change
// the order of energies.
TEST(BandCharacter, IsExactAtTheGrid) {
  CharacterCrystal c("gaas", 3);
  const auto n = static_cast<std::size_t>(c.window(12));
  std::mt19937_64 generator(5);
  std::uniform_real_distribution<double> uniform(-1.5, 1.5);
  Table correction(n, std::vector<double>(c.field.waves.k.size()));
  const Table energy = c.energies(static_cast<int>(n));
  for (std::size_t ik = 0; ik < c.field.waves.k.size(); ++ik)
    for (std::size_t b = 0; b < n; ++b)
      correction[b][ik] = b > 0 && energy[b][ik] - energy[b - 1][ik] < 1e-5 ? correction[b - 1][ik]
                                                                            : uniform(generator);
  for (const ZonePoint& point : c.field.zone.points())
    for (const Vec3& g : {Vec3{0, 0, 0}, Vec3{1, -1, 0}}) {
      const Vec3 k = point.k + g;
      const CharacterBands bands =
          c.along(correction, {.corners = {k, k + Vec3{0.01, 0.02, 0.0}}, .points_per_segment = 2},
                  c.states);
      for (std::size_t b = 0; b < n; ++b) {
        const auto ik = static_cast<std::size_t>(point.irreducible);
        EXPECT_NEAR(bands.mean_field.energy_ev[b][0], energy[b][ik], 1e-10);
        EXPECT_NEAR(bands.corrected_ev[b][0] - bands.mean_field.energy_ev[b][0], correction[b][ik],
                    1e-10)
            << b;
        EXPECT_NEAR(bands.share[b][0], 1.0, 1e-10);
      }
    }
}

/// States with every multiplet rotated by a random unitary matrix, phases included.
StatesAt disordered(const StatesAt& states) {
  return [states, draw = std::make_shared<std::uint32_t>(77)](const Vec3& k, int spin,
                                                              int n_bands) {
    DenseStates s = states(k, spin, n_bands);
    const std::size_t n_g = s.sphere.g.size(), n = s.energy_ry.size();
    for (std::size_t begin = 0, end = 0; begin < n; begin = end) {
      for (end = begin + 1; end < n && s.energy_ry[end] - s.energy_ry[end - 1] < kDegenerate_ry;)
        ++end;
      const std::size_t d = end - begin;
      const auto u = test::random_unitary(d, ++*draw);
      std::vector<Cplx> turned(d * n_g);
      for (std::size_t i = 0; i < d; ++i)
        for (std::size_t j = 0; j < d; ++j)
          for (std::size_t g = 0; g < n_g; ++g)
            turned[i * n_g + g] += u[i * d + j] * s.coefficients[(begin + j) * n_g + g];
      std::copy(turned.begin(), turned.end(),
                s.coefficients.begin() + static_cast<std::ptrdiff_t>(begin * n_g));
    }
    return s;
  };
}

// Random phases and random bases of all multiplets, of the states of the grid and of the path,
// leave the energies unchanged: 1e-9 eV. Along L Γ X the bands are double, triple and single. The
// energies at S k are those at k.
TEST(BandCharacter, KnowsNoPhasesNoBasesAndTheSymmetry) {
  CharacterCrystal c("silicon", 4);
  const int n = c.window(12);
  const Table correction = kinetic_on_grid(c, n);
  const BandPath path{.corners = {{0.5, 0.5, 0.5}, {0, 0, 0}, {0.0, 0.5, 0.5}, {0.13, 0.41, 0.22}},
                      .points_per_segment = 6};
  const CharacterBands plain = c.along(correction, path, c.states);
  BandPath turned_path = path;
  const IMat3 s = c.field.zone.operations().back().rotation;
  for (Vec3& corner : turned_path.corners) corner = multiply(s, corner);
  const CharacterBands turned = c.along(correction, turned_path, c.states);
  for (int ik = 0; ik < c.field.waves.n_k(); ++ik)
    test::rotate_multiplets(c.field, ik, n, 31u * static_cast<std::uint32_t>(ik) + 1u);
  const CharacterBands mixed = c.along(correction, path, disordered(c.states));
  // Rows may leave a multiplet in any order: the sets of pairs at each point are compared.
  const auto pairs = [&](const CharacterBands& bands, std::size_t i) {
    std::vector<std::pair<double, double>> list;
    for (std::size_t b = 0; b < static_cast<std::size_t>(n); ++b)
      list.emplace_back(std::round(bands.mean_field.energy_ev[b][i] * 1e6),
                        bands.corrected_ev[b][i]);
    std::sort(list.begin(), list.end());
    return list;
  };
  for (std::size_t i = 0; i < plain.mean_field.k.size(); ++i) {
    const auto a = pairs(plain, i), b = pairs(mixed, i), t = pairs(turned, i);
    for (std::size_t x = 0; x < a.size(); ++x) {
      EXPECT_NEAR(a[x].second, b[x].second, 1e-9) << i << ' ' << x;
      EXPECT_NEAR(a[x].second, t[x].second, 1e-8) << i << ' ' << x;
    }
  }
}

// Germanium from Γ to X: the lowest empty state Γ2' and the lowest of Γ15 cross, as Δ2' and Δ1, at
// 0.45 of the way to the next point of a 4×4×4 grid. The correction is 1 eV for Γ2' and Δ2' at both
// ends and 0 for all others. Symmetry allows no mixture, so that it is 1 or 0 on the whole way, and
// rows go through the crossing. States outside of the window contribute up to 2e-3 eV.
// Interpolation by rank moves the correction from one band to the other.
TEST(BandCharacter, FollowsStatesThroughACrossing) {
  CharacterCrystal c("germanium", 4);
  const Table energy = c.energies(8);
  Table correction(8, std::vector<double>(c.field.waves.k.size()));
  const Vec3 end{0.0, 0.25, 0.25};
  correction[4][static_cast<std::size_t>(c.field.zone.rotation_to({}).irreducible)] = 1.0;
  correction[5][static_cast<std::size_t>(c.field.zone.rotation_to(end).irreducible)] = 1.0;
  const BandPath path{.corners = {{0, 0, 0}, end}, .points_per_segment = 20};
  const CharacterBands bands = c.along(correction, path, c.states);
  Table moved = energy;
  for (std::size_t b = 0; b < 8; ++b)
    for (std::size_t ik = 0; ik < moved[b].size(); ++ik) moved[b][ik] += correction[b][ik];
  const PathBands rank = interpolate_bands(c.field, moved, path),
                  plain = interpolate_bands(c.field, energy, path);
  double worst_by_rank = 0.0;
  for (std::size_t i = 0; i < bands.mean_field.k.size(); ++i) {
    std::size_t below = 0;  // rank of the band that starts as Γ2'
    for (std::size_t b = 0; b < 8; ++b) {
      const double found = bands.corrected_ev[b][i] - bands.mean_field.energy_ev[b][i];
      EXPECT_NEAR(found, b == 4 ? 1.0 : 0.0, 2e-3) << b << ' ' << i;
      if (b != 4 && bands.mean_field.energy_ev[b][i] < bands.mean_field.energy_ev[4][i]) ++below;
    }
    worst_by_rank = std::max(worst_by_rank,
                             std::abs(rank.energy_ev[below][i] - plain.energy_ev[below][i] - 1.0));
    if (i == 0) {
      EXPECT_EQ(below, 4u);
    }
    if (i + 1 == bands.mean_field.k.size()) {
      EXPECT_EQ(below, 5u);
    }
  }
  EXPECT_GT(worst_by_rank, 0.4);
}

// A window may end between the two bands of that crossing: from below with five bands (Γ2' or Δ1)
// or, were they all occupied, from above with the sixth to the eighth. Both states of the pair must
// count. Then the band inside the window has the correction of one of them, 1 or 0, in any basis of
// the states. A window that cut the pair would give values in between. The share of the outermost
// band contributes up to 5e-3 eV.
TEST(BandCharacter, AWindowThatEndsAtACrossingTakesBothStates) {
  CharacterCrystal c("germanium", 4);
  const Vec3 end{0.0, 0.25, 0.25};
  const auto gap = [&](double t) {
    const DenseStates s = c.states(t * end, 0, 8);
    return s.energy_ry[5] - s.energy_ry[4];
  };
  // The gap falls, then rises along the way: ternary search for its minimum.
  double low = 0.0, high = 1.0;
  for (int step = 0; step < 45; ++step) {
    const double third = (high - low) / 3.0;
    if (gap(low + third) < gap(high - third))
      high -= third;
    else
      low += third;
  }
  const Vec3 crossing = 0.5 * (low + high) * end;
  ASSERT_LT(gap(0.5 * (low + high)), 0.1 * kDegenerate_ry);
  const BandPath there{.corners = {crossing, crossing}, .points_per_segment = 2};
  const auto at_gamma = static_cast<std::size_t>(c.field.zone.rotation_to({}).irreducible),
             at_end = static_cast<std::size_t>(c.field.zone.rotation_to(end).irreducible);
  const StatesAt mixed = disordered(c.states);
  for (const bool from_below : {true, false}) {
    SCOPED_TRACE(from_below ? "from below" : "from above");
    const int begin = from_below ? 0 : 5, n = from_below ? 5 : 3;
    if (!from_below) c.field.n_occupied_of_spin = {8};
    const Table all = c.energies(begin + n), energy(all.begin() + begin, all.end());
    Table correction(energy.size(), std::vector<double>(c.field.waves.k.size()));
    // The correction belongs to Γ2', or to Δ2'.
    if (from_below)
      correction[4][at_gamma] = 1.0;
    else
      correction[0][at_end] = 1.0;
    const std::size_t row = from_below ? 4 : 0;
    for (int turn = 0; turn < 5; ++turn) {
      const CharacterBands bands =
          bands_by_character(c.field, {0, begin, n, energy, correction}, there, mixed, c.silent);
      for (std::size_t i = 0; i < 2; ++i) {
        const double found = bands.corrected_ev[row][i] - bands.mean_field.energy_ev[row][i];
        EXPECT_LT(std::min(std::abs(found), std::abs(found - 1.0)), 5e-3) << found;
      }
    }
  }
}

}  // namespace
}  // namespace quasi::gw
