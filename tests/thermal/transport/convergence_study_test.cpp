// Tests κ against mesh and width: the extrapolation by itself, and the study against separate runs.

#include "workers/thermal/solver/calculation/convergence_study.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/thermal/thermal_task.hpp"

namespace quasi::thermal {
namespace {

TEST(LimitOfFit, StraightLinesHaveNoError) {
  const ConvergenceLimit e = limit_of_fit({0.25, 0.2, 0.125, 0.1}, {7.5, 8.0, 8.75, 9.0});
  EXPECT_NEAR(e.value, 10.0, 1e-12);
  EXPECT_NEAR(e.slope, -10.0, 1e-11);
  EXPECT_LT(e.error, 1e-12);
  EXPECT_THROW(limit_of_fit({0.1, 0.2, 0.2}, {1, 2, 3}), InvalidInput);
}

// For scattered points the error covers the true limit about as often as a standard error does.
// Curvature, which a line lacks, moves the limit when the farthest point is left out, and shows as
// error.
TEST(LimitOfFit, ErrorsAreHonest) {
  std::mt19937 random(9);
  std::normal_distribution<double> noise(0.0, 0.3);
  int covered = 0;
  for (int draw = 0; draw < 400; ++draw) {
    std::vector<double> x, y;
    for (int n = 8; n <= 20; n += 2) {
      x.push_back(1.0 / n);
      y.push_back(150.0 - 500.0 / n + noise(random));
    }
    const ConvergenceLimit e = limit_of_fit(x, y);
    covered += std::fabs(e.value - 150.0) <= 2.0 * e.error ? 1 : 0;
  }
  EXPECT_GE(covered, 360);  // 2σ of a normal distribution with 5 degrees of freedom: 90 %
  std::vector<double> x, y;
  for (int n = 8; n <= 20; n += 2) {
    x.push_back(1.0 / n);
    y.push_back(150.0 - 500.0 / n + 900.0 / (n * n));
  }
  const ConvergenceLimit curved = limit_of_fit(x, y);
  EXPECT_GT(curved.error, 0.2 * std::fabs(curved.value - 150.0));
  EXPECT_NEAR(curved.value, 150.0, 10.0);
}

nlohmann::json run(const std::vector<std::string>& settings, const char* example = "silicon") {
  const quasi::test::TemporaryDirectory out;
  DeckSource source{.path = quasi::test::source_dir() / "examples/thermal" / example,
                    .settings = {}};
  for (const auto& text : settings) source.settings.push_back(parse_setting(text));
  SilentProgress silent;
  const auto summary = make_thermal_task()->run({.deck = source,
                                                 .devices = {Device{}},
                                                 .output_directory = out.path(),
                                                 .checkpoint_directory = out.path(),
                                                 .exports = {}},
                                                silent);
  EXPECT_EQ(H5Reader(out.path() / "result.h5").has("/convergence/mesh_limit"),
            summary.contains("convergence"));
  return summary;
}

TEST(ConvergenceStudy, HoldsTheKappaOfSeparateRuns) {
  const auto study = run({"ngrid=6,6,6", "T=300,500", "convergence_study=T", "study_meshes=4,5",
                          "study_scalebroads=0.8,0.6"});
  const auto& c = study["convergence"];
  EXPECT_EQ(c["mesh"], nlohmann::json({{4, 4, 4}, {5, 5, 5}, {6, 6, 6}}));
  EXPECT_EQ(c["scale_broad"], nlohmann::json({1.0, 0.8, 0.6}));
  EXPECT_EQ(c["kappa_by_mesh_w_per_mk"][2], study["kappa_w_per_mk"]);
  EXPECT_EQ(c["kappa_by_width_w_per_mk"][0], study["kappa_w_per_mk"]);
  EXPECT_EQ(c["kappa_by_mesh_w_per_mk"][1], run({"ngrid=5,5,5", "T=300,500"})["kappa_w_per_mk"]);
  EXPECT_EQ(c["kappa_by_width_w_per_mk"][2],
            run({"ngrid=6,6,6", "T=300,500", "scalebroad=0.6"})["kappa_w_per_mk"]);
  EXPECT_GT(c["mesh_limit"]["kappa_w_per_mk"][0][0].get<double>(),
            study["kappa_w_per_mk"][0][0][0].get<double>());
  EXPECT_GT(c["mesh_limit"]["error_w_per_mk"][0][0].get<double>(), 0.0);
  EXPECT_NE(make_thermal_task()->table(study).find("1/N -> 0"), std::string::npos);
}

TEST(ConvergenceStudy, HoldsTheKappaOfSeparateRunsWithFourPhonons) {
  const auto sw = [](std::vector<std::string> settings) {
    settings.insert(settings.end(), {"four_phonon=T", "T=300", "convergence=F"});
    return run(settings, "silicon-sw");
  };
  const auto study =
      sw({"ngrid=5,5,5", "convergence_study=T", "study_meshes=3,4", "study_scalebroads=0.8,0.6"});
  const auto& c = study["convergence"];
  EXPECT_EQ(c["kappa_by_mesh_w_per_mk"][2], study["kappa_rta_w_per_mk"]);
  EXPECT_EQ(c["kappa_by_mesh_w_per_mk"][1], sw({"ngrid=4,4,4"})["kappa_rta_w_per_mk"]);
  EXPECT_EQ(c["kappa_by_width_w_per_mk"][2],
            sw({"ngrid=5,5,5", "scalebroad=0.6"})["kappa_rta_w_per_mk"]);
  const auto three = run({"ngrid=4,4,4", "T=300", "convergence=F"}, "silicon-sw");
  EXPECT_LT(c["kappa_by_mesh_w_per_mk"][1][0][0][0].get<double>(),
            three["kappa_rta_w_per_mk"][0][0][0].get<double>());
}

TEST(ConvergenceStudy, RefusesWhatGivesNoLimit) {
  EXPECT_THROW(run({"ngrid=6,6,6", "convergence_study=T", "study_meshes=8,10"}), InvalidInput);
  EXPECT_THROW(run({"ngrid=6,6,6", "convergence_study=T", "study_scalebroads=2"}), InvalidInput);
  EXPECT_THROW(run({"ngrid=6,6,6", "convergence_study=T", "onlyharmonic=T"}), InvalidInput);
  // validate reports it too, not only a run after the deck's own result. A mesh of 4³ offers only
  // one coarser mesh by default.
  const DeckSource coarse{
      .path = quasi::test::source_dir() / "examples/thermal/silicon",
      .settings = {parse_setting("ngrid=4,4,4"), parse_setting("convergence_study=T")}};
  EXPECT_THROW(make_thermal_task()->validate(coarse, Device{}), InvalidInput);
}

// If a run of the study does not converge, the error names that run.
TEST(ConvergenceStudy, NamesTheRunThatFails) {
  try {
    run({"ngrid=6,6,6", "convergence_study=T", "study_meshes=2,4"});
    FAIL() << "2x2x2 converged";
  } catch (const NotConverged& failure) {
    EXPECT_NE(std::string(failure.what()).find("convergence study, mesh 2x2x2, scalebroad 1: "),
              std::string::npos)
        << failure.what();
  }
}

// κ in relaxation-time approximation is smooth in 1/N and in the width: neighbouring points differ
// by a fraction of the change over the whole range. The example is silicon. The remaining scatter
// comes from how coarse meshes sample the energy shell.
TEST(ConvergenceStudy, KappaIsSmoothInMeshAndWidth) {
  const auto kappa = [](const std::vector<std::string>& settings) {
    return run(settings)["kappa_rta_w_per_mk"][0][0][0].get<double>();
  };
  std::vector<double> inverse, by_mesh;
  for (const int n : {6, 7, 8, 9, 10}) {
    const std::string mesh = std::to_string(n);
    inverse.push_back(1.0 / n);
    by_mesh.push_back(
        kappa({"ngrid=" + mesh + "," + mesh + "," + mesh, "convergence=F", "coherence=F"}));
  }
  const ConvergenceLimit line = limit_of_fit(inverse, by_mesh);
  for (std::size_t i = 0; i < by_mesh.size(); ++i) {
    if (i > 0) {
      EXPECT_GT(by_mesh[i], by_mesh[i - 1]);
    }
    EXPECT_NEAR(by_mesh[i], line.value + line.slope * inverse[i], 0.03 * by_mesh.back());
  }
  std::vector<double> by_width;
  for (const char* width : {"1.0", "0.8", "0.6", "0.4", "0.3", "0.2", "0.1"})
    by_width.push_back(
        kappa({"ngrid=8,8,8", "convergence=F", "coherence=F", std::string("scalebroad=") + width}));
  for (std::size_t i = 1; i < by_width.size(); ++i)
    EXPECT_NEAR(by_width[i] / by_width[i - 1], 1.0, 0.08)
        << i;  // at 0.1, σ approaches the spacing of the levels
}

}  // namespace
}  // namespace quasi::thermal
