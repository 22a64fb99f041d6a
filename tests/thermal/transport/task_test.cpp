// Tests the task as the engine runs it: summary, result.h5, exported files, and equal bits in a
// repeated run.

#include "workers/thermal/thermal_task.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/support/reference_run.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi {
namespace {

nlohmann::json run(const std::filesystem::path& deck, const std::vector<std::string>& settings,
                   const std::filesystem::path& out, const std::vector<std::string>& exports = {}) {
  DeckSource source{.path = deck, .settings = {}};
  for (const auto& text : settings) source.settings.push_back(parse_setting(text));
  SilentProgress silent;
  return make_thermal_task()->run(
      {.deck = source, .devices = {Device{}}, .output_directory = out, .exports = exports}, silent);
}
std::filesystem::path silicon() { return test::source_dir() / "examples/thermal/silicon"; }

TEST(ThermalTask, SummaryAndResultFileAgree) {
  const test::TemporaryDirectory out;
  const auto summary = run(silicon(), {"ngrid=4,4,4", "T=200,300"}, out.path());
  EXPECT_EQ(summary["temperatures_k"], nlohmann::json({200.0, 300.0}));
  ASSERT_EQ(summary["kappa_w_per_mk"].size(), 2u);
  const H5Reader file(out.path() / "result.h5");
  const auto rta = file.doubles("/kappa/rta");
  const auto converged = file.doubles("/kappa/converged");
  for (std::size_t t = 0; t < 2; ++t)
    for (std::size_t i = 0; i < 9; ++i) {
      EXPECT_EQ(rta[t * 9 + i], summary["kappa_rta_w_per_mk"][t][i / 3][i % 3].get<double>());
      EXPECT_EQ(converged[t * 9 + i], summary["kappa_w_per_mk"][t][i / 3][i % 3].get<double>());
    }
  EXPECT_EQ(file.text_attribute("/kappa/rta", "units"), "W/(m K)");
  EXPECT_EQ(file.text_attribute("/rates/3ph_absorption", "units"), "1/ps");
  EXPECT_EQ(file.text("/provenance/deck_sha256"), summary["deck_sha256"].get<std::string>());
  EXPECT_FALSE(file.has("/provenance/device")) << "equal jobs have equal bytes on any device";
  EXPECT_GT(summary["seconds"]["scattering_3ph"].get<double>(), 0.0);
  EXPECT_FALSE(file.has("/provenance/seconds")) << "equal jobs have equal bytes";
  EXPECT_GT(summary["processes_3ph"]["absorption"].get<int>(), 0);
  for (const char* part : {"BTE", "scalebroad=1 (numbers of FourPhonon: compat=fourphonon)"})
    EXPECT_NE(make_thermal_task()->table(summary).find(part), std::string::npos) << part;
  // The sum of κ over the modes is κ.
  const auto by_mode = file.doubles("/by_temperature/mode_kappa");
  double sum = 0.0;
  for (std::size_t i = by_mode.size() / 2; i < by_mode.size(); i += 9) sum += by_mode[i];
  EXPECT_NEAR(sum / converged[9], 1.0, 1e-12);
  for (const char* axis : {"path", "omega"}) {
    const auto coherence =
        file.doubles(std::string("/by_temperature/cumulative_by_") + axis + "/kappa_coherence");
    EXPECT_NEAR(coherence[coherence.size() - 9] /
                    summary["kappa_coherence_w_per_mk"][1][0][0].get<double>(),
                1.0, 1e-12)
        << axis;
  }
  const auto cumulative = file.doubles("/by_temperature/cumulative_by_path/kappa");
  EXPECT_NEAR(cumulative[cumulative.size() - 9] / converged[9], 1.0, 1e-12);
}

TEST(ThermalTask, WithoutIterationKappaIsNull) {
  const test::TemporaryDirectory out;
  const auto summary = run(silicon(), {"ngrid=3,3,3", "convergence=F"}, out.path());
  EXPECT_TRUE(summary["kappa_w_per_mk"].is_null());
  EXPECT_FALSE(H5Reader(out.path() / "result.h5").has("/kappa/converged"));
}

// Wires beyond relaxation times need the symmetric operator. Without it the result states that it
// has none.
TEST(ThermalTask, WiresSayWhatTheyAre) {
  const std::vector<std::string> wire{
      "ngrid=3,3,3", "T=300", "nanowires=T", "norientations=1", "orientations(:,1)=1,1,1",
      "rmax=105"};
  const test::TemporaryDirectory out;
  const auto symmetric = run(silicon(), wire, out.path());
  EXPECT_EQ(symmetric["wires"]["radius_nm"], nlohmann::json({5.0, 105.0}));
  EXPECT_EQ(symmetric["wires"]["kappa_w_per_mk"][0].size(), 2u);
  EXPECT_TRUE(H5Reader(out.path() / "result.h5").has("/by_temperature/wire_kappa"));
  auto other = wire;
  other.push_back("broadening=adaptive-max");
  const auto adaptive = run(silicon(), other, out.path());
  EXPECT_TRUE(adaptive["wires"]["kappa_w_per_mk"].is_null());
  EXPECT_NE(adaptive["warnings"].dump().find("relaxation-time approximation only"),
            std::string::npos);
}

// Below k_BT = σ the width decides the value of κ. Only the coldest temperature is named beside
// both.
TEST(ThermalTask, TemperaturesBelowTheWidthAreNamed) {
  const test::TemporaryDirectory out;
  const auto cold = run(silicon(), {"ngrid=3,3,3", "T=300,10,20", "convergence=F"}, out.path());
  const std::string said = cold["warnings"][0];
  EXPECT_EQ(cold["warnings"].size(), 2u) << "the other one is of the mesh: " << cold["warnings"];
  for (const char* word : {"'T' = 10 K", "k_BT = 1.309", "rad/ps", "'scalebroad'", "'ngrid'"})
    EXPECT_NE(said.find(word), std::string::npos) << said;
  for (const char* other : {"T=300", "scalebroad=0.1"}) {
    const auto good = run(silicon(), {"ngrid=3,3,3", "T=10", "convergence=F", other}, out.path());
    EXPECT_EQ(good["warnings"].dump().find("k_BT"), std::string::npos) << good["warnings"];
  }
}

// The table lists the settings of a sweep with κ of the summary's own tensors. A long sweep is
// shortened, and the table says so.
TEST(ThermalTask, TheTableShowsSweepsAndWires) {
  const test::TemporaryDirectory out;
  const auto summary =
      run(silicon(),
          {"ngrid=3,3,3", "T=300", "nanowires=T", "norientations=1", "orientations(:,1)=1,1,1",
           "rmax=5", "isotope_factors=0,1", "grain_sizes_nm=100"},
          out.path());
  const std::string table = make_thermal_task()->table(summary);
  char line[128];
  for (int i = 0; i < 2; ++i) {
    const auto& k = summary["sweep"]["kappa_w_per_mk"][i][0][0];
    std::snprintf(line, sizeof line, "%11.2f%10d%13s%12.4f%12.4f%12.4f\n", 300.0, i, "100",
                  k[0][0].get<double>(), k[1][1].get<double>(), k[2][2].get<double>());
    EXPECT_NE(table.find(line), std::string::npos) << line << table;
  }
  std::snprintf(line, sizeof line, "%11.2f%13d%11.4f ", 300.0, 5,
                summary["wires"]["kappa_w_per_mk"][0][0].get<double>());
  EXPECT_NE(table.find(line), std::string::npos) << line << table;
  EXPECT_NE(table.find("three phonons iterated: "), std::string::npos) << table;
  auto many = summary;
  for (int i = 0; i < 60; ++i) {
    many["sweep"]["isotope_factor"].push_back(1.0);
    many["sweep"]["kappa_w_per_mk"].push_back(summary["sweep"]["kappa_w_per_mk"][0]);
  }
  EXPECT_NE(make_thermal_task()->table(many).find("... 22 more in summary.json"),
            std::string::npos);
}

// Same deck, same device: the same numbers to the last bit, with one thread and with two.
// At X of silicon every velocity vanishes by symmetry. The rate along it, ω v²/(F·v), is then 0 and
// not rounding over rounding.
TEST(ThermalTask, RatesAlongAVelocityThatVanishesAreZero) {
  const test::TemporaryDirectory out;
  run(silicon(), {"ngrid=4,4,4", "T=300"}, out.path());
  const H5Reader file(out.path() / "result.h5");
  const auto velocity = file.doubles("/modes/velocity");
  const auto irreducible = file.integers("/mesh/irreducible");
  const auto rate = file.doubles("/by_temperature/rate_final");
  const std::size_t nb = rate.size() / irreducible.size();
  int vanishing = 0, moving = 0;
  for (std::size_t row = 0; row < rate.size(); ++row) {
    const double* v =
        &velocity[(static_cast<std::size_t>(irreducible[row / nb]) * nb + row % nb) * 3];
    const double speed = std::hypot(v[0], v[1], v[2]);
    if (speed < 1e-9) {
      EXPECT_EQ(rate[row], 0.0);
      ++vanishing;
    } else {
      EXPECT_GT(rate[row], 0.0);
      ++moving;
    }
  }
  EXPECT_GT(vanishing, 6) << "more than the modes of one point";
  EXPECT_GT(moving, 10);
}

TEST(ThermalTask, SameBitsAgain) {
  const int threads = omp_get_max_threads();
  std::vector<nlohmann::json> kappa;
  std::vector<std::string> files;
  for (const int n : {1, 2, 2}) {
    omp_set_num_threads(n);
    const test::TemporaryDirectory out;
    const auto summary = run(silicon(), {"ngrid=5,5,5"}, out.path());
    kappa.push_back(
        {summary["kappa_rta_w_per_mk"], summary["kappa_w_per_mk"], summary["residual"]});
    std::ifstream file(out.path() / "result.h5", std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  EXPECT_GT(files[0].size(), 10000u);
  EXPECT_TRUE(files[0] == files[1]) << "equal jobs have files of equal bytes";
  EXPECT_TRUE(files[1] == files[2]);
  omp_set_num_threads(threads);
  EXPECT_EQ(kappa[0], kappa[1]);
  EXPECT_EQ(kappa[1], kappa[2]);
}

TEST(ThermalTask, ValidatePrintsAPlan) {
  const auto report = make_thermal_task()->validate(
      {.path = silicon(), .settings = {{"ngrid", "8 8 8"}}}, Device{});
  EXPECT_TRUE(report["ok"].get<bool>());
  EXPECT_EQ(report["plan"]["irreducible_points"], 29);
  EXPECT_GT(report["plan"]["processes_3ph_estimate"].get<double>(), 1e5);
  EXPECT_LT(report["plan"]["processes_3ph_estimate"].get<double>(), 1e6);
  EXPECT_GT(report["plan"]["memory_bytes"].get<double>(), 1e6);
}

// A deck without heat conduction is refused, by validate too. Harmonic quantities alone have no
// table of κ. Isotope factors without isotopes give a warning.
TEST(ThermalTask, SaysWhereThereIsNothingToConduct) {
  const auto task = make_thermal_task();
  const test::TemporaryDirectory out;
  for (const auto& [setting, word] :
       {std::pair{"ngrid=1,1,1", "ngrid"}, std::pair{"omega_max=0.01", "omega_max"}}) {
    for (const bool run_it : {false, true}) try {
        const DeckSource source{.path = silicon(),
                                .settings = {parse_setting("ngrid=3,3,3"), parse_setting(setting)}};
        run_it ? (void)run(silicon(), {"ngrid=3,3,3", setting}, out.path())
               : (void)task->validate(source, Device{});
        FAIL() << setting << " was accepted";
      } catch (const InvalidInput& failure) {
        EXPECT_NE(std::string(failure.what()).find(word), std::string::npos) << failure.what();
      }
  }
  const auto harmonic = run(silicon(), {"ngrid=3,3,3", "onlyharmonic=T"}, out.path());
  EXPECT_NE(task->table(harmonic).find("harmonic quantities alone"), std::string::npos);
  EXPECT_EQ(task->table(harmonic).find("three-phonon"), std::string::npos);
  const auto pure =
      run(silicon(),
          {"ngrid=3,3,3", "isotope_factors=0,1", "autoisotopes=F", "masses=28", "gfactors=0"},
          out.path());
  EXPECT_NE(pure["warnings"].dump().find("isotope_factors"), std::string::npos);
}

TEST(ThermalTask, NamesItsExports) {
  EXPECT_EQ(make_thermal_task()->exports(), (std::vector<std::string>{"bte", "phono3py"}));
}

// Compares the exported BTE.* files with those of FourPhonon, number by number.
TEST(ThermalTask, ExportedFilesAgreeWithTheReferenceProgram) {
  QUASI_NEED_REFERENCE("thermal/si/runs");
  const thermal::test::ReferenceRun reference("3ph_m08_sb1.0_iso");
  const test::TemporaryDirectory out;
  run(reference.deck(), {"compat=fourphonon"}, out.path(), {"bte"});
  struct File {
    const char* name;
    double tolerance;
  };  // relative to the largest number of a column
  for (const File& file : {File{"BTE.ReciprocalLatticeVectors", 1e-9},
                           File{"BTE.qpoints", 1e-9},
                           File{"BTE.qpoints_full", 1e-9},
                           File{"BTE.omega", 1e-8},
                           File{"BTE.v", 1e-7},
                           File{"BTE.w_boundary", 1e-7},
                           File{"BTE.w_isotopic", 2e-3},
                           File{"BTE.dos", 1e-4},
                           File{"BTE.pdos", 2e-3},
                           File{"BTE.P3", 1e-6},
                           File{"BTE.P3_plus", 1e-6},
                           File{"BTE.P3_minus", 1e-6},
                           File{"BTE.P3_total", 1e-6},
                           File{"BTE.P3_plus_total", 1e-6},
                           File{"BTE.cvVsT", 2e-5},
                           File{"BTE.KappaTensorVsT_sg", 2e-5},
                           File{"BTE.KappaTensorVsT_RTA", 2e-4},
                           File{"T300K/BTE.w_3ph", 2e-3},
                           File{"T300K/BTE.w", 2e-3},
                           File{"T300K/BTE.WP3", 2e-3},
                           File{"T300K/BTE.cv", 1e-6},
                           File{"T300K/BTE.kappa_sg", 2e-5},
                           File{"T300K/BTE.cumulative_kappaVsOmega_tensor", 2e-3}}) {
    const auto expected = reference.table(file.name);
    const auto found = thermal::test::numbers_of(out.path() / file.name);
    ASSERT_EQ(found.size(), expected.size()) << file.name;
    std::vector<double> scale(expected[0].size(), 0.0);
    for (const auto& row : expected)
      for (std::size_t c = 0; c < scale.size(); ++c)
        scale[c] = std::max(scale[c], std::fabs(row.at(c)));
    if (std::string(file.name).find("appa") !=
        std::string::npos)  // tensors: off-diagonal elements are zero up to rounding
      for (std::size_t c = 1; c < scale.size(); ++c)
        scale[c] = *std::max_element(scale.begin() + 1, scale.end());
    for (std::size_t r = 0; r < found.size(); ++r) {
      ASSERT_GE(found[r].size(), scale.size()) << file.name << " row " << r;
      for (std::size_t c = 0; c < scale.size(); ++c)
        ASSERT_NEAR(found[r][c], expected[r][c],
                    file.tolerance * std::max(scale[c], 1e-6 * scale.back()) + 1e-12)
            << file.name << " row " << r << " column " << c;
    }
  }
}

// Compares the four-phonon files with those of FourPhonon at 4³. Counts of ++ and −− agree within
// two ties, counts of +− to 1e-3 in sum. Rates of single branches depend on the eigensolver (6e-3
// of the largest), those of +− on ties too (2e-2).
TEST(ThermalTask, ExportedFourPhononFilesAgreeWithTheReferenceProgram) {
  QUASI_NEED_REFERENCE("thermal/si/runs");
  const thermal::test::ReferenceRun reference("34ph_m04_sb1.0");
  const test::TemporaryDirectory out;
  run(reference.deck(), {"compat=fourphonon"}, out.path(), {"bte"});
  struct File {
    const char* name;
    const char* theirs;
    double tolerance;
  };
  for (const File& file :
       {File{"BTE.P4", "BTE.P4", 6e-3}, File{"BTE.P4_total", "BTE.P4_total", 2e-3},
        File{"BTE.P4_plusplus", "BTE.P4_plusplus", 1e-6},
        File{"BTE.P4_minusminus", "BTE.P4_minusminus", 1e-6},
        File{"BTE.P4_plusminus", "BTE.P4_plusmius", 6e-3},
        File{"BTE.P4_plusplus_total", "BTE.P4_plusplus_total", 1e-6},
        File{"T300K/BTE.w_4ph", "T300K/BTE.w_4ph", 2e-2},
        File{"T300K/BTE.w_4ph_plusplus", "T300K/BTE.w_4ph_plusplus", 6e-3},
        File{"T300K/BTE.w_4ph_plusminus", "T300K/BTE.w_4ph_plusminus", 2e-2},
        File{"T300K/BTE.w_4ph_minusminus", "T300K/BTE.w_4ph_minusminus", 6e-3},
        File{"T300K/BTE.WP4", "T300K/BTE.WP4", 2e-2},
        File{"T300K/BTE.WP4_plusplus", "T300K/BTE.WP4_plusplus", 2e-5},
        File{"BTE.gruneisenVsT_total", "BTE.gruneisenVsT_total", 2e-5},
        File{"T300K/BTE.gruneisen_total", "T300K/BTE.gruneisen_total", 1e-6}}) {
    const auto expected = reference.table(file.theirs);
    const auto found = thermal::test::numbers_of(out.path() / file.name);
    ASSERT_EQ(found.size(), expected.size()) << file.name;
    // Columns have separate scales if they are ω and a value. Rows of branches have one scale.
    std::vector<double> scale(expected[0].size(), 0.0);
    for (const auto& row : expected)
      for (std::size_t c = 0; c < row.size(); ++c) scale[c] = std::max(scale[c], std::fabs(row[c]));
    if (scale.size() > 2)
      std::fill(scale.begin(), scale.end(), *std::max_element(scale.begin(), scale.end()));
    for (std::size_t r = 0; r < found.size(); ++r) {
      ASSERT_EQ(found[r].size(), expected[r].size()) << file.name;
      for (std::size_t c = 0; c < found[r].size(); ++c)
        ASSERT_NEAR(found[r][c], expected[r][c], file.tolerance * scale[c])
            << file.name << " row " << r << " column " << c;
    }
  }
  const auto expected = reference.table("BTE.Numprocess_4ph");
  const auto found = thermal::test::numbers_of(out.path() / "BTE.Numprocess_4ph");
  ASSERT_EQ(found.size(), expected.size());
  double sums[2] = {};
  for (std::size_t row = 0; row < found.size(); ++row) {
    EXPECT_NEAR(found[row][0], expected[row][0], 2.0);
    EXPECT_NEAR(found[row][2], expected[row][2], 2.0);
    sums[0] += found[row][1];
    sums[1] += expected[row][1];
  }
  EXPECT_NEAR(sums[0] / sums[1], 1.0, 1e-3);
  const auto bands = thermal::test::numbers_of(out.path() / "T300K/BTE.kappa");
  const auto their_bands = reference.table("T300K/BTE.kappa");
  ASSERT_EQ(bands.size(), 2u);
  ASSERT_EQ(bands[0].size(), their_bands[0].size());
  for (int s = 1; s <= 6; ++s)
    EXPECT_NEAR(bands[0][s], their_bands[0][s], 6e-3 * their_bands[0][3]);
}

// Checks phono3py's file by its published formula: mode_kappa from heat capacities, velocities and
// gamma, and κ from mode_kappa. The limit is 1e-8 because of the digits of its unit conversion.
TEST(ThermalTask, Phono3pyFileFollowsItsFormula) {
  for (const bool iterate : {false, true}) {
    const test::TemporaryDirectory out;
    const auto summary = run(silicon(),
                             {"ngrid=3,3,3", "T=200,300", "four_phonon=T", "scalebroad=0.5",
                              iterate ? "convergence=T" : "convergence=F"},
                             out.path(), {"phono3py"});
    const H5Reader file(out.path() / "kappa-m333.hdf5");
    const auto weight = file.integers("/weight");
    const auto n_irr = static_cast<std::int64_t>(weight.size());
    const std::int64_t nb = 6;
    EXPECT_EQ(file.shape("/gamma"), (std::vector<std::int64_t>{2, n_irr, nb}));
    EXPECT_EQ(file.shape("/gv_by_gv"), (std::vector<std::int64_t>{n_irr, nb, 6}));
    const auto gamma = file.doubles("/gamma"), gamma_n = file.doubles("/gamma_N"),
               gamma_u = file.doubles("/gamma_U");
    const auto isotope = file.doubles("/gamma_isotope"), capacity = file.doubles("/heat_capacity"),
               gv = file.doubles("/gv_by_gv");
    const auto mode_kappa = file.doubles(iterate ? "/mode_kappa_RTA" : "/mode_kappa");
    const double unit = file.number("/kappa_unit_conversion");
    double n_q = 0.0;
    for (const auto w : weight) n_q += static_cast<double>(w);
    EXPECT_EQ(n_q, 27.0);
    for (std::int64_t t = 0; t < 2; ++t) {
      double sum = 0.0;
      for (std::int64_t row = 0; row < n_irr * nb; ++row) {
        const std::size_t at = static_cast<std::size_t>(t * n_irr * nb + row);
        EXPECT_NEAR(gamma_n[at] + gamma_u[at], gamma[at], 1e-12 * (gamma[at] + 1e-12));
        const double linewidth = 2.0 * (gamma[at] + isotope[static_cast<std::size_t>(row)]);
        const double expected =
            row < nb || linewidth == 0.0
                ? 0.0
                : unit * capacity[at] * gv[static_cast<std::size_t>(row * 6)] / linewidth;
        EXPECT_NEAR(mode_kappa[at * 6], expected, 1e-8 * expected + 1e-12);
        sum += mode_kappa[at * 6];
      }
      EXPECT_NEAR(sum / n_q / summary["kappa_rta_w_per_mk"][t][0][0].get<double>(), 1.0, 1e-12);
      if (iterate) {
        EXPECT_EQ(file.doubles("/kappa")[static_cast<std::size_t>(6 * t)],
                  summary["kappa_w_per_mk"][t][0][0].get<double>());
      }
    }
    const auto frequency = file.doubles("/frequency");
    EXPECT_NEAR(*std::max_element(frequency.begin(), frequency.end()), 15.27,
                0.01);  // THz, from the deck's README
  }
}

}  // namespace
}  // namespace quasi
