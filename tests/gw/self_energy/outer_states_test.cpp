// Σ at k-points off the grid: states of WFN_outer, ε⁻¹ of WFN.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "tests/gw/support/small_silicon.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/screening/sub_grid.hpp"

namespace quasi::gw {
namespace {

EmpiricalCrystal crystal_on(int n) {
  EmpiricalCrystal crystal = test::SmallSilicon::small_crystal();
  crystal.k_grid = {n, n, n};
  return crystal;
}

/// The points k + grid of `fine` as a list of its own, unfolded, without symmetry.
Wavefunctions states_on_shifted_grid(const MeanField& fine, const Vec3& k, const IVec3& grid) {
  Wavefunctions w;
  w.header = fine.waves.header;
  const SymmetryOperation identity{.rotation = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
                                   .translation = {}};
  w.header.crystal.symmetries = {identity};
  w.n_bands = fine.waves.n_bands;
  w.wavefunction_cutoff_ry = fine.waves.wavefunction_cutoff_ry;
  w.k_grid = grid;
  for (int i = 0; i < 3; ++i) w.k_shift[i] = k[i] * grid[i];
  for (int i = 0; i < grid[0]; ++i)
    for (int j = 0; j < grid[1]; ++j)
      for (int l = 0; l < grid[2]; ++l) {
        const Vec3 point = k + Vec3{1.0 * i / grid[0], 1.0 * j / grid[1], 1.0 * l / grid[2]};
        const Rotation rotation = fine.zone.rotation_to(point);
        RotatedWaves rotated =
            rotated_waves(fine.waves, fine.zone.operations(), rotation, 0, 0, w.n_bands);
        w.k.push_back(point);
        w.weight.push_back(1.0 / (grid[0] * grid[1] * grid[2]));
        w.waves.push_back(
            {rotated.g,
             {std::vector<Cplx>(rotated.coefficients.data,
                                rotated.coefficients.data + rotated.coefficients.size())}});
        w.first_occupied.push_back(1);
        w.last_occupied.push_back(fine.n_occupied);
        for (int n = 0; n < w.n_bands; ++n) {
          w.energy_ry.push_back(fine.waves.energy(0, rotation.irreducible, n));
          w.occupation.push_back(n < fine.n_occupied ? 1.0 : 0.0);
        }
      }
  return w;
}

SigmaOptions options_at(const MeanField& field, int k_index) {
  SigmaOptions o{.bands = band_count_without_split(field.waves, 16, 5, "bands"),
                 .bare_cutoff_ry = 6.0,
                 .screened_cutoff_ry = 3.0,
                 .band_min = 1,
                 .band_max = 8,
                 .kpoints = {k_index}};
  o.band_max = band_count_without_split(field.waves, 8, 1, "band_max", o.kpoints);
  o.slope = true;
  return o;
}

// The states of WFN itself as WFN_outer: the same sums, so the same Σ to rounding, at every k.
TEST(OuterStates, OnTheGridTheyGiveWhatTheGridGives) {
  test::SmallSilicon silicon;
  const MeanField outer = make_outer_mean_field(silicon.field, silicon.field.waves);
  const SigmaOptions o = silicon.options();
  const auto own = silicon.sigma(o), other = silicon.sigma(outer, silicon.epsilon, o);
  ASSERT_EQ(own.size(), other.size());
  for (std::size_t i = 0; i < own.size(); ++i)
    for (std::size_t l = 0; l < own[i].x_ry.size(); ++l) {
      EXPECT_NEAR(own[i].x_ry[l], other[i].x_ry[l], 1e-12);
      EXPECT_NEAR(std::abs(own[i].ch_ry[0][l] + own[i].sx_ry[0][l] - other[i].ch_ry[0][l] -
                           other[i].sx_ry[0][l]),
                  0.0, 1e-12);
    }
}

// Half-way between the points of the 2×2×2 grid that ε⁻¹ is on. Exchange against a plain triple sum
// over q, bands and plane waves; Σ_c at two points that an operation of the crystal maps onto each
// other, whose lists share no point: equal, as the crystal is.
TEST(OuterStates, OffTheGridAgainstADirectSumAndUnderRotation) {
  test::SmallSilicon silicon;  // 2×2×2, ε⁻¹
  const MeanField fine = silicon.make(crystal_on(4));
  const IVec3 grid{2, 2, 2};
  std::vector<SelfEnergyAtK> found;
  std::vector<std::pair<int, int>> groups;
  for (const Vec3& k : {Vec3{0.25, 0.0, 0.0}, Vec3{0.0, 0.0, 0.25}}) {
    const MeanField outer =
        make_outer_mean_field(silicon.field, states_on_shifted_grid(fine, k, grid));
    const SigmaOptions o = options_at(outer, 0);
    found.push_back(silicon.sigma(outer, silicon.epsilon, o)[0]);
    const int n_l = o.band_max;
    std::vector<double> x(static_cast<std::size_t>(n_l));
    const KPointWaves& at_k = outer.waves.waves[0];
    std::map<IVec3, std::size_t> place;
    for (std::size_t i = 0; i < at_k.g.size(); ++i) place[at_k.g[i]] = i;
    for (const ZonePoint& q : silicon.field.zone.points()) {
      const GSphere bare = make_g_sphere(silicon.field.crystal().bdot, q.k, o.bare_cutoff_ry);
      const Rotation rotation = outer.zone.rotation_to(k - q.k);
      const RotatedWaves inner =
          rotated_waves(outer.waves, outer.zone.operations(), rotation, 0, 0, outer.n_occupied);
      for (std::int64_t g = 0; g < bare.size(); ++g) {
        const double v = silicon.coulomb.averaged(q.k, bare.g[static_cast<std::size_t>(g)]);
        for (int l = 0; l < n_l; ++l)
          for (int n = 0; n < outer.n_occupied; ++n) {
            Cplx m;
            for (std::size_t p = 0; p < inner.g.size(); ++p) {
              const auto there = place.find(inner.g[p] + bare.g[static_cast<std::size_t>(g)]);
              if (there == place.end()) continue;
              m += std::conj(at_k.coefficients[0][static_cast<std::size_t>(l) * at_k.g.size() +
                                                  there->second]) *
                   inner.coefficients(n, p);
            }
            x[static_cast<std::size_t>(l)] -= std::norm(m) * v / silicon.field.zone_volume_bohr3();
          }
      }
    }
    // Averages over multiplets: the wedge of q gives those alone.
    groups = multiplets(outer.waves, 0, 0, 0, n_l);
    for (const auto& [begin, end] : groups) {
      double direct = 0.0, sum = 0.0;
      for (int l = begin; l < end; ++l) {
        direct += x[static_cast<std::size_t>(l)];
        sum += found.back().x_ry[static_cast<std::size_t>(l)];
      }
      EXPECT_NEAR(sum, direct, 1e-9 * (end - begin));
    }
  }
  for (const auto& [begin, end] : groups) {
    double x = 0.0;
    Cplx c;
    for (int l = begin; l < end; ++l) {
      const auto at = static_cast<std::size_t>(l);
      x += found[0].x_ry[at] - found[1].x_ry[at];
      c += found[0].ch_ry[0][at] + found[0].sx_ry[0][at] - found[1].ch_ry[0][at] -
           found[1].sx_ry[0][at];
    }
    EXPECT_NEAR(x, 0.0, 1e-9);
    EXPECT_NEAR(std::abs(c), 0.0, 1e-9);
  }
}

// Σ and χ take any list of states with energies and norms: the highest band as two parts aψ and bψ
// with a² + b² = 1 at its energy, as stochastic vectors of a slice would stand for it, changes
// neither ε⁻¹ nor Σ; a² + b² = 2 does.
TEST(StatesOfAnyNorm, PartsOfABandStandForIt) {
  test::SmallSilicon silicon;
  const auto parts_of_last = [&](double a, double b) {
    MeanField field = silicon.make(crystal_on(2));
    Wavefunctions& w = field.waves;
    const auto n = static_cast<std::size_t>(w.n_bands);
    std::vector<double> energy, occupation;
    for (std::size_t ik = 0; ik < w.k.size(); ++ik) {
      energy.insert(energy.end(), w.energy_ry.begin() + static_cast<std::ptrdiff_t>(ik * n),
                    w.energy_ry.begin() + static_cast<std::ptrdiff_t>((ik + 1) * n));
      energy.push_back(energy.back());
      occupation.insert(occupation.end(),
                        w.occupation.begin() + static_cast<std::ptrdiff_t>(ik * n),
                        w.occupation.begin() + static_cast<std::ptrdiff_t>((ik + 1) * n));
      occupation.push_back(0.0);
      std::vector<Cplx>& c = w.waves[ik].coefficients[0];
      const std::size_t n_pw = w.waves[ik].g.size();
      for (std::size_t i = 0; i < n_pw; ++i) c.push_back(b * c[(n - 1) * n_pw + i]);
      for (std::size_t i = 0; i < n_pw; ++i) c[(n - 1) * n_pw + i] *= a;
    }
    w.energy_ry = energy;
    w.occupation = occupation;
    ++w.n_bands;
    return field;
  };
  const auto solve = [&](const MeanField& field) {
    SilentProgress silent;
    std::vector<DielectricMatrix> epsilon;
    for (const Vec3& q : screening_points(field))
      epsilon.push_back(dielectric_matrix(field, q,
                                          {.epsilon_cutoff_ry = 3.0, .bands = field.waves.n_bands},
                                          silicon.coulomb, *silicon.kernels, silent));
    SigmaOptions o = silicon.options();
    o.bands = field.waves.n_bands;
    return std::pair(epsilon, silicon.sigma(field, epsilon, o));
  };
  const auto [epsilon, sigma] = solve(silicon.field);
  const auto [same_epsilon, same_sigma] = solve(parts_of_last(0.6, 0.8));
  const auto [other_epsilon, other_sigma] = solve(parts_of_last(1.0, 1.0));
  double moved = 0.0;
  for (std::size_t iq = 0; iq < epsilon.size(); ++iq)
    for (std::size_t i = 0; i < epsilon[iq].inverse[0].size(); ++i) {
      ASSERT_LE(std::abs(epsilon[iq].inverse[0][i] - same_epsilon[iq].inverse[0][i]), 1e-12);
      moved =
          std::max(moved, std::abs(epsilon[iq].inverse[0][i] - other_epsilon[iq].inverse[0][i]));
    }
  EXPECT_GT(moved, 1e-6);
  for (std::size_t i = 0; i < sigma.size(); ++i)
    for (std::size_t l = 0; l < sigma[i].x_ry.size(); ++l) {
      EXPECT_NEAR(sigma[i].x_ry[l], same_sigma[i].x_ry[l], 1e-12);
      EXPECT_NEAR(std::abs(sigma[i].ch_ry[0][l] + sigma[i].sx_ry[0][l] - same_sigma[i].ch_ry[0][l] -
                           same_sigma[i].sx_ry[0][l]),
                  0.0, 1e-11);
    }
}

// From the deck, with files: meanfield.wfn_outer, states asked for by their own k, eps and Σ in one
// job.
TEST(OuterStates, AJobTakesThemFromAFile) {
  quasi::test::TemporaryDirectory directory;
  test::SmallSilicon silicon;
  EmpiricalCrystal with_states = crystal_on(2);
  with_states.by_velocity = false;
  const MeanField made = silicon.make(with_states), fine = silicon.make(crystal_on(4));
  const Vec3 k{0.25, 0.0, 0.0};
  write_wavefunctions(directory.path() / "WFN", made.waves);
  write_wavefunctions(directory.path() / "WFNq", *made.shifted);
  write_field(directory.path() / "RHO", made.density);
  Wavefunctions outer = states_on_shifted_grid(fine, k, {2, 2, 2});
  write_wavefunctions(directory.path() / "WFN_outer", outer);
  const std::string deck =
      "kind = \"gw\"\n[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\nrho = \"RHO\"\nwfn_outer = "
      "\"WFN_outer\"\n[epsilon]\ncutoff_ry = 3.0\nbands = 14\n"
      "[sigma]\nbands = 14\nkpoints = [[0.25, 0.0, 0.0]]\nband_max = 6\n";
  const auto solve = [&](const std::string& text) {
    SilentProgress silent;
    return run_calculation(parse_deck(text, {}, "test", directory.path()), *silicon.kernels,
                           std::int64_t{1} << 30, silent);
  };
  const Calculation run = solve(deck);
  ASSERT_FALSE(run.quasiparticles.empty());
  for (const Quasiparticle& qp : run.quasiparticles) {
    EXPECT_NEAR(qp.k[0], 0.25, 1e-12);
    EXPECT_NEAR(qp.mean_field_ev, outer.energy(0, 0, qp.band - 1) * kRydberg_ev, 1e-9);
    EXPECT_LT(qp.x_ev, 0.0);
  }
  // A point of WFN is not among those of WFN_outer.
  const auto error_of = [&](const std::string& text) {
    try {
      solve(text);
    } catch (const InvalidInput& failure) {
      return std::string(failure.what());
    }
    return std::string("none");
  };
  std::string wrong = deck;
  wrong.replace(wrong.find("[0.25, 0.0, 0.0]"), 16, "[0.0, 0.0, 0.0] ");
  EXPECT_NE(error_of(wrong).find("sigma.kpoints"), std::string::npos) << error_of(wrong);
  outer.k.pop_back();
  outer.waves.pop_back();
  outer.weight.pop_back();
  outer.first_occupied.pop_back();
  outer.last_occupied.pop_back();
  outer.energy_ry.resize(outer.k.size() * static_cast<std::size_t>(outer.n_bands));
  outer.occupation.resize(outer.energy_ry.size());
  write_wavefunctions(directory.path() / "WFN_outer", outer);
  EXPECT_NE(error_of(deck).find("WFN_outer"), std::string::npos) << error_of(deck);
}

}  // namespace
}  // namespace quasi::gw
