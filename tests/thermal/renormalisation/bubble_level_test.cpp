// Tests jobs whose renormalised phonons have the static bubble (docs/theory/thermal.md 14.1).

#include <gtest/gtest.h>

#include <cmath>

#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/renormalisation/ladder_job.hpp"

namespace quasi::thermal::test {
namespace {

// The mesh is the supercell of the deck, so that its file can hold the bubble. κ of the job follows
// from the bubble's phonons, and its levels stand beside those of the others.
TEST(Ladder, TheBubbleIsALevelOfItsOwn) {
  const quasi::test::TemporaryDirectory out;
  const Settings mesh{"ngrid=3,3,3", "eps=1e-9"};
  Settings settings = mesh;
  settings.insert(settings.end(), {"renormalise=T", "renormalise_bubble=T", "T=300,900"});
  const auto ladder = run(model("silicon-sw"), settings, out.path() / "ladder");
  for (std::size_t t = 0; t < 2; ++t) {
    const DeckCopy deck(model("silicon-sw"));
    for (const char* group : {"/ladder/correction", "/ladder/bubble"})
      add_correction_to_file(out.path() / "ladder/result.h5", t, 3,
                             deck.path() / "FORCE_CONSTANTS_2ND", group);
    Settings own = mesh;
    own.push_back(t == 0 ? "T=300" : "T=900");
    const auto job = run(deck.path(), own, out.path() / ("job " + std::to_string(t)));
    for (const auto& [solution, key] :
         {std::pair{"RTA", "kappa_rta_w_per_mk"}, {"BTE", "kappa_w_per_mk"}})
      expect_equal_tensors(level_of(ladder, "renormalised+bubble", "3ph", solution, t), job[key][0],
                           1e-9, solution);
    EXPECT_EQ(ladder["kappa_w_per_mk"][t],
              level_of(ladder, "renormalised+bubble", "3ph", "BTE", t));
    const double without = level_of(ladder, "renormalised", "3ph", "BTE", t)[0][0];
    EXPECT_GT(std::fabs(ladder["kappa_w_per_mk"][t][0][0].get<double>() / without - 1.0), 1e-3);
  }
  const H5Reader result(out.path() / "ladder/result.h5");
  const auto omega = result.doubles("/ladder/omega"), with = result.doubles("/ladder/bubble_omega");
  ASSERT_EQ(omega.size(), with.size());
  for (std::size_t i = 0; i < omega.size(); ++i) EXPECT_LE(with[i], omega[i] + 1e-6);
  const std::string table = make_thermal_task()->table(ladder);
  EXPECT_NE(table.find("renormalised+bubble  3ph"), std::string::npos) << table;
  EXPECT_TRUE(fs::exists(out.path() / "ladder/bubble_900K/result.h5"));
  const auto report = make_thermal_task()->validate(
      source_of(model("silicon-sw"), {"ngrid=3,3,3", "renormalise=T", "renormalise_bubble=T"}),
      Device{});
  EXPECT_EQ(report["plan"]["ladder"]["cases"], 3);
}

}  // namespace
}  // namespace quasi::thermal::test
