#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>

#include "tests/gw/support/silicon_fixture.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw {
namespace {

using test::Deviation;
using test::deviation_at_gamma;
using test::expect_close;
using test::read_sigma_table;

class Silicon : public test::Silicon {};
class SiliconSigma : public test::SiliconSigma {};
class SiliconContour : public test::SiliconContour {};

/// Largest deviation from the stored matrices; elements are matched by G, never by order.
double deviation_from(const std::filesystem::path& path,
                      const std::vector<DielectricMatrix>& ours) {
  const H5Reader file(path);
  const auto components = file.integers("/mf_header/gspace/components");
  const auto q = file.doubles("/eps_header/qpoints/qpts");
  const auto order = file.integers("/eps_header/gspace/gind_eps2rho");
  const auto size = file.integers("/eps_header/gspace/nmtx");
  const std::int64_t edge = file.integer("/eps_header/gspace/nmtx_max");
  const auto n_rho = file.integer("/mf_header/gspace/ng");
  double worst = 0.0;
  for (std::size_t iq = 0; iq < size.size(); ++iq) {
    const DielectricMatrix* mine = nullptr;
    for (const DielectricMatrix& m : ours)
      if (std::abs(m.q[0] - q[3 * iq]) + std::abs(m.q[1] - q[3 * iq + 1]) +
              std::abs(m.q[2] - q[3 * iq + 2]) <
          1e-9)
        mine = &m;
    if (mine == nullptr || mine->size() != size[iq]) return INFINITY;
    const GIndex index(mine->sphere.g);
    std::vector<std::size_t> at;
    for (std::int64_t g = 0; g < size[iq]; ++g) {
      const auto c = static_cast<std::size_t>(
          3 * (order[iq * static_cast<std::size_t>(n_rho) + static_cast<std::size_t>(g)] - 1));
      const std::int32_t found =
          index.find({static_cast<int>(components[c]), static_cast<int>(components[c + 1]),
                      static_cast<int>(components[c + 2])});
      if (found < 0) return INFINITY;
      at.push_back(static_cast<std::size_t>(found));
    }
    const std::int64_t start[] = {static_cast<std::int64_t>(iq), 0, 0, 0, 0, 0};
    const std::int64_t count[] = {1, 1, 1, edge, edge, 2};
    const auto values = file.slab("/mats/matrix", start, count);
    for (std::size_t h = 0; h < at.size(); ++h)
      for (std::size_t g = 0; g < at.size(); ++g) {
        const std::size_t from = 2 * (h * static_cast<std::size_t>(edge) + g);
        const Cplx mine_gh = mine->inverse[0][at[g] * at.size() + at[h]];
        worst = std::max(worst, std::abs(mine_gh - Cplx(values[from], values[from + 1])));
      }
  }
  return worst;
}

// Both programs solve the same linear algebra in double precision on matrices of condition ~25.
TEST_F(Silicon, InverseDielectricMatrixEqualsReferenceElementwise) {
  EXPECT_LT(deviation_from(files_->file("epsmat.h5"), *epsilon_), 1e-10);
}

// The same bound, though wings at q₀ = 0.001 reach 20: no symmetry is used there (see
// polarizability).
TEST_F(Silicon, InverseDielectricMatrixAtGammaEqualsReference) {
  EXPECT_LT(deviation_from(files_->file("eps0mat.h5"), *epsilon_), 1e-10);
}

TEST_F(SiliconSigma, HybertsenLouie) {
  expect_close(
      deviation_at_gamma(*field_, solve(options(), *epsilon_), files_->file("out/sigma_hl30.txt")),
      14);
}

TEST_F(SiliconSigma, StaticRemainder) {
  SigmaOptions o = options();
  o.exact_static_ch = true;
  expect_close(
      deviation_at_gamma(*field_, solve(o, *epsilon_, true), files_->file("out/sigma_hl30_sr.txt")),
      14);
}

TEST_F(SiliconSigma, InvalidModePolicies) {
  for (const auto& [policy, name] : {std::pair{InvalidMode::kSkip, "0"},
                                     {InvalidMode::kImaginary, "1"},
                                     {InvalidMode::kTwoRydberg, "2"}}) {
    SCOPED_TRACE(std::string("policy ") + name);
    SigmaOptions o = options();
    o.invalid = policy;
    const Deviation d =
        deviation_at_gamma(*field_, solve(o, *epsilon_),
                           files_->file(std::string("out/sigma_hl30_inv") + name + ".txt"));
    expect_close(d, d.compared);
    EXPECT_GE(d.compared, 8);
  }
}

TEST_F(SiliconSigma, GodbyNeeds) {
  SilentProgress silent;
  EpsilonOptions with_frequency{.epsilon_cutoff_ry = kEpsilonCutoff_ry, .bands = kBands};
  const double frequency_ry = 27.2114 / kRydberg_ev;
  with_frequency.frequencies_ry.push_back({0.0, frequency_ry});
  std::vector<DielectricMatrix> epsilon;
  for (const Vec3& q : screening_points(*field_))
    epsilon.push_back(dielectric_matrix(*field_, q, with_frequency, *coulomb_, *kernels_, silent));
  SigmaOptions o = options();
  o.method = SigmaMethod::kGodbyNeeds;
  o.godby_needs_ry = frequency_ry;
  expect_close(deviation_at_gamma(*field_, solve(o, epsilon), files_->file("out/sigma_gn30.txt")),
               14);
}

// Values of an independent evaluation with the same inputs and v̄ (the reference's README); 5e-5 eV
// because its average of 1/|q+p| in the wings is not stored and is drawn at random.
TEST_F(SiliconSigma, StaticCohsex) {
  SigmaOptions o = options(8);
  o.method = SigmaMethod::kCohsex;
  o.offsets_ry = {0.0};
  SilentProgress silent;
  const auto sums = self_energy(*field_, *epsilon_, o, {*stored_, *kernels_, silent});
  struct Level {
    int begin, end;
    double sx, partial, exact;
  };
  for (const Level& level :
       {Level{0, 1, 12.943715, -8.953382, -9.332157}, Level{1, 4, 8.965928, -8.627820, -9.864491},
        Level{4, 7, 3.425430, -7.961276, -9.089352}, Level{7, 8, 3.435717, -8.722257, -9.894505}}) {
    Cplx sx, partial, exact;
    for (int n = level.begin; n < level.end; ++n) {
      const auto l = static_cast<std::size_t>(n);
      const double w = kRydberg_ev / (level.end - level.begin);
      sx += w * sums[0].sx_ry[0][l];
      partial += w * sums[0].ch_static_ry[l];
      exact += w * sums[0].ch_exact_ry[l];
    }
    EXPECT_NEAR(sx.real(), level.sx, 5e-5);
    EXPECT_NEAR(partial.real(), level.partial, 5e-5);
    EXPECT_NEAR(exact.real(), level.exact, 5e-5);
    EXPECT_NEAR(exact.imag(), 0.0, 1e-6);
  }
}

// Contour deformation on the reference's grids and rule. Its table has six digits; 2e-4 eV as for
// the poles.
TEST_F(SiliconContour, ContourDeformation) {
  SilentProgress silent;
  const auto sums =
      self_energy(*field_, contour_epsilon(), contour_options(), {*stored_, *kernels_, silent});

  int compared = 0;
  for (const test::ContourRow& row : test::read_contour_table(files_->file("out/sigma_cd30.txt"))) {
    const int band = row.band;
    if (dot(row.k, row.k) > 1e-12 || band > 8) continue;
    Cplx ours_residue, ours_integral;
    for (const auto& [begin, end] : multiplets(field_->waves, 0, 0, 0, 8))
      if (band > begin && band <= end)
        for (int n = begin; n < end; ++n) {
          ours_residue +=
              kRydberg_ev / (end - begin) * sums[0].sx_ry[0][static_cast<std::size_t>(n)];
          ours_integral +=
              kRydberg_ev / (end - begin) * sums[0].ch_ry[0][static_cast<std::size_t>(n)];
        }
    ++compared;
    EXPECT_NEAR(ours_residue.real(), row.residue.real(), 2e-4) << "band " << band;
    EXPECT_NEAR(ours_integral.real(), row.integral.real(), 2e-4) << "band " << band;
    EXPECT_NEAR(ours_residue.imag(), row.residue.imag(), 2e-4) << "band " << band;
  }
  EXPECT_EQ(compared, 8);
}

// With our own average, which is exact and symmetric where the reference's is a random sum: 8 meV
// in X and 5 meV in Σ at Γ, where no representative of q is ambiguous; differences between states 2
// meV. With the reference's rule for the wings, and with our Hermitian W. There E of band 1, 12 eV
// below the gap, lies among the poles E_n − ω̃, where the rule that drops SX is a step in ω̃: 9 meV;
// of band 8 2 meV.
TEST_F(SiliconSigma, DeterministicAverage) {
  for (const WingRule rule : {WingRule::kListedPoint, WingRule::kShortest}) {
    const bool ours = rule == WingRule::kShortest;
    const CoulombInteraction own(field_->crystal(), field_->waves.k_grid, {.wing_rule = rule});
    SigmaOptions o = options(8);
    SilentProgress silent;
    const auto list = quasiparticles(
        *field_, self_energy(*field_, *epsilon_, o, {own, *kernels_, silent}), {}, o, rule_, false);
    EXPECT_LT(deviation_at_gamma(*field_, list, files_->file("out/sigma_hl30.txt")).x, 8e-3);
    double low = INFINITY, high = -INFINITY;
    int compared = 0;
    for (const auto& row : read_sigma_table(files_->file("out/sigma_hl30.txt"))) {
      if (dot(row.k, row.k) > 1e-12 || row.band > 8) continue;
      const double shift =
          list[static_cast<std::size_t>(row.band - 1)].sigma_ev - row.column.at("Sig");
      EXPECT_LT(std::abs(shift), ours && row.band == 1 ? 12e-3 : 5e-3) << "band " << row.band;
      ++compared;
      if (ours && (row.band == 1 || row.band == 8)) continue;
      low = std::min(low, shift);
      high = std::max(high, shift);
    }
    EXPECT_EQ(compared, 8);
    EXPECT_LT(high - low, 2e-3);
  }
}

// All k-points, where most q are rotated from a listed one: 5 meV (README), 1.2 meV on average.
TEST_F(SiliconSigma, EveryKPoint) {
  const CoulombInteraction own(field_->crystal(), field_->waves.k_grid,
                               {.wing_rule = WingRule::kListedPoint});
  SigmaOptions o = options(8);
  o.kpoints = {0, 1, 2, 3, 4, 5, 6, 7};
  SilentProgress silent;
  const auto list = quasiparticles(
      *field_, self_energy(*field_, *epsilon_, o, {own, *kernels_, silent}), {}, o, rule_, false);
  int compared = 0;
  double sum = 0.0;
  for (const auto& row : read_sigma_table(files_->file("out/sigma_hl30.txt")))
    for (const Quasiparticle& qp : list) {
      const Vec3 d = qp.k - row.k;
      if (qp.band != row.band || dot(d, d) > 1e-8) continue;
      const double difference = std::abs(qp.sigma_ev - row.column.at("Sig"));
      EXPECT_LT(difference, 5e-3) << "k " << qp.k_index + 1 << " band " << qp.band;
      EXPECT_NEAR(qp.x_ev, row.column.at("X"), 8e-3);
      sum += difference;
      ++compared;
    }
  EXPECT_EQ(compared, 64);
  EXPECT_LT(sum / compared, 2e-3);
}

// Members of a multiplet have one Σ without being averaged (property 6), because v̄ and W have the
// crystal's symmetry: 1e-11 Ry, where 7e-11 is asked. It was 1e-7 as long as ε⁻¹ at q₀ was averaged
// over the group with v(q₀+G) in it, which has no symmetry.
TEST_F(SiliconSigma, MultipletMembersAgreeWithoutAveraging) {
  const CoulombInteraction own(field_->crystal(), field_->waves.k_grid, {});
  SigmaOptions o = options(8);
  o.reduce_q = false;
  o.offsets_ry = {0.0};
  SilentProgress silent;
  const auto sums = self_energy(*field_, *epsilon_, o, {own, *kernels_, silent});
  for (const auto& [begin, end] : multiplets(field_->waves, 0, 0, 0, 8))
    for (int n = begin + 1; n < end; ++n) {
      const auto a = static_cast<std::size_t>(begin), b = static_cast<std::size_t>(n);
      EXPECT_NEAR(sums[0].x_ry[a], sums[0].x_ry[b], 1e-11);
      EXPECT_NEAR(sums[0].sx_ry[0][a].real() + sums[0].ch_ry[0][a].real(),
                  sums[0].sx_ry[0][b].real() + sums[0].ch_ry[0][b].real(), 1e-11);
    }
}

// The 537 lowest eigenvalues at all eight k (at Γ all there are), against the reference's own
// diagonalisation.
TEST_F(Silicon, EigenvaluesOfTheDenseHamiltonian) {
  Wavefunctions waves = field_->waves;
  SilentProgress silent;
  const PlaneWaveField vsc = read_field(files_->file("VSC"), "VSC");
  const Projectors vkb = read_projectors(files_->file("VKB"));
  replace_by_dense_states(waves, 537, {vsc, vkb}, *kernels_, silent);
  const auto rows = test::read_number_rows(files_->file("out/eigenvalues_full_eV.txt"));
  ASSERT_EQ(rows.size(), waves.k.size());
  for (int ik = 0; ik < waves.n_k(); ++ik) {
    const auto& row = rows[static_cast<std::size_t>(ik)];
    ASSERT_EQ(row.size(), 3u + 537u);
    const Vec3 d = waves.k[static_cast<std::size_t>(ik)] - Vec3{row[0], row[1], row[2]};
    EXPECT_LT(dot(d, d), 1e-12);
    for (int n = 0; n < 537; ++n)
      EXPECT_NEAR(waves.energy(0, ik, n) * kRydberg_ev, row[static_cast<std::size_t>(3 + n)], 1e-8)
          << ik << ' ' << n;
  }
  // The potential of exchange and correlation in its place is noticed.
  Wavefunctions again = waves;
  EXPECT_THROW(replace_by_dense_states(again, 100, {read_field(files_->file("VXC"), "VSC"), vkb},
                                       *kernels_, silent),
               InvalidInput);
}

}  // namespace
}  // namespace quasi::gw
