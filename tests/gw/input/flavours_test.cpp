// The same physics from other inputs: real and complex, binary and HDF5, with and without
// inversion, folded into a supercell.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/gw/support/small_silicon.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/bands/band_interpolation.hpp"
#include "workers/gw/solver/mean_field/density.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

using test::SmallSilicon;

/// X + Σ_c of every outer state at every k, averaged over multiplets, eV.
std::vector<double> sigma_of(SmallSilicon& s, const MeanField& field, const SigmaOptions& o,
                             const std::vector<Cplx>& frequencies = {Cplx{}}) {
  std::vector<double> values;
  const DerivativeRule rule{o.slope ? Derivative::kAnalytic : Derivative::kCentral,
                            0.02 / kRydberg_ev};
  for (const Quasiparticle& qp : quasiparticles(
           field, s.sigma(field, s.screening(field, frequencies), o), {}, o, rule, false))
    values.push_back(qp.sigma_ev);
  return values;
}

void expect_equal(const std::vector<double>& a, const std::vector<double>& b, double tolerance_ev) {
  ASSERT_EQ(a.size(), b.size());
  double worst = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  EXPECT_LT(worst, tolerance_ev);
}

// With inversion about the origin the coefficients are real; written as such, binary or HDF5, they
// give the complex run's energies, and so does the complex HDF5 file (property 15).
TEST(Flavours, RealAndHdf5FilesEqualTheComplexBinaryOne) {
  SmallSilicon s;
  const quasi::test::TemporaryDirectory directory;
  const auto path = [&](const char* name) { return directory.path() / name; };
  const SigmaOptions o = s.options();
  const auto expected = sigma_of(s, s.field, o);
  for (const bool real : {true, false}) {
    Wavefunctions waves = s.field.waves, shifted = *s.field.shifted;
    for (Wavefunctions* w : {&waves, &shifted}) {
      double imaginary = 0.0;
      for (const KPointWaves& point : w->waves)
        for (const Cplx& c : point.coefficients[0])
          imaginary = std::max(imaginary, std::abs(c.imag()));
      ASSERT_LT(imaginary, 1e-12);
      w->header.is_real = real;
      w->header.title = real ? "WFN-Real" : "WFN-Complex";
    }
    write_wavefunctions(path("WFN"), waves);
    write_wavefunctions(path("WFNq"), shifted);
    write_wavefunctions_hdf5(path("WFN.h5"), waves);
    write_wavefunctions_hdf5(path("WFNq.h5"), shifted);
    for (const auto& [wfn, wfnq] : {std::pair{"WFN", "WFNq"}, {"WFN.h5", "WFNq.h5"}}) {
      const Wavefunctions back = read_wavefunctions(path(wfn));
      EXPECT_EQ(back.header.is_real, real);
      const MeanField field =
          make_mean_field(back, read_wavefunctions(path(wfnq)), s.field.density);
      expect_equal(sigma_of(s, field, o), expected, 1e-10);
    }
  }
}

// Without inversion about the origin ε⁻¹, ω̃ and M are complex; the energies are those of the
// symmetric setting (silicon), or of any other origin (GaAs, which has no inversion at all): every
// method, 1e-8 eV.
TEST(Flavours, EnergiesDoNotDependOnTheOrigin) {
  for (const char* name : {"silicon", "gaas"}) {
    EmpiricalCrystal crystal = SmallSilicon::small_crystal();
    crystal.name = name;
    SmallSilicon centred(crystal);
    crystal.origin_shift = {0.13, 0.07, -0.21};
    SmallSilicon shifted(crystal);
    double imaginary = 0.0;
    for (const Cplx& value : shifted.epsilon[1].inverse[0])
      imaginary = std::max(imaginary, std::abs(value.imag()));
    EXPECT_GT(imaginary, 1e-2);
    for (const SigmaMethod method : {SigmaMethod::kHybertsenLouie, SigmaMethod::kGodbyNeeds,
                                     SigmaMethod::kCohsex, SigmaMethod::kContour}) {
      SigmaOptions o = centred.options();
      o.method = method;
      std::vector<Cplx> frequencies{Cplx{}};
      if (method == SigmaMethod::kGodbyNeeds) frequencies.push_back({0.0, o.godby_needs_ry});
      if (method == SigmaMethod::kContour) {
        o.slope = false;
        o.offsets_ry = DerivativeRule{Derivative::kCentral, 0.02 / kRydberg_ev}.offsets_ry();
        o.contour.imaginary_ry = imaginary_grid(10, 2.0);
        for (int i = 0; i <= 60; ++i) o.contour.real_ry.push_back(0.04 * i);
        frequencies = o.contour.frequencies_ry(0.02, 1e-5);
      }
      SCOPED_TRACE(std::string(name) + " method " + std::to_string(static_cast<int>(method)));
      expect_equal(sigma_of(shifted, shifted.field, o, frequencies),
                   sigma_of(centred, centred.field, o, frequencies), 1e-8);
    }
  }
}

/// The states of all zone points of a primitive cell as those of the supercell that folds them onto
/// Γ: k + G becomes a reciprocal vector of the supercell.
Wavefunctions folded_waves(const MeanField& field, const Wavefunctions& from,
                           const BrillouinZone& zone, const Vec3& shift, int n_bands,
                           int n_occupied, const MeanFieldHeader& header) {
  const IVec3& grid = field.waves.k_grid;
  Wavefunctions w;
  w.header = header;
  w.wavefunction_cutoff_ry = from.wavefunction_cutoff_ry;
  w.k_grid = {1, 1, 1};
  w.k = {{shift[0] * grid[0], shift[1] * grid[1], shift[2] * grid[2]}};
  w.weight = {1.0};
  KPointWaves all;
  struct State {
    double energy;
    bool occupied;
    std::size_t first;
    std::vector<Cplx> c;
  };
  std::vector<State> states;
  for (const ZonePoint& point : field.zone.points()) {
    const Rotation rotation = zone.rotation_to(point.k + shift);
    const RotatedWaves waves = rotated_waves(from, zone.operations(), rotation, 0, 0, n_bands);
    const std::size_t first = all.g.size(), n_pw = waves.g.size();
    for (const IVec3& g : waves.g) {
      IVec3 folded{};
      for (int i = 0; i < 3; ++i)
        folded[i] = static_cast<int>(std::lround((point.k[i] + g[i]) * grid[i]));
      all.g.push_back(folded);
    }
    for (int n = 0; n < n_bands; ++n)
      states.push_back({from.energy(0, rotation.irreducible, n),
                        n < n_occupied,
                        first,
                        {waves.coefficients.data + static_cast<std::size_t>(n) * n_pw,
                         waves.coefficients.data + static_cast<std::size_t>(n + 1) * n_pw}});
  }
  std::stable_sort(states.begin(), states.end(),
                   [](const State& a, const State& b) { return a.energy < b.energy; });
  w.n_bands = static_cast<int>(states.size());
  all.coefficients.assign(1, std::vector<Cplx>(states.size() * all.g.size()));
  int n_v = 0;
  for (std::size_t n = 0; n < states.size(); ++n) {
    w.energy_ry.push_back(states[n].energy);
    w.occupation.push_back(states[n].occupied ? 1.0 : 0.0);
    n_v += states[n].occupied ? 1 : 0;
    std::copy(states[n].c.begin(), states[n].c.end(),
              all.coefficients[0].begin() +
                  static_cast<std::ptrdiff_t>(n * all.g.size() + states[n].first));
  }
  w.first_occupied = {1};
  w.last_occupied = {n_v};
  w.waves.push_back(std::move(all));
  return w;
}

// Property 16, the strongest end-to-end check of the unfolding: a 2×2×2 supercell at Γ has the Σ of
// the primitive cell on the 2×2×2 grid, with symmetry, stars, phases and umklapps there and nothing
// of the kind here. q₀ = 1e-5, because the supercell shifts all its q by it.
TEST(Flavours, SupercellAtGammaEqualsThePrimitiveGrid) {
  EmpiricalCrystal crystal = SmallSilicon::small_crystal();
  crystal.wavefunction_cutoff_ry = 5.0;
  crystal.bands =
      14;  // One more than are summed: a multiplet that the last one splits would be seen.
  crystal.q0 = {1e-5, 0.0, 0.0};
  SmallSilicon primitive(crystal);
  EmpiricalCrystal large = crystal;
  large.repeats = {2, 2, 2};
  large.k_grid = {1, 1, 1};
  large.bands = 40;
  MeanField header_only = primitive.make(large);
  const MeanField& p = primitive.field;
  // The cell's point operations are the supercell's too (integer matrices alike, translations in
  // its own units): the body of ε⁻¹ at q₀ depends on the direction of q₀ and is averaged over them.
  std::vector<SymmetryOperation> operations = p.crystal().symmetries;
  for (SymmetryOperation& s : operations) s.translation = 0.5 * s.translation;
  header_only.waves.header.crystal.symmetries = operations;
  header_only.density.header.crystal.symmetries = operations;
  const int n_bands = band_count_without_split(p.waves, 13, 5, "bands");
  PlaneWaveField density = header_only.density;
  density.values.assign(1, std::vector<Cplx>(density.header.g.size()));
  const GIndex index(density.header.g);
  for (std::size_t i = 0; i < p.density.header.g.size(); ++i) {
    const IVec3& g = p.density.header.g[i];
    density.values[0][static_cast<std::size_t>(index.find({2 * g[0], 2 * g[1], 2 * g[2]}))] =
        8.0 * p.density.values[0][i];
  }
  const MeanField folded = make_mean_field(
      folded_waves(p, p.waves, p.zone, {}, n_bands, 4, header_only.waves.header),
      folded_waves(p, *p.shifted, *p.shifted_zone, p.q0, 5, 4, header_only.waves.header), density);
  ASSERT_EQ(folded.n_occupied, 32);
  const CoulombInteraction coulomb(folded.crystal(), folded.waves.k_grid, {});
  SilentProgress silent;
  const std::vector<DielectricMatrix> epsilon{dielectric_matrix(
      folded, folded.q0, {.epsilon_cutoff_ry = 3.0, .bands = folded.waves.n_bands}, coulomb,
      *primitive.kernels, silent)};
  std::vector<DielectricMatrix> primitive_epsilon;
  for (const Vec3& q : screening_points(p))
    primitive_epsilon.push_back(dielectric_matrix(p, q,
                                                  {.epsilon_cutoff_ry = 3.0, .bands = n_bands},
                                                  primitive.coulomb, *primitive.kernels, silent));
  EXPECT_NEAR(epsilon[0].inverse[0][0].real(), primitive_epsilon[0].inverse[0][0].real(), 1e-7);

  SigmaOptions o{.bands = folded.waves.n_bands,
                 .bare_cutoff_ry = 5.0,
                 .screened_cutoff_ry = 3.0,
                 .band_min = 1,
                 .band_max = folded.waves.n_bands,
                 .kpoints = {0}};
  o.slope = true;
  const auto super = self_energy(folded, epsilon, o, {coulomb, *primitive.kernels, silent});
  SigmaOptions small = o;
  small.bands = n_bands;
  small.band_max = 8;
  small.kpoints = {0, 1, 2};
  const auto cell = primitive.sigma(p, primitive_epsilon, small);
  // States of one energy are compared by their mean: the supercell gathers whole stars, and the
  // order within is nobody's.
  int compared = 0;
  for (const SelfEnergyAtK& at : cell)
    for (const auto& [begin, end] : multiplets(p.waves, 0, at.k_index, 0, 8)) {
      double mean = 0.0, folded_mean = 0.0;
      int count = 0;
      const double energy = p.waves.energy(0, at.k_index, begin);
      for (int n = begin; n < end; ++n)
        mean += (at.x_ry[static_cast<std::size_t>(n)] + (at.sx_ry[0][static_cast<std::size_t>(n)] +
                                                         at.ch_ry[0][static_cast<std::size_t>(n)])
                                                            .real()) /
                (end - begin);
      for (int n = 0; n < folded.waves.n_bands; ++n) {
        if (std::abs(folded.waves.energy(0, 0, n) - energy) > 1e-8) continue;
        const auto l = static_cast<std::size_t>(n);
        folded_mean += super[0].x_ry[l] + (super[0].sx_ry[0][l] + super[0].ch_ry[0][l]).real();
        ++count;
      }
      ASSERT_GT(count, 0);
      EXPECT_NEAR(folded_mean / count * kRydberg_ev, mean * kRydberg_ev, 1e-4)
          << "k " << at.k_index << " band " << begin + 1;
      ++compared;
    }
  EXPECT_GT(compared, 10);
}

// Property 1: norms and orthogonality after unfolding, and ρ from the occupied states of the full
// zone. Property 2: M at q = G = 0 is δ, and M_nm(k,q;G) = M*_mn(k−q,−q;−G).
TEST(Laws, UnfoldedStatesAndPairProducts) {
  SmallSilicon s;
  const MeanField& f = s.field;
  for (const ZonePoint& point : f.zone.points()) {
    const RotatedWaves w =
        rotated_waves(f.waves, f.zone.operations(), f.zone.rotation_to(point.k), 0, 0, 10);
    const std::size_t n_pw = w.g.size();
    for (std::size_t n = 0; n < 10; ++n)
      for (std::size_t m = 0; m < 10; ++m) {
        Cplx overlap;
        for (std::size_t x = 0; x < n_pw; ++x)
          overlap += std::conj(w.coefficients(n, x)) * w.coefficients(m, x);
        EXPECT_LT(std::abs(overlap - (n == m ? 1.0 : 0.0)), 1e-12);
      }
  }
  const auto rho = summed_density(f.waves, f.zone, {4}, f.density.header.g, *s.kernels);
  for (std::size_t i = 0; i < rho[0].size(); ++i)
    EXPECT_LT(std::abs(rho[0][i] - f.density.values[0][i]), 1e-12);

  const Vec3 k = f.zone.points()[5].k, q = f.zone.points()[3].k;
  const std::vector<IVec3> kept{{0, 0, 0}, {1, 0, 0}, {0, -1, 1}, {1, 1, 1}};
  const auto box = sum_box(f, {{2, 2, 2}});
  const auto products = [&](const Vec3& left, const Vec3& right, bool negative) {
    std::vector<std::int32_t> index;
    for (const IVec3& g : kept) index.push_back(box_position(negative ? -g : g, box));
    PairProductKernels& pairs = s.kernels->pair_products();
    const auto sphere = pairs.load_sphere(box, view<const std::int32_t>(index, kept.size()), {});
    const auto left_bands = load(*s.kernels, waves_at(f, left, 0, 0, 6, box));
    const auto right_bands = load(*s.kernels, waves_at(f, right, 0, 0, 6, box));
    const auto block = pairs.make_block();
    pairs.fill({*left_bands, {0, 6}}, {*right_bands, {0, 6}}, *sphere, *block);
    std::vector<Cplx> m(6 * 6 * kept.size());
    block->read(view<Cplx>(m, 6, 6, kept.size()));
    return m;
  };
  const auto forward = products(k, k - q, false), backward = products(k - q, k, true),
             same = products(k, k, false);
  for (std::size_t n = 0; n < 6; ++n)
    for (std::size_t m = 0; m < 6; ++m) {
      EXPECT_LT(std::abs(same[(n * 6 + m) * kept.size()] - (n == m ? 1.0 : 0.0)), 1e-12);
      for (std::size_t g = 0; g < kept.size(); ++g)
        EXPECT_LT(std::abs(forward[(n * 6 + m) * kept.size() + g] -
                           std::conj(backward[(m * 6 + n) * kept.size() + g])),
                  1e-12);
    }
}

// The interpolant passes through every point of the grid, symmetric copies included, and a band
// that is one star function is itself everywhere.
TEST(BandPaths, PassThroughTheGridAndKeepItsSymmetry) {
  EmpiricalCrystal crystal = SmallSilicon::small_crystal();
  crystal.k_grid = {4, 4, 4};
  SmallSilicon s(crystal);
  const MeanField& f = s.field;
  std::vector<std::vector<double>> energy(6, std::vector<double>(f.waves.k.size()));
  for (int n = 0; n < 6; ++n)
    for (int ik = 0; ik < f.waves.n_k(); ++ik)
      energy[static_cast<std::size_t>(n)][static_cast<std::size_t>(ik)] = f.waves.energy(0, ik, n);
  for (const ZonePoint& point : f.zone.points()) {
    const PathBands path = interpolate_bands(
        f, energy, {.corners = {point.k, point.k + Vec3{0.1, 0.2, 0.3}}, .points_per_segment = 2});
    for (std::size_t n = 0; n < 6; ++n)
      EXPECT_NEAR(path.energy_ev[n][0], energy[n][static_cast<std::size_t>(point.irreducible)],
                  1e-9);
  }
  const PathBands a = interpolate_bands(
      f, energy, {.corners = {{0, 0, 0}, {0.11, 0.23, 0.37}}, .points_per_segment = 3});
  const SymmetryOperation& operation = f.zone.operations().back();
  const PathBands b = interpolate_bands(
      f, energy,
      {.corners = {{0, 0, 0}, multiply(operation.rotation, Vec3{0.11, 0.23, 0.37})},
       .points_per_segment = 3});
  for (std::size_t n = 0; n < 6; ++n)
    for (std::size_t i = 0; i < a.k.size(); ++i)
      EXPECT_NEAR(a.energy_ev[n][i], b.energy_ev[n][i], 1e-9);
  // Between the points: the lowest band of the built-in crystal, which is smooth, at the points of
  // an 8×8×8 grid, against its own H: 0.45 eV of a width of 8 at worst, where bands cross, 0.15 in
  // the mean: the error of a 4×4×4 grid.
  EmpiricalCrystal dense = crystal;
  dense.k_grid = {8, 8, 8};
  dense.bands = 14;
  const MeanField exact = s.make(dense);
  double sum = 0.0;
  for (int ik = 0; ik < exact.waves.n_k(); ++ik) {
    const Vec3& k = exact.waves.k[static_cast<std::size_t>(ik)];
    const PathBands there =
        interpolate_bands(f, energy, {.corners = {k, k}, .points_per_segment = 2});
    const double error =
        std::abs(there.energy_ev[0][0] - exact.waves.energy(0, ik, 0)) * kRydberg_ev;
    EXPECT_LT(error, 0.5) << ik;
    sum += error;
  }
  EXPECT_LT(sum / exact.waves.n_k(), 0.15);
}

// Property 5: Σ_c (E_c − E_v)|M_vc(q+G)|² → |q+G|² with all bands and a local potential; what plane
// waves beyond the cut-off would add is below 1 % here. Property 7: with all bands of Γ alone the
// band sum of the static CH is its closed form.
TEST(Laws, SumRulesWithAllBands) {
  EmpiricalCrystal crystal;
  crystal.wavefunction_cutoff_ry = 9.0;
  crystal.k_grid = {1, 1, 1};
  crystal.bands =
      static_cast<int>(make_g_sphere(SmallSilicon().field.crystal().bdot, {}, 9.0).size());
  SmallSilicon s(crystal);
  const MeanField& f = s.field;
  const std::vector<IVec3> kept{{1, 0, 0}, {0, 1, 1}, {1, 1, 1}};
  const auto box = sum_box(f, kept);
  std::vector<std::int32_t> index;
  for (const IVec3& g : kept) index.push_back(box_position(g, box));
  PairProductKernels& pairs = s.kernels->pair_products();
  const auto sphere = pairs.load_sphere(box, view<const std::int32_t>(index, kept.size()), {});
  const auto bands = load(*s.kernels, waves_at(f, {}, 0, 0, f.waves.n_bands, box));
  const std::int64_t n = f.waves.n_bands;
  const auto block = pairs.make_block();
  pairs.fill({*bands, {0, 4}}, {*bands, {0, n}}, *sphere, *block);
  std::vector<Cplx> m(static_cast<std::size_t>(4 * n) * kept.size());
  block->read(view<Cplx>(m, 4, n, kept.size()));
  for (std::size_t g = 0; g < kept.size(); ++g) {
    const Vec3 at = to_real(kept[g]);
    const double expected = metric_dot(f.crystal().bdot, at, at);
    for (std::size_t v = 0; v < 4; ++v) {
      double sum = 0.0;
      for (std::size_t c = 0; c < static_cast<std::size_t>(n); ++c)
        sum += (f.waves.energy(0, 0, static_cast<int>(c)) -
                f.waves.energy(0, 0, static_cast<int>(v))) *
               std::norm(m[(v * static_cast<std::size_t>(n) + c) * kept.size() + g]);
      EXPECT_NEAR(sum, expected, 0.02 * expected) << v << ' ' << g;
    }
  }
  SigmaOptions o = s.options();
  o.method = SigmaMethod::kCohsex;
  o.slope = false;
  const auto sums = s.sigma(o);
  for (std::size_t l = 0; l < 8; ++l)
    EXPECT_NEAR(sums[0].ch_static_ry[l].real() * kRydberg_ev,
                sums[0].ch_exact_ry[l].real() * kRydberg_ev, 2e-2)
        << l;
}

// Z by the analytic slope, by a central and by a forward difference of the same Σ. Central: h²Σ‴/6
// of 0.02 eV; forward: its error halves with the step. States next to the gap alone: below them Σ
// has the steps of the rule that drops SX near poles.
TEST(Laws, SlopesByThreeRules) {
  test::SmallSilicon s;
  const auto z_by = [&](Derivative kind, double step_ev) {
    const DerivativeRule rule{kind, step_ev / kRydberg_ev};
    SigmaOptions o = s.options();
    o.kpoints = {0};
    o.slope = kind == Derivative::kAnalytic;
    o.offsets_ry = rule.offsets_ry();
    std::vector<double> z;
    for (const Quasiparticle& qp : quasiparticles(s.field, s.sigma(o), {}, o, rule, false))
      if (qp.band >= 2 && qp.band <= 7) z.push_back(qp.z);
    return z;
  };
  const auto exact = z_by(Derivative::kAnalytic, 0.0), central = z_by(Derivative::kCentral, 0.02),
             forward = z_by(Derivative::kForward, 0.02), wide = z_by(Derivative::kForward, 0.04);
  ASSERT_EQ(exact.size(), 6u);
  double one = 0.0, two = 0.0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_GT(std::abs(1.0 / exact[i] - 1.0), 0.05) << "a slope of nothing shows nothing";
    EXPECT_NEAR(central[i], exact[i], 2e-5) << i;
    one += std::abs(forward[i] - exact[i]);
    two += std::abs(wide[i] - exact[i]);
  }
  EXPECT_NEAR(two / one, 2.0, 0.1);
}

// Property 8: ω̃ → ∞ everywhere is static COHSEX; Godby–Needs returns both matrices it was fitted
// to; without an invalid mode all policies are one.
TEST(Laws, PlasmonPoleLimits) {
  SmallSilicon s;
  const double frequency_ry = 2.0;
  const auto epsilon = s.screening(s.field, {Cplx{}, Cplx{0.0, frequency_ry}});
  const ScreeningAtQ at = screening_at(s.field, epsilon[1], 3.0, s.coulomb);
  const WingFactors wings = wing_factors(at.epsilon);
  const std::int64_t n = at.sphere.size();
  const PlasmonPoleModel model =
      godby_needs(at.epsilon, n, s.coulomb, wings, InvalidMode::kStatic, frequency_ry);
  const auto zero = screening_part(at.epsilon, 0, n, wings),
             imaginary = screening_part(at.epsilon, 1, n, wings);
  int fitted = 0;
  for (std::size_t i = 0; i < zero.size(); ++i) {
    const double pole = model.pole_ry[i], v = at.coulomb[i % static_cast<std::size_t>(n)];
    if (model.strength[i] == Cplx{} || pole >= kStaticPole_ry) continue;
    const Cplx from_model = 2.0 * model.strength[i] / (pole * v);
    EXPECT_LT(std::abs(from_model - zero[i]), 1e-12);
    EXPECT_LT(std::abs(from_model * pole * pole / (pole * pole + frequency_ry * frequency_ry) -
                       imaginary[i]),
              1e-10);
    ++fitted;
  }
  EXPECT_GT(fitted, 100);

  // An element that does not change up to iω_a has its pole at infinity: it acts statically, and is
  // neither skipped nor invalid.
  DielectricMatrix frozen = at.epsilon;
  frozen.inverse[1] = frozen.inverse[0];
  const PlasmonPoleModel unchanged =
      godby_needs(frozen, n, s.coulomb, wings, InvalidMode::kSkip, frequency_ry);
  EXPECT_EQ(unchanged.invalid, 0);
  for (std::size_t i = 0; i < zero.size(); ++i) {
    EXPECT_EQ(unchanged.pole_ry[i], kStaticPole_ry);
    if (std::abs(zero[i]) < 1e-6) continue;
    const double v = at.coulomb[i % static_cast<std::size_t>(n)];
    EXPECT_LT(std::abs(unchanged.strength[i] / (0.5 * kStaticPole_ry * v) - zero[i]), 1e-14);
  }

  // One element, the head: never invalid.
  const PlasmonPoleModel one =
      hybertsen_louie(s.field, at.epsilon, 1, s.coulomb, wings, InvalidMode::kStatic);
  ASSERT_EQ(one.invalid, 0);
  for (const InvalidMode policy :
       {InvalidMode::kSkip, InvalidMode::kImaginary, InvalidMode::kTwoRydberg}) {
    const PlasmonPoleModel other =
        hybertsen_louie(s.field, at.epsilon, 1, s.coulomb, wings, policy);
    EXPECT_EQ(other.strength, one.strength);
    EXPECT_EQ(other.pole_ry, one.pole_ry);
  }

  // ω̃ → ∞: SX − X = I and CH = −½ I, for one block of products.
  PlasmonPoleModel infinite = model;
  const auto w = screened_matrix(at, 0, wings);
  for (std::size_t i = 0; i < w.size(); ++i) {
    infinite.pole_ry[i] = kStaticPole_ry;
    infinite.strength[i] = 0.5 * w[i] * kStaticPole_ry;
  }
  std::vector<Cplx> m(static_cast<std::size_t>(3 * n));
  for (std::size_t i = 0; i < m.size(); ++i)
    m[i] = std::polar(1.0 / (1.0 + static_cast<double>(i % 7)), 0.3 * static_cast<double>(i));
  const auto block = s.kernels->pair_products().make_block();
  block->load({m.data(), {1, 3, n}});
  const auto poles = s.kernels->pole_sums().load(infinite.view(), {});
  const std::vector<double> x{1.0, -0.2, -3.0}, occupation{1.0, 0.0, 0.0};
  std::vector<Cplx> total(1), sx(1), forms(3);
  poles->add_diagonal(*block, {{x.data(), {1, 3, 1}}, {occupation.data(), {3}}, 1.0},
                      {{total.data(), {1, 1}}, {sx.data(), {1, 1}}});
  block->quadratic_forms(view<const Cplx>(w, n, n), view<Cplx>(forms, 1, 3));
  EXPECT_LT(std::abs(sx[0] - forms[0]), 1e-11 * std::abs(forms[0]));
  EXPECT_LT(std::abs(total[0] - sx[0] + 0.5 * (forms[0] + forms[1] + forms[2])),
            1e-11 * std::abs(forms[0]));
}

}  // namespace
}  // namespace quasi::gw
