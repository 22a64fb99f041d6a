// Tests the judgement of bias points: every law has a case that keeps it and one that violates it.

#include "workers/mosfet/solver/verdict/point_verdict.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "tests/mosfet/fixtures.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/progress.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/mosfet_task.hpp"
#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"

namespace quasi::mosfet {
namespace {

/// A point whose figures keep every law, with one number changed.
PointResult point_with(const std::string& name, double value) {
  PointResult point;
  point.bias = {0.6, 0.4};
  point.numbers = {{"current_a_per_m", 100.0},    {"current_spread_a_per_m", 0.01},
                   {"ballistic_ratio", 0.9},      {"density_ratio", 1.0},
                   {"top_subband_share", 0.001},  {"top_share", 1e-6},
                   {"energy_defect_w_per_m", 0.0}};
  point.numbers[name] = value;
  return point;
}

struct Case {
  const char* name;
  double kept, violated;
  bool decides;  ///< a violation makes the point unresolved
  const char* remark;
};

TEST(Verdict, EveryLawHasALimitAndARemark) {
  RunSettings run;
  run.scheme = StreamingScheme::kBeam;
  for (const Case& one :
       {Case{"ballistic_ratio", 1.01, 1.06, true, "1.06 of what its own barriers would pass"},
        {"density_ratio", 1.09, 1.35, true, "1.35 times the electrons of equilibrium"},
        {"current_spread_a_per_m", 0.09, 0.2, true, "differs along x by 0.2 A/m"},
        {"energy_defect_w_per_m", 0.03, 0.05, true, "energy balance along x fails by 0.05 W/m"},
        {"top_subband_share", 0.04, 0.2, false, "0.2 of a column's electrons; raise mesh.subbands"},
        {"top_share", 5e-4, 5e-3, false, "consider a higher mesh.window_ev"}}) {
    SCOPED_TRACE(one.name);
    const PointVerdict kept = judge_point(run, point_with(one.name, one.kept));
    EXPECT_TRUE(kept.resolved);
    EXPECT_TRUE(kept.remarks.empty());
    const PointVerdict found = judge_point(run, point_with(one.name, one.violated));
    EXPECT_EQ(found.resolved, !one.decides);
    ASSERT_EQ(found.remarks.size(), 1u);
    EXPECT_NE(found.remarks[0].find(one.remark), std::string::npos) << found.remarks[0];
  }
  EXPECT_FALSE(judge_point(run, point_with("current_spread_a_per_m", NAN)).resolved);
  // A remark without a violated law.
  const PointVerdict close = judge_point(run, point_with("ballistic_ratio", 1.03));
  EXPECT_TRUE(close.resolved);
  EXPECT_EQ(close.remarks.size(), 1u);
}

// The laws hold for any choice of the higher contact, because they take the higher E_F.
TEST(Verdict, TheDensityOfAnEquilibriumIsItsOwnLimit) {
  const Deck deck = test::default_deck(33, 17, {{"mesh.subbands", "2"}});
  const Structure s = make_structure(deck);
  const Equilibrium contact = solve_contact(deck, s, 0);
  const BiasPoint bias{0.3, 0.0};
  const Equilibrium field = solve_equilibrium(deck, s, bias, contact, contact);
  std::vector<double> sheet = field.sheet_nm2;
  const auto judged = [&](double vds_v) {
    PointResult point;
    add_judged_numbers(
        deck, s, {.bias = {0.3, vds_v}, .energy_ev = field.subbands.energy_ev, .sheet_nm2 = sheet},
        &point);
    return point.numbers;
  };
  // The density at a node exceeds the mean over its column by 2.7 % where the levels bend down.
  EXPECT_NEAR(judged(0.0).at("density_ratio"), 1.0, 0.03);
  EXPECT_EQ(judged(0.4).at("density_ratio"), judged(0.0).at("density_ratio"));
  EXPECT_LT(judged(-0.4).at("density_ratio"), 1e-5);
  EXPECT_LT(judged(0.0).at("top_subband_share"), 0.3);
  for (std::size_t k = 0; k < sheet.size(); ++k)
    if (k % 33 == 16) sheet[k] *= 1.5;
  EXPECT_NEAR(judged(0.0).at("density_ratio"), 1.5, 0.05);
}

/// Steady states of the default device on a coarse mesh, by table, CSV and summary.
struct Job {
  explicit Job(const std::string& run) {
    std::ofstream(directory.path() / "deck.toml")
        << "parameters = \"paper\"\n"
           "[mesh]\nnx = 33\nnz = 17\nsubbands = 1\nnw = 12\nnphi = 8\ndh_ev = 0.025\n"
           "nkappa = 4\n[bias]\nvgs = [0.2]\nvds = [0.0, 0.2]\n[run]\nt_end_fs = 900.0\n"
           "steady_tol = 2e-2\nsteady_floor_a_per_m = 10.0\n" +
               run;
    RunOptions options;
    options.deck.path = directory.path() / "deck.toml";
    options.devices = {find_device("cpu")};
    options.output_directory = directory.path();
    SilentProgress silent;
    const auto task = make_mosfet_task();
    summary = task->run(options, silent);
    table = task->table(summary);
    std::ifstream csv(directory.path() / "iv.csv");
    text = {std::istreambuf_iterator<char>(csv), {}};
  }
  test::TemporaryDirectory directory;
  nlohmann::json summary;
  std::string table, text;
};

// Below threshold the scheme weno is steady with several times the electrons of equilibrium, also
// without a current. Table, CSV and summary say so.
TEST(Verdict, WenoBelowThresholdIsUnresolved) {
  const Job job("scheme = \"weno\"\n");
  for (const auto& point : job.summary["points"]) {
    EXPECT_EQ(point["status"], "unresolved");
    EXPECT_GT(point["density_ratio"].get<double>(), 1.1);
    EXPECT_NE(point["remarks"].dump().find("equilibrium with its contacts"), std::string::npos);
  }
  EXPECT_NE(job.table.find("unresolved"), std::string::npos);
  EXPECT_NE(job.table.find("times the electrons of equilibrium"), std::string::npos);
  EXPECT_NE(job.text.find(
                "ballistic_ratio,density_ratio,top_subband_share,top_share,tunnel_share,status\n"),
            std::string::npos);
  EXPECT_NE(job.text.find(",unresolved\n"), std::string::npos);
  EXPECT_EQ(job.text.find(",converged\n"), std::string::npos);
}

// The beam scheme keeps every law on that mesh.
TEST(Verdict, BeamBelowThresholdIsConverged) {
  const Job job("scheme = \"beam\"\n");
  for (const auto& point : job.summary["points"]) {
    EXPECT_EQ(point["status"], "converged");
    // V ends within 1e-6 V, which is 4e-5 kT.
    EXPECT_NEAR(point["density_ratio"].get<double>(), 1.0, 2e-4);
    EXPECT_LE(point["ballistic_ratio"].get<double>(), 1.0);
    EXPECT_LT(point["top_share"].get<double>(), 1e-6);
    // One subband is all that the deck has, so that it holds every electron.
    EXPECT_EQ(point["top_subband_share"], 1.0);
    EXPECT_NE(point["remarks"].dump().find("raise mesh.subbands"), std::string::npos);
  }
  EXPECT_EQ(job.text.find(",unresolved\n"), std::string::npos);
}

}  // namespace
}  // namespace quasi::mosfet
