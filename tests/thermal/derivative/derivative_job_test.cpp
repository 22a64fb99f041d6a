// Tests jobs that differentiate κ: the datasets of result.h5, the summary, the table, and settings
// that exclude a derivative.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/thermal/decks/checked_deck.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/force_constants/covariance.hpp"
#include "workers/thermal/solver/transport/derivative/constants_error.hpp"
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

// The parts of both orders add up to −2κ, since nothing else scatters. The iteration ends at a
// residual of 1e-5.
TEST(DerivativeJob, WritesTheDerivativeOfTheFourthOrder) {
  const quasi::test::TemporaryDirectory out;
  const auto settings = with({"four_phonon=T", "derivative_fourth_order=T"});
  const nlohmann::json summary = run_into(out.path(), settings);
  const H5Reader file(out.path() / "result.h5");
  const SparseForceConstants constants =
      *read_deck(test::model("silicon-sw"), test::settings_of(settings)).fourth_order;
  const std::vector<double> values = file.doubles("/derivative/fourth_order");
  EXPECT_EQ(file.shape("/derivative/fourth_order"),
            (std::vector<std::int64_t>{2, constants.n_blocks(), 3, 3, 3, 3}));
  EXPECT_EQ(file.integers("/derivative/fourth_order_atom"),
            std::vector<std::int64_t>(constants.atom.begin(), constants.atom.end()));
  EXPECT_EQ(file.integers("/derivative/fourth_order_cell"),
            std::vector<std::int64_t>(constants.cell.begin(), constants.cell.end()));
  for (std::size_t t = 0; t < 2; ++t) {
    const double fourth = summary["derivative"]["euler_fourth_order_w_per_mk"][t].get<double>();
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(t * constants.tensor.size());
    EXPECT_NEAR(std::inner_product(constants.tensor.begin(), constants.tensor.end(), first, 0.0),
                fourth, 1e-9 * std::fabs(fourth));
    const double euler = summary["derivative"]["euler_w_per_mk"][t].get<double>();
    EXPECT_NEAR((euler + fourth) / summary["kappa_w_per_mk"][t][0][0].get<double>(), -2.0, 1e-4);
  }
  EXPECT_GT(summary["seconds"]["derivative_4ph"].get<double>(), 0.0);
  EXPECT_NE(make_thermal_task()->table(summary).find("and all of fourth order"), std::string::npos);
}

/// A copy of the deck silicon-sw with a covariance of one parameter, the size of all constants.
class DeckWithCovariance {
 public:
  DeckWithCovariance() {
    std::filesystem::copy(test::model("silicon-sw"), place_.path(),
                          std::filesystem::copy_options::recursive);
    const SparseForceConstants& constants =
        read_deck(place_.path(), test::settings_of(kSettings)).third_order;
    for (std::int64_t i = 0; i < 27 * constants.n_blocks(); ++i) {
      const std::int64_t block = i / 27;
      parameter.push_back(0);
      for (std::int64_t k = 0; k < 3; ++k) atom.push_back(constants.atom[3 * block + k]);
      for (std::int64_t k = 0; k < 6; ++k) cell.push_back(constants.cell[6 * block + k]);
      for (const std::int64_t x : {i / 9 % 3, i / 3 % 3, i % 3}) component.push_back(x);
      value.push_back(constants.tensor[i]);
    }
  }

  std::filesystem::path write() const {
    const auto m = static_cast<std::int64_t>(value.size());
    const auto n = static_cast<std::int64_t>(std::lround(std::sqrt(covariance.size())));
    H5Writer out(place_.path() / "covariance.hdf5");
    out.write("/covariance", covariance, {n, n}, "1");
    out.write("/basis/parameter", parameter, {m}, "1");
    out.write("/basis/atom", atom, {m, 3}, "1");
    out.write("/basis/cell", cell, {m, 2, 3}, "1");
    out.write("/basis/component", component, {m, 3}, "1");
    out.write("/basis/value", value, {m}, "eV/angstrom^3");
    out.commit();
    return place_.path();
  }

  std::vector<std::int64_t> parameter, atom, cell, component;
  std::vector<double> value, covariance{1e-4};

 private:
  quasi::test::TemporaryDirectory place_;
};

// An error of 1 % of all constants is one of 2 % of κ, since three phonons alone scatter.
TEST(DerivativeJob, WritesTheErrorBarOfACovariance) {
  const DeckWithCovariance deck;
  const quasi::test::TemporaryDirectory out;
  SilentProgress silent;
  const auto settings = with({"convergence=F"});
  const nlohmann::json summary = make_thermal_task()->run(
      {.deck = {.path = deck.write(), .settings = test::settings_of(settings)},
       .devices = {Device{}},
       .output_directory = out.path(),
       .checkpoint_directory = out.path()},
      silent);
  const H5Reader file(out.path() / "result.h5");
  const auto error = file.doubles("/derivative/kappa_error");
  const auto gradient = file.doubles("/derivative/by_parameter");
  EXPECT_EQ(file.shape("/derivative/by_parameter"), (std::vector<std::int64_t>{2, 1}));
  for (std::size_t t = 0; t < 2; ++t) {
    const double euler = summary["derivative"]["euler_w_per_mk"][t].get<double>();
    const double kappa = summary["kappa_rta_w_per_mk"][t][0][0].get<double>();
    EXPECT_NEAR(gradient[t] / euler, 1.0, 1e-10);
    EXPECT_NEAR(error[t] / (0.02 * kappa), 1.0, 1e-8);
    EXPECT_EQ(summary["derivative"]["kappa_error_w_per_mk"][t].get<double>(), error[t]);
  }
  const std::string table = make_thermal_task()->table(summary);
  EXPECT_NE(table.find("standard error of κ from the covariance"), std::string::npos) << table;
}

TEST(DerivativeJob, RefusesCovariancesThatAreNone) {
  const auto refusal = [](const DeckWithCovariance& deck,
                          const std::vector<std::string>& settings) {
    try {
      const std::filesystem::path place = deck.write();
      read_covariance(place / "covariance.hdf5",
                      read_deck(place, test::settings_of(settings)).third_order);
    } catch (const InvalidInput& failure) {
      return std::string(failure.what());
    }
    return std::string("no refusal");
  };
  const auto expect = [&](const DeckWithCovariance& deck, const char* part) {
    const std::string message = refusal(deck, kSettings);
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_NE(message.find("covariance.hdf5"), std::string::npos) << message;
  };
  DeckWithCovariance deck;
  EXPECT_EQ(refusal(deck, kSettings), "no refusal");
  deck.covariance = {1.0, 0.1, 0.2, 1.0};
  expect(deck, "is not symmetric");
  deck.covariance = {-1.0};
  expect(deck, "negative variance, of parameter 0");
  deck.covariance = {1.0};
  deck.parameter[3] = 1;
  expect(deck, "holds 1; parameters count from 0 to 0");
  deck.parameter[3] = 0;
  deck.component[5] = 3;
  expect(deck, "components are 0, 1 or 2");
  deck.component[5] = 0;
  deck.cell[0] = 7;
  expect(deck, "names a triple that the third order does not have");
  for (const bool derivative : {true, false}) {
    const DeckSource source{
        .path = deck.write(),
        .settings = test::settings_of(with({derivative ? "derivative=T" : "derivative=F"}))};
    if (derivative)
      EXPECT_THROW(make_thermal_task()->validate(source, Device{}), InvalidInput);
    else
      EXPECT_NO_THROW(make_thermal_task()->validate(source, Device{}));
  }
  EXPECT_THROW(kappa_error_of_constants({.n_parameters = 2,
                                         .basis = {{0, 0, 1.0}, {1, 0, 1.0}},
                                         .covariance = {1.0, -2.0, -2.0, 1.0}},
                                        {1.0}),
               InvalidInput);
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
        Settings{"compat=fourphonon"}, Settings{"derivative_fourth_order=T"},
        Settings{"four_phonon=T", "derivative_fourth_order=T", "num_sample_process_4ph=100"}}) {
    try {
      read_deck(test::model("silicon-sw"), test::settings_of(with(settings)));
      ADD_FAILURE() << "no refusal of " << settings[0];
    } catch (const InvalidInput& refusal) {
      EXPECT_NE(std::string(refusal.what()).find("'derivative"), std::string::npos)
          << refusal.what();
    }
  }
}

}  // namespace
}  // namespace quasi::thermal
