#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/gw/support/local_crystal.hpp"
#include "tests/gw/support/reference_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/screening/coulomb/coulomb_interaction.hpp"

// Truncated interactions against integrals that are known.
namespace quasi::gw {
namespace {

using test::cell;

Crystal orthogonal(double a, double b, double c) { return test::orthogonal_cell(a, b, c); }

/// Energy (1/Ω) Σ_G v(G) |ρ(G)|² of Gaussian charges q_i of width σ at r_i: Σ_ij q_i q_j ∫∫
/// 2/|r−r'|.
struct Charge {
  double q;
  Vec3 at;
};
double energy(const Crystal& crystal, const CoulombInteraction& v, double sigma,
              const std::vector<Charge>& charges) {
  const GSphere sphere = make_g_sphere(
      crystal.bdot, {}, 12.0 / (sigma * sigma));  // e^{−σ²G²} < 1e-5 beyond, where v is small
  double sum = 0.0;
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : sum)
  for (std::size_t i = 0; i < sphere.g.size(); ++i) {
    const Vec3 k = to_cartesian(crystal.bvec, crystal.blat_per_bohr, to_real(sphere.g[i]));
    std::complex<double> rho;
    for (const Charge& c : charges)
      rho += c.q * std::polar(std::exp(-0.5 * sigma * sigma * sphere.kinetic_ry[i]), -dot(k, c.at));
    if (std::norm(rho) > 1e-20) sum += v.plain({}, sphere.g[i]) * std::norm(rho);
  }
  return sum / crystal.volume_bohr3;
}
/// Two isolated Gaussians: 2 erf(d/2σ)/d.
double pair_energy(double sigma, double d) {
  return d == 0.0 ? 2.0 / (std::sqrt(kPi) * sigma) : 2.0 * std::erf(d / (2.0 * sigma)) / d;
}

CoulombInteraction make(const Crystal& crystal, Truncation truncation, double radius = 0.0) {
  return CoulombInteraction(crystal, {1, 1, 1},
                            {.truncation = truncation, .sphere_radius_bohr = radius});
}

// A molecule knows no images: energies are those of isolated charges, whatever the cell. 2e-5: the
// sum's end at e^−12 is what is left.
TEST(Truncation, BoxAndSphereSeeNoImages) {
  const double sigma = 0.5;
  const std::vector<Charge> charges{{1.0, {0.1, 0.05, -0.1}}, {-0.4, {-0.1, 0.1, 0.05}}};
  double expected = 0.0;
  for (const Charge& a : charges)
    for (const Charge& b : charges) {
      const Vec3 d = a.at - b.at;
      expected += a.q * b.q * pair_energy(sigma, std::sqrt(dot(d, d)));
    }
  const Mat3 fcc{{{-5, 0, 5}, {0, 5, 5}, {-5, 5, 0}}};
  for (const Crystal& crystal : {orthogonal(7.2, 7.6, 8), cell(fcc)})
    EXPECT_NEAR(energy(crystal, make(crystal, Truncation::kBox), sigma, charges), expected, 2e-5);
  EXPECT_NEAR(energy(orthogonal(10, 10, 10), make(orthogonal(10, 10, 10), Truncation::kSphere, 5.0),
                     sigma, charges),
              expected, 2e-5);
  // Without truncation the images are there.
  const Crystal cube = orthogonal(9, 9, 9);
  EXPECT_GT(std::abs(energy(cube, make(cube, Truncation::kSphere, 2.0), sigma, charges) - expected),
            1e-3);
}

// v(0) = ∫ 2/r over the cell. Cube of edge L: 2L²·(3 ln((√3+1)/(√3−1)) − π/2)/… in closed
// form 2.3800774 L²; sphere 4πR².
TEST(Truncation, ValuesAtZero) {
  const double unit_cube =
      3.0 * std::log((std::sqrt(3.0) + 1.0) / (std::sqrt(3.0) - 1.0)) / 2.0 * 2.0 / 2.0 * 2.0 -
      kPi / 2.0;
  EXPECT_NEAR(unit_cube, 2.380077, 1e-6);
  const Crystal cube = orthogonal(7, 7, 7);
  EXPECT_NEAR(make(cube, Truncation::kBox).plain({}, {}), 2.0 * unit_cube * 49.0, 1e-8);
  EXPECT_NEAR(make(cube, Truncation::kSphere, 3.0).plain({}, {}), 4.0 * kPi * 9.0, 1e-10);
  EXPECT_NEAR(make(cube, Truncation::kSphere, 3.0).plain({}, {1, 0, 0}),
              8.0 * kPi / cube.bdot[0][0] * (1.0 - std::cos(3.0 * std::sqrt(cube.bdot[0][0]))),
              1e-10);
}

// Two sheets, or rods, of opposite charge: neutral, so the energy is finite, and no multiple of the
// vacuum changes it.
TEST(Truncation, SlabAndWireDoNotDependOnTheVacuum) {
  const double sigma = 0.5;
  const std::vector<Charge> along_z{{1.0, {0.1, 0, 0.6}}, {-1.0, {-0.2, 0.3, -0.6}}},
      along_x{{1.0, {0.6, 0.1, 0}}, {-1.0, {-0.6, -0.2, 0.2}}};
  const auto slab = [&](double vacuum, Truncation t) {
    const Crystal c = orthogonal(4, 5, vacuum);
    return energy(c, make(c, t), sigma, along_z);
  };
  EXPECT_NEAR(slab(11, Truncation::kSlab), slab(17, Truncation::kSlab), 1e-6);
  const auto wire = [&](double a, double b) {
    const Crystal c = orthogonal(a, b, 4);
    return energy(c, make(c, Truncation::kWire), sigma, along_x);
  };
  EXPECT_NEAR(wire(9, 10), wire(11, 9), 1e-5);
  const Crystal hexagonal = cell({{{10, 0, 0}, {-5, 10 * std::sqrt(0.75), 0}, {0, 0, 4}}});
  EXPECT_NEAR(energy(hexagonal, make(hexagonal, Truncation::kWire), sigma, along_x), wire(9, 10),
              1e-5);
}

// A slab repeated far apart in its plane, a wire far apart along its axis, and a box agree for one
// neutral pair to the dipoles' rest.
TEST(Truncation, SlabTendsToTheBox) {
  const double sigma = 0.5;
  const std::vector<Charge> pair{{1.0, {0, 0, 0.4}}, {-1.0, {0, 0, -0.4}}};
  const double isolated = 2.0 * (pair_energy(sigma, 0.0) - pair_energy(sigma, 0.8));
  for (const double width : {10.0, 20.0}) {
    const Crystal c = orthogonal(width, width, 10);
    // Dipoles p side by side: 2·p²/d³ each pair, 9.03/width³ summed over the square lattice.
    EXPECT_NEAR(energy(c, make(c, Truncation::kSlab), sigma, pair) - isolated,
                2.0 * 0.64 * 9.0336 / std::pow(width, 3), 0.1 * 0.64 / std::pow(width, 3));
  }
}

TEST(Truncation, SphereTendsToThreeDimensions) {
  // 1 − cos kR averaged over one period of R is 1, whatever R.
  const Crystal c = orthogonal(40, 40, 40);
  const IVec3 g{3, 2, 5};
  const double period = 2.0 * kPi / std::sqrt(metric_dot(c.bdot, to_real(g), to_real(g)));
  double mean = 0.0;
  for (int i = 0; i < 16; ++i)
    mean += make(c, Truncation::kSphere, 10.0 + period * i / 16).plain({}, g) / 16.0;
  EXPECT_NEAR(mean, make(c, Truncation::kNone).plain({}, g), 1e-10 * mean);
}

// The average of a slab's interaction at q → 0, 8π⟨(1 − e^{−k z})/k²⟩, by an independent rule in
// polar coordinates.
TEST(Truncation, SlabAverageAtZero) {
  const Crystal c = orthogonal(5, 5, 16);
  const CoulombInteraction v(c, {4, 4, 1}, {.truncation = Truncation::kSlab});
  const double half = kPi / 5 / 4;  // half an edge of the mini-zone
  double sum = 0.0;
  constexpr int kAngles = 400, kRadii = 400;
  for (int i = 0; i < kAngles; ++i) {
    const double phi = kPi / 4 * (i + 0.5) / kAngles, edge = half / std::cos(phi);
    for (int j = 0; j < kRadii; ++j) {
      const double k = edge * (j + 0.5) / kRadii;
      sum += 8.0 * kPi / (k * k) * (1.0 - std::exp(-8.0 * k)) * k * (edge / kRadii) *
             (kPi / 4 / kAngles);
    }
  }
  EXPECT_NEAR(v.averaged({}, {}), 8.0 * sum / (4.0 * half * half), 1e-5 * v.averaged({}, {}));
  // W's head: between that of no screening and of ε(q₀), and v̄ itself where nothing screens.
  EXPECT_NEAR(v.head_at_zero(1.0, {0.001, 0, 0}).real(), 1.0, 1e-12);
  const double head = v.head_at_zero(0.98, {0.001, 0, 0}).real();
  EXPECT_LT(head, 0.98);
  EXPECT_GT(head, 0.0);
}

TEST(Truncation, WireAverageAtZero) {
  const Crystal c = orthogonal(10, 11, 5);
  const CoulombInteraction v(c, {1, 1, 6}, {.truncation = Truncation::kWire});
  double sum = 0.0;
  constexpr int kPoints = 4000;
  for (int i = 0; i < kPoints; ++i) {
    const double u = (i + 0.5) / kPoints;  // k = u² of the half width: the logarithm at 0 is spread
    sum += 2.0 * u / kPoints * v.plain({0, 0, u * u * 0.5 / 6}, {});
  }
  EXPECT_NEAR(v.averaged({}, {}), sum, 1e-5 * sum);
}

TEST(Truncation, GridsAndCellsThatDoNotFitAreRefused) {
  const Crystal cube = orthogonal(8, 8, 8), skewed = cell({{{8, 0, 0}, {0, 8, 0}, {1, 0, 8}}});
  EXPECT_THROW(CoulombInteraction(cube, {2, 2, 2}, {.truncation = Truncation::kSlab}),
               InvalidInput);
  EXPECT_THROW(CoulombInteraction(cube, {2, 1, 1}, {.truncation = Truncation::kWire}),
               InvalidInput);
  EXPECT_THROW(CoulombInteraction(cube, {1, 1, 2}, {.truncation = Truncation::kBox}), InvalidInput);
  EXPECT_THROW(CoulombInteraction(skewed, {2, 2, 1}, {.truncation = Truncation::kSlab}),
               InvalidInput);
  EXPECT_THROW(make(cube, Truncation::kSphere, 4.5), InvalidInput);
  EXPECT_NO_THROW(make(cube, Truncation::kSphere, 4.0));
}

/// One electron pair in a Gaussian well. ψ ≈ e^{−0.35 r²} lies within half a cell, and is complete
/// to 1e-3 at 10 Ry.
MeanField well(double edge, double cutoff_ry, int bands) {
  return test::local_crystal({.cell = test::orthogonal_cell(edge, edge, edge),
                              .depth_ry = 4.0,
                              .width_bohr = 2.0,
                              .cutoff_ry = cutoff_ry,
                              .bands = bands});
}

// Through the whole job: exchange of a molecule by box and sphere, in two cells, is one number to
// what its tail leaves: 1.2 and 0.4 % of the charge lie outside half of these cells, and a part in
// a thousand of the pairs is farther apart than the sphere's radius.
TEST(Truncation, AMoleculesExchangeDoesNotDependOnTheCell) {
  quasi::test::TemporaryDirectory directory;
  const auto exchange = [&](double edge, const std::string& coulomb) {
    const MeanField field = well(edge, 10.0, 12);
    write_wavefunctions(directory.path() / "WFN", field.waves);
    write_field(directory.path() / "RHO", field.density);
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    const Deck deck = parse_deck(
        "[meanfield]\nwfn = \"WFN\"\nrho = \"RHO\"\n[epsilon]\ncutoff_ry = 3.0\n[sigma]\nmethod = "
        "\"cohsex\"\nbare_cutoff_ry = 40.0\n"
        "band_max = 1\n[coulomb]\nmax_charge_outside = 0.02\n" +
            coulomb,
        {}, "test", directory.path());
    return run_calculation(deck, *kernels, std::int64_t{1} << 30, silent).quasiparticles.at(0);
  };
  const auto box_small = exchange(10.0, "truncation = \"box\"\n"),
             box_large = exchange(11.5, "truncation = \"box\"\n");
  const auto sphere = exchange(11.5, "truncation = \"sphere\"\nradius_bohr = 5.75\n");
  EXPECT_NEAR(box_small.x_ev, box_large.x_ev, 2.5e-2);
  EXPECT_NEAR(sphere.x_ev, box_large.x_ev, 8e-3);
  EXPECT_LT(box_large.x_ev, -5.0);
  EXPECT_LT(box_large.sx_ev + box_large.ch_ev, 0.0);
  EXPECT_THROW(exchange(4.0, "truncation = \"box\"\n"), InvalidInput);  // the charge does not fit
}

}  // namespace
}  // namespace quasi::gw
