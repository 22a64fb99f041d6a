// Tests what users see of κ: the table of a run, and the progress of its iteration.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tests/thermal/decks/checked_deck.hpp"

namespace quasi::thermal {
namespace {

constexpr const char* kTensorTitle = "xx          yy          zz";

// An isotropic κ at several temperatures has one row each. One temperature, and an anisotropic κ,
// have whole tensors.
TEST(KappaTable, SeveralTemperaturesAreOneRowEach) {
  const auto task = make_thermal_task();
  const auto summary = test::run_deck(test::silicon(), {"ngrid=3,3,3", "T=200,300,400"});
  const std::string table = task->table(summary);
  EXPECT_NE(table.find("      T (K)         RTA         BTE        coh.       total\n"),
            std::string::npos)
      << table;
  for (int t = 0; t < 3; ++t) {
    const auto at = [&](const char* key) { return summary[key][t][0][0].get<double>(); };
    char line[128];
    std::snprintf(line, sizeof line, "%11.2f%12.5g%12.5g%12.5g%12.5g\n", 200.0 + 100.0 * t,
                  at("kappa_rta_w_per_mk"), at("kappa_w_per_mk"), at("kappa_coherence_w_per_mk"),
                  at("kappa_w_per_mk") + at("kappa_coherence_w_per_mk"));
    EXPECT_NE(table.find(line), std::string::npos) << line << table;
  }
  EXPECT_NE(table.find("three phonons iterated: at most "), std::string::npos) << table;
  auto stretched = summary;
  stretched["kappa_w_per_mk"][1][2][2] = 1.01 * summary["kappa_w_per_mk"][1][2][2].get<double>();
  EXPECT_NE(task->table(stretched).find(kTensorTitle), std::string::npos);
  const auto one = test::run_deck(test::silicon(), {"ngrid=3,3,3", "T=300"});
  EXPECT_NE(task->table(one).find(kTensorTitle), std::string::npos);
}

/// Keeps the reported shares of the iteration.
class IterationShares : public SilentProgress {
 public:
  std::vector<double> shares;

 protected:
  void on_report(std::string_view phase, std::int64_t done, std::int64_t total) override {
    if (phase == "iterate")
      shares.push_back(static_cast<double>(done) / static_cast<double>(total));
  }
};

// An iteration reports how far its residual has come. Its share of 'maxiter' would stay near 0.
TEST(KappaTable, TheProgressOfAnIterationFollowsItsResidual) {
  for (const char* solver : {"solver=cg", "solver=gmres", "solver=fixed-point"}) {
    const quasi::test::TemporaryDirectory out;
    IterationShares progress;
    const RunOptions options{
        .deck = {.path = test::silicon(), .settings = test::settings_of({"ngrid=4,4,4", solver})},
        .devices = {Device{}},
        .output_directory = out.path(),
        .checkpoint_directory = out.path()};
    make_thermal_task()->run(options, progress);
    ASSERT_GE(progress.shares.size(), 3u) << solver;
    EXPECT_TRUE(std::is_sorted(progress.shares.begin(), progress.shares.end())) << solver;
    EXPECT_GT(progress.shares.front(), 0.0) << solver;
    EXPECT_LT(progress.shares.front(), 0.6) << solver;
    EXPECT_GT(progress.shares.back(), 0.9) << solver;
  }
}

}  // namespace
}  // namespace quasi::thermal
