#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/gw/support/reference_files.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/self_energy/quasiparticle.hpp"

// Silicon on a 4×4×4 grid against an established plane-wave GW program (spec, reference/gw/si2).
namespace quasi::gw::test {

/// The whole calculation with 30 bands, made once for all cases of this file.
class Silicon : public testing::Test {
 protected:
  static constexpr double kEpsilonCutoff_ry = 10.0;
  static constexpr int kBands = 30;

  static void SetUpTestSuite() {
    if (!std::filesystem::exists(quasi::test::reference_dir() / "gw/si2")) return;
    files_ = new ReferenceCase("si2");
    field_ = new MeanField(make_mean_field(read_wavefunctions(files_->file("WFN")),
                                           read_wavefunctions(files_->file("WFNq")),
                                           read_field(files_->file("RHO"), "RHO")));
    kernels_ = make_gw_kernels(find_device("cpu")).release();
    coulomb_ = new CoulombInteraction(field_->crystal(), field_->waves.k_grid, {});
    SilentProgress silent;
    EpsilonOptions options{.epsilon_cutoff_ry = kEpsilonCutoff_ry, .bands = kBands};
    epsilon_ = new std::vector<DielectricMatrix>;
    for (const Vec3& q : screening_points(*field_))
      epsilon_->push_back(dielectric_matrix(*field_, q, options, *coulomb_, *kernels_, silent));
  }
  static void TearDownTestSuite() {
    delete epsilon_;
    delete coulomb_;
    delete kernels_;
    delete field_;
    delete files_;
  }
  void SetUp() override { QUASI_NEED_REFERENCE("gw/si2"); }

  static inline ReferenceCase* files_ = nullptr;
  static inline MeanField* field_ = nullptr;
  static inline GwKernels* kernels_ = nullptr;
  static inline CoulombInteraction* coulomb_ = nullptr;
  static inline std::vector<DielectricMatrix>* epsilon_ = nullptr;
};

/// Heads of ε and ε⁻¹  of every q of a table in its order: 1e-10 of the element.
/// Fifteen digits are printed, and both programs solve the same equations in double precision.
inline void expect_heads(const std::filesystem::path& table,
                         const std::vector<DielectricMatrix>& epsilon) {
  std::ifstream in(table);
  std::map<std::string, std::vector<double>> columns;
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(':'), equals = line.find('=');
    if (colon == std::string::npos || equals == std::string::npos) continue;
    std::string name = line.substr(colon + 2, equals - colon - 2);
    name.erase(name.find_last_not_of(' ') + 1);
    columns[name].push_back(std::stod(line.substr(equals + 1)));
  }
  const auto &heads = columns["Head of Epsilon"],
             &inverse_heads = columns["Head of Epsilon Inverse"];
  ASSERT_EQ(heads.size(), epsilon.size());
  ASSERT_EQ(inverse_heads.size(), epsilon.size());
  for (std::size_t i = 0; i < epsilon.size(); ++i) {
    EXPECT_NEAR(epsilon[i].epsilon_diagonal[0].real(), heads[i], 1e-10 * heads[i]) << "q " << i;
    EXPECT_NEAR(epsilon[i].inverse[0][0].real(), inverse_heads[i], 1e-10 * inverse_heads[i])
        << "q " << i;
  }
}

/// Largest deviations from a table's columns at Γ, multiplets averaged, eV.
struct Deviation {
  double x = 0.0, sx = 0.0, ch = 0.0, sigma = 0.0, z = 0.0;
  int compared = 0;
};
inline Deviation deviation_at_gamma(const MeanField& field, const std::vector<Quasiparticle>& ours,
                                    const std::filesystem::path& table) {
  Deviation d;
  for (const auto& row : read_sigma_table(table)) {
    if (dot(row.k, row.k) > 1e-12) continue;
    for (const Quasiparticle& qp : ours) {
      if (qp.band != row.band || dot(qp.k, qp.k) > 1e-12) continue;
      ++d.compared;
      d.x = std::max(d.x, std::abs(qp.x_ev - row.column.at("X")));
      d.sx = std::max(d.sx, std::abs(qp.sx_ev - row.column.at("SX-X")));
      d.ch = std::max(d.ch, std::abs(qp.ch_ev - row.column.at("CH")));
      d.sigma = std::max(d.sigma, std::abs(qp.sigma_ev - row.column.at("Sig")));
      if (row.column.count("CH`") > 0)
        d.ch = std::max(d.ch, std::abs(qp.ch_bare_ev - row.column.at("CH`")));
      d.z = std::max(d.z, std::abs(qp.z - row.column.at("Znk")));
    }
  }
  (void)field;
  return d;
}

/// Σ at Γ with the v̄ that the reference drew, so that nothing random is left between the two.
class SiliconSigma : public Silicon {
 protected:
  void SetUp() override {
    Silicon::SetUp();
    if (IsSkipped()) return;
    stored_.emplace(field_->crystal(), field_->waves.k_grid,
                    CoulombOptions{.wing_rule = WingRule::kListedPoint,
                                   .average_file = files_->file("vcoul_gamma.dat").string()});
  }
  SigmaOptions options(int band_max = 14) const {
    SigmaOptions o{.bands = kBands,
                   .bare_cutoff_ry = 25.0,
                   .screened_cutoff_ry = 10.0,
                   .band_min = 1,
                   .band_max = band_max,
                   .kpoints = {0}};
    o.offsets_ry = rule_.offsets_ry();
    return o;
  }
  std::vector<Quasiparticle> solve(const SigmaOptions& o,
                                   const std::vector<DielectricMatrix>& epsilon,
                                   bool remainder = false) {
    SilentProgress silent;
    return quasiparticles(*field_, self_energy(*field_, epsilon, o, {*stored_, *kernels_, silent}),
                          {}, o, rule_, remainder);
  }
  DerivativeRule rule_{Derivative::kForward,
                       1.0 / kRydberg_ev};  // The reference's forward difference of 1 eV.
  std::optional<CoulombInteraction> stored_;
};

// Tolerances throughout: X to the digits of the stored v̄ (8), SX and CH to 2e-4 eV, because
// elements whose ω̃ lies on a rule's threshold may fall on either side, and Σ, where such elements
// cancel, to 1e-4 eV.
inline void expect_close(const Deviation& d, int expected_count) {
  EXPECT_EQ(d.compared, expected_count);
  EXPECT_LT(d.x, 1e-6);
  EXPECT_LT(d.sx, 2e-4);
  EXPECT_LT(d.ch, 2e-4);
  EXPECT_LT(d.sigma, 1e-4);
  EXPECT_LT(d.z, 1e-4);
}

/// The reference's grids of contour deformation: real axis 0–20 eV by 0.25, 20 imaginary points, S
/// constant between them; broadening 0.1 eV.
inline ContourGrid reference_contour() {
  ContourGrid grid{
      .imaginary_ry = imaginary_grid(20, 2.0), .real_ry = {}, .rule = ImaginaryRule::kConstant};
  for (int i = 0; i <= 80; ++i) grid.real_ry.push_back(0.25 * i / kRydberg_ev);
  return grid;
}
inline std::vector<Cplx> reference_frequencies() {
  return reference_contour().frequencies_ry(0.1 / kRydberg_ev, 1e-4 / kRydberg_ev);
}

/// ε⁻¹ of all q on the reference's frequencies of contour deformation, made once: it takes seconds.
class SiliconContour : public SiliconSigma {
 protected:
  SigmaOptions contour_options() const {
    SigmaOptions o = options(8);
    o.method = SigmaMethod::kContour;
    o.offsets_ry = {0.0};
    o.contour = reference_contour();
    return o;
  }
  const std::vector<DielectricMatrix>& contour_epsilon() {
    static std::vector<DielectricMatrix> made;
    if (!made.empty()) return made;
    EpsilonOptions with{.epsilon_cutoff_ry = kEpsilonCutoff_ry, .bands = kBands};
    with.frequencies_ry = reference_frequencies();
    SilentProgress silent;
    for (const Vec3& q : screening_points(*field_))
      made.push_back(dielectric_matrix(*field_, q, with, *coulomb_, *kernels_, silent));
    return made;
  }
};

}  // namespace quasi::gw::test
