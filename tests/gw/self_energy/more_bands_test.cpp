// The reference's other cases: 78 bands with its own v̄, and the eight-atom cell at Γ.

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "tests/gw/support/silicon_fixture.hpp"
#include "workers/gw/input/mean_field_files.hpp"

namespace quasi::gw {
namespace {

class SiliconManyBands : public test::SiliconSigma {};

TEST_F(SiliconManyBands, SeventyEightBandsAtGamma) {
  SilentProgress silent;
  std::vector<DielectricMatrix> epsilon;
  for (const Vec3& q : screening_points(*field_))
    epsilon.push_back(dielectric_matrix(*field_, q, {.epsilon_cutoff_ry = 10.0, .bands = 78},
                                        *coulomb_, *kernels_, silent));
  test::expect_heads(files_->file("out/eps_heads_78.txt"), epsilon);
  SigmaOptions o = options(8);
  o.bands = 78;
  test::expect_close(
      test::deviation_at_gamma(*field_, solve(o, epsilon), files_->file("out/sigma_hl78.txt")), 8);
}

/// Eight atoms at Γ: 257 plane waves, an odd density grid with 12 operations, 199 bands; our
/// average against the reference's random one.
class SiliconEightAtoms : public testing::Test {
 protected:
  void SetUp() override {
    QUASI_NEED_REFERENCE("gw/si8");
    files_ = std::make_unique<test::ReferenceCase>("si8");
    field_ = make_mean_field(read_wavefunctions(files_->file("WFN")),
                             read_wavefunctions(files_->file("WFNq")),
                             read_field(files_->file("RHO"), "RHO"));
    coulomb_.emplace(field_->crystal(), field_->waves.k_grid,
                     CoulombOptions{.wing_rule = WingRule::kListedPoint});
  }
  std::vector<DielectricMatrix> screening(std::vector<Cplx> frequencies) {
    SilentProgress silent;
    return {dielectric_matrix(
        *field_, field_->q0,
        {.epsilon_cutoff_ry = 6.0, .bands = 199, .frequencies_ry = std::move(frequencies)},
        *coulomb_, *kernels_, silent)};
  }
  SigmaOptions options() const {
    return {.bands = 199,
            .bare_cutoff_ry = 16.0,
            .screened_cutoff_ry = 6.0,
            .band_min = 1,
            .band_max = 38,
            .kpoints = {0}};
  }

  std::unique_ptr<GwKernels> kernels_ = make_gw_kernels(find_device("cpu"));
  std::unique_ptr<test::ReferenceCase> files_;
  std::optional<MeanField> field_;
  std::optional<CoulombInteraction> coulomb_;
};

// 41 % invalid modes; Σ to 0.13 meV.
TEST_F(SiliconEightAtoms, HybertsenLouieAtGamma) {
  const auto epsilon = screening({Cplx{}});
  test::expect_heads(files_->file("out/eps_heads_199.txt"), epsilon);
  SigmaOptions o = options();
  const DerivativeRule rule{Derivative::kForward, 1.0 / kRydberg_ev};
  o.offsets_ry = rule.offsets_ry();
  SigmaStatistics statistics;
  SilentProgress silent;
  const auto list = quasiparticles(
      *field_, self_energy(*field_, epsilon, o, {*coulomb_, *kernels_, silent}, &statistics), {}, o,
      rule, false);
  int compared = 0;
  for (const auto& row : test::read_sigma_table(files_->file("out/sigma_hl199.txt"))) {
    const Quasiparticle& qp = list.at(static_cast<std::size_t>(row.band - 1));
    EXPECT_NEAR(qp.x_ev, row.column.at("X"), 3e-4) << row.band;
    // Elements at a rule's threshold change columns.
    EXPECT_NEAR(qp.sx_ev, row.column.at("SX-X"), 2e-3) << row.band;
    EXPECT_NEAR(qp.ch_ev, row.column.at("CH"), 2e-3) << row.band;
    EXPECT_NEAR(qp.sigma_ev, row.column.at("Sig"), 3e-4) << row.band;
    EXPECT_NEAR(qp.z, row.column.at("Znk"), 3e-4) << row.band;
    ++compared;
  }
  EXPECT_EQ(compared, 38);
  // 41 % of the elements that are not negligible are invalid modes (the reference's README).
  EXPECT_NEAR(static_cast<double>(statistics.invalid) /
                  static_cast<double>(statistics.elements - statistics.skipped),
              0.41, 0.02);
}

// Contour deformation, 38 states. The table's grids are not those of the two-atom case: 15
// imaginary points (integrals of states without residues agree to 1.4e-4 eV with 15 and err by 3e-3
// with 14 or 16), a real axis by 0.5 eV with a broadening of 0.1 (residues to 5e-4 eV; 0.04 eV off
// by 0.25 eV, 0.1 by 1 eV). Members of a sextet lie 1e-5 eV apart, so that the step of their
// residues and that of their integrals cancel in the sum alone. 1e-3 eV: the average of v̄ is random
// there.
TEST_F(SiliconEightAtoms, ContourDeformationAtGamma) {
  SigmaOptions o = options();
  o.method = SigmaMethod::kContour;
  o.contour = {
      .imaginary_ry = imaginary_grid(15, 2.0), .real_ry = {}, .rule = ImaginaryRule::kConstant};
  for (int i = 0; i <= 25; ++i) o.contour.real_ry.push_back(0.5 * i / kRydberg_ev);
  const auto epsilon = screening(o.contour.frequencies_ry(0.1 / kRydberg_ev, 1e-4 / kRydberg_ev));
  SilentProgress silent;
  const auto sums = self_energy(*field_, epsilon, o, {*coulomb_, *kernels_, silent});
  int compared = 0;
  for (const test::ContourRow& row :
       test::read_contour_table(files_->file("out/sigma_cd199.txt"))) {
    Cplx residue, integral;
    for (const auto& [begin, end] : multiplets(field_->waves, 0, 0, 0, 38))
      if (row.band > begin && row.band <= end)
        for (int n = begin; n < end; ++n) {
          residue += kRydberg_ev / (end - begin) * sums[0].sx_ry[0][static_cast<std::size_t>(n)];
          integral += kRydberg_ev / (end - begin) * sums[0].ch_ry[0][static_cast<std::size_t>(n)];
        }
    const bool spread = (row.band >= 17 && row.band <= 22) || (row.band >= 30 && row.band <= 35);
    EXPECT_LT(std::abs(residue + integral - row.residue - row.integral), spread ? 2e-3 : 1e-3)
        << row.band;
    if (!spread) {
      EXPECT_LT(std::abs(residue - row.residue), 1e-3) << row.band;
      EXPECT_LT(std::abs(integral - row.integral), 3e-4) << row.band;
    }
    EXPECT_NEAR(sums[0].x_ry[static_cast<std::size_t>(row.band - 1)] * kRydberg_ev, row.x, 3e-4)
        << row.band;
    ++compared;
  }
  EXPECT_EQ(compared, 38);
}

}  // namespace
}  // namespace quasi::gw
