// Tests jobs that differentiate κ: the datasets of result.h5, the summary, the table, and settings
// that exclude a derivative.

#include <gtest/gtest.h>

#include <numeric>

#include "tests/thermal/decks/checked_deck.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/thermal/solver/transport/derivative/kappa_derivative.hpp"

namespace quasi::thermal {
namespace {

const std::vector<std::string> kSettings{"ngrid=4,4,4",    "T=200,400",      "isotopes=F",
                                         "autoisotopes=F", "masses=28.0855", "gfactors=0",
                                         "derivative=T"};

std::vector<std::string> with(std::vector<std::string> more) {
  more.insert(more.begin(), kSettings.begin(), kSettings.end());
  return more;
}

/// Runs the deck silicon-sw into a directory and returns the summary.
nlohmann::json run_into(const std::filesystem::path& directory,
                        const std::vector<std::string>& settings) {
  SilentProgress silent;
  const RunOptions options{
      .deck = {.path = test::model("silicon-sw"), .settings = test::settings_of(settings)},
      .devices = {Device{}},
      .output_directory = directory,
      .checkpoint_directory = directory};
  return make_thermal_task()->run(options, silent);
}

// A job writes the numbers of the library for every temperature, and the blocks that they belong
// to. Only three phonons scatter here, so that all constants together change κ by −2 % for 1 %. The
// iteration ends at a residual of 1e-5.
TEST(DerivativeJob, WritesTheDerivativeOfEveryConstant) {
  for (const bool iterated : {true, false}) {
    const quasi::test::TemporaryDirectory out;
    const auto settings = with({iterated ? "convergence=T" : "convergence=F"});
    const nlohmann::json summary = run_into(out.path(), settings);
    const auto solved = test::solve_deck(test::model("silicon-sw"), settings);
    const H5Reader file(out.path() / "result.h5");
    const std::vector<double> values = file.doubles("/derivative/third_order");
    const SparseForceConstants& constants = solved->deck.third_order;
    EXPECT_EQ(file.shape("/derivative/third_order"),
              (std::vector<std::int64_t>{2, constants.n_blocks(), 3, 3, 3}));
    EXPECT_EQ(file.integers("/derivative/atom"),
              std::vector<std::int64_t>(constants.atom.begin(), constants.atom.end()));
    EXPECT_EQ(file.integers("/derivative/cell"),
              std::vector<std::int64_t>(constants.cell.begin(), constants.cell.end()));
    const std::size_t size = constants.tensor.size();
    ASSERT_EQ(values.size(), 2 * size);
    const Transport transport = solved->transport();
    constexpr double kThird = 1.0 / 3;
    for (std::size_t t = 0; t < 2; ++t) {
      const std::vector<double> wanted =
          kappa_derivative({transport, solved->problem, solved->run.by_temperature[t]},
                           iterated ? KappaSolution::kIterated : KappaSolution::kRelaxationTime,
                           {Vec3{kThird, 0, 0}, Vec3{0, kThird, 0}, Vec3{0, 0, kThird}});
      EXPECT_EQ(std::vector<double>(values.begin() + t * size, values.begin() + (t + 1) * size),
                wanted);
      const auto& kappa = summary[iterated ? "kappa_w_per_mk" : "kappa_rta_w_per_mk"][t];
      const double euler = summary["derivative"]["euler_w_per_mk"][t].get<double>();
      EXPECT_NEAR(euler / kappa[0][0].get<double>(), -2.0, 1e-4);
    }
    const std::string table = make_thermal_task()->table(summary);
    EXPECT_NE(table.find(iterated ? "change of κ (BTE)" : "change of κ (RTA)"), std::string::npos);
    EXPECT_NE(table.find("     200.00     -2.0000 %"), std::string::npos) << table;
  }
}

TEST(DerivativeJob, IsAbsentUnlessAskedFor) {
  const quasi::test::TemporaryDirectory out;
  const nlohmann::json summary = run_into(out.path(), with({"derivative=F"}));
  EXPECT_FALSE(summary.contains("derivative"));
  EXPECT_FALSE(H5Reader(out.path() / "result.h5").has("/derivative/third_order"));
}

TEST(DerivativeJob, RefusesSumsThatItDoesNotDifferentiate) {
  using Settings = std::vector<std::string>;
  for (const Settings& settings :
       {Settings{"onlyharmonic=T"}, Settings{"num_sample_process_3ph=100", "convergence=F"},
        Settings{"target_kappa_error=0.01", "convergence=F"},
        Settings{"four_phonon=T", "four_phonon_iteration=T"}, Settings{"broadening=adaptive-max"},
        Settings{"compat=fourphonon"}}) {
    try {
      read_deck(test::model("silicon-sw"), test::settings_of(with(settings)));
      ADD_FAILURE() << "no refusal of " << settings[0];
    } catch (const InvalidInput& refusal) {
      EXPECT_NE(std::string(refusal.what()).find("'derivative'"), std::string::npos)
          << refusal.what();
    }
  }
}

}  // namespace
}  // namespace quasi::thermal
