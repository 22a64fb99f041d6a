// The named errors of all energies of a job (docs/theory/gw.md 9.6).

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/temporary_directory.hpp"
#include "workers/gw/output/result_file.hpp"
#include "workers/gw/output/summary.hpp"
#include "workers/gw/solver/calculation/convergence_study.hpp"

namespace quasi::gw {
namespace {

const ErrorRow& row_of(const ErrorTable& table, const std::string& name) {
  for (const ErrorRow& row : table.rows)
    if (row.name == name) return row;
  throw std::runtime_error("no row " + name);
}

/// A job of two states without random vectors.
Calculation two_states() {
  Calculation run{.field = {.waves = {},
                            .zone = BrillouinZone({Vec3{}}, {SymmetryOperation{}}, 1, "test"),
                            .shifted = {},
                            .shifted_zone = {},
                            .q_zone = {},
                            .nonlocal = {},
                            .density = {}},
                  .plan = {},
                  .seconds = {}};
  for (int band = 1; band <= 2; ++band) {
    Quasiparticle qp;
    qp.band = band;
    qp.qp1_ev = 1.0 * band;
    run.quasiparticles.push_back(qp);
  }
  return run;
}

// A row without data is said to be not examined. It is never 0.
TEST(ErrorTable, RowsWithoutDataAreNotExamined) {
  Calculation run = two_states();
  run.errors = error_table(run, nullptr);
  for (const char* name : {"bands", "epsilon_cutoff", "bare_cutoff", "k_grid", "pole_model",
                           "frequency_grid", "coulomb_average", "linearisation", "near_poles"})
    EXPECT_FALSE(row_of(run.errors, name).examined()) << name;
  for (const char* name : {"stochastic", "jackknife_bias", "window_width", "identity"})
    EXPECT_EQ(row_of(run.errors, name).kind, "no random vectors") << name;
  EXPECT_EQ(run.errors.systematic_ev, (std::vector<double>{0.0, 0.0}));
  EXPECT_TRUE(error_table(Calculation{.field = run.field, .plan = {}, .seconds = {}}, nullptr)
                  .rows.empty());
}

// The static CH that bands leave out, the roots of Σ(E) and the limits of a study fill their rows.
// The study's bands replace the static CH, so that they count once.
TEST(ErrorTable, RowsAddUpWhatTheJobKnows) {
  Calculation run = two_states();
  run.self_test.push_back({"ch_truncation", 0.7, 0.0, 10.0, "eV", ""});
  run.spectra.push_back({.band_begin = 1, .band_end = 2, .best = Root{1.25, 0.8}});
  run.spectra.front().status = RootStatus::kUnique;
  const ErrorTable alone = error_table(run, nullptr);
  EXPECT_EQ(row_of(alone, "bands").value_ev, (std::vector<double>{0.7, 0.7}));
  EXPECT_EQ(row_of(alone, "linearisation").value_ev, (std::vector<double>{0.25, 0.75}));
  EXPECT_EQ(alone.systematic_ev, (std::vector<double>{0.7 + 0.25, 0.7 + 0.75}));
  EXPECT_NEAR(alone.systematic_gap_ev.value(), 0.7 + 2.0 * 0.75, 1e-14);

  ConvergenceStudy study;
  study.axes.push_back({.name = "bands",
                        .states = {0, 1},
                        .energy_ev = {{1.5, 2.5}, {1.0, 2.0}},
                        .limit = {{.value = 0.5, .error = 0.125}, {.value = 2.25, .error = 0.0}},
                        .gap_ev = {1.0, 1.0},
                        .gap_limit = {.value = 1.5, .error = 0.25}});
  study.axes.push_back({.name = "k_grid",
                        .states = {1},
                        .energy_ev = {{2.0}},
                        .limit = {{.value = 2.0, .error = 0.0625}}});
  run.spectra.front().status = RootStatus::kExtrapolated;
  const ErrorTable with = error_table(run, &study);
  EXPECT_EQ(row_of(with, "bands").value_ev, (std::vector<double>{0.625, 0.25}));
  EXPECT_EQ(row_of(with, "bands").gap_ev.value(), 0.75);
  EXPECT_EQ(row_of(with, "k_grid").value_ev, (std::vector<double>{0.0625, 0.0625}));
  EXPECT_FALSE(row_of(with, "linearisation").examined());
  EXPECT_EQ(with.systematic_ev, (std::vector<double>{0.6875, 0.3125}));
  EXPECT_FALSE(with.systematic_gap_ev.has_value()) << "the k-grid has no gap";
}

Calculation run_with_vectors(const std::string& keys) {
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  return run_calculation(
      parse_deck("[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\ncutoff_ry = 5.0\nbands = 170\n"
                 "[epsilon]\ncutoff_ry = 3.0\n[sigma]\nband_min = 14\nband_max = 18\n"
                 "[pseudobands]\nvectors = 4\nblocks = 4\nprotected_ry = 0.3\n" +
                     keys,
                 {}, "test", "."),
      *kernels, std::int64_t{1} << 30, silent);
}

// The bound of the window width grows as F² and has little noise, because both jobs have equal
// vectors. A quarter allows for the noise of four vectors and for terms of fourth order.
TEST(ErrorTable, TheWindowWidthCountsByItsSquare) {
  const auto width = [](const std::string& keys) {
    return row_of(run_with_vectors(keys).errors, "window_width").gap_ev.value();
  };
  const double first = width(""), other = width("seed = 2\n"), wide = width("ratio = 0.4\n");
  EXPECT_GT(first, 1e-3);
  EXPECT_LT(first, 0.02);
  EXPECT_NEAR(other / first, 1.0, 0.25);
  EXPECT_NEAR(wide / first, 4.0, 1.0);
}

// Summary, table, result.h5 and errors.dat hold the rows of a job with random vectors.
TEST(ErrorTable, EveryResultHoldsTheRows) {
  const Calculation run = run_with_vectors("");
  const auto summary = summary_of(run, find_device("cpu"), 1).at("errors");
  EXPECT_EQ(summary.at("rows").size(), 13u);
  for (const auto& row : summary.at("rows"))
    EXPECT_EQ(row.at("value_ev").is_string(), !row_of(run.errors, row.at("name")).examined());
  EXPECT_EQ(summary.at("rows")[0].at("value_ev").get<std::vector<double>>(),
            run.pseudoband_errors->half_width_ev);
  double sum = 0.0;
  for (const char* name : {"jackknife_bias", "window_width", "identity", "coulomb_average"})
    sum += row_of(run.errors, name).value_ev[2];
  EXPECT_NEAR(summary.at("systematic_ev")[2].get<double>(), sum, 1e-14);
  const std::string table = table_of(summary_of(run, find_device("cpu"), 1));
  EXPECT_NE(table.find("\n window_width "), std::string::npos) << table;
  EXPECT_NE(table.find("not examined: bands epsilon_cutoff"), std::string::npos) << table;

  const test::TemporaryDirectory directory;
  write_result(directory.path() / "result.h5", run, std::nullopt, {});
  write_energies(directory.path(), run);
  const H5Reader file(directory.path() / "result.h5");
  EXPECT_EQ(file.doubles("/errors/window_width/value"), run.pseudoband_errors->window_width_ev);
  EXPECT_EQ(file.doubles("/errors/systematic"), run.errors.systematic_ev);
  EXPECT_FALSE(file.has("/errors/k_grid/value"));
  EXPECT_EQ(file.shape("/errors/not_examined"), (std::vector<std::int64_t>{8}));
  EXPECT_EQ(file.text_attribute("/errors/identity/value", "units"), "eV");
  std::ifstream in(directory.path() / "errors.dat");
  std::string line, last;
  std::size_t rows = 0;
  while (std::getline(in, line))
    if (line[0] != '#') last = line, ++rows;
  EXPECT_EQ(rows, run.quasiparticles.size());
  std::istringstream words(last);
  double value = 0.0;
  for (int column = 0; column < 6; ++column) words >> value;
  EXPECT_NEAR(value, run.pseudoband_errors->half_width_ev.back(), 1e-6);
}

}  // namespace
}  // namespace quasi::gw
