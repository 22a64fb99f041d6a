// Tests runs of the beam scheme that start from the result of a run on another mesh.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

#include "tests/mosfet/fixtures.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/mosfet/mosfet_task.hpp"

namespace quasi::mosfet {
namespace {

class StoredStarts : public testing::Test {
 protected:
  /// Writes a deck of a small film on a mesh. @param run  further keys of the table [run]
  std::filesystem::path deck(const std::string& name, const std::string& mesh,
                             const std::string& run, const std::string& vds = "0.3") const {
    std::ofstream out(directory_.path() / name);
    out << "[geometry]\nsource_nm = 6\nchannel_nm = 8\ndrain_nm = 6\n[mesh]\n"
        << mesh << "\ndh_ev = 0.025\nnkappa = 4\n[bias]\nvgs = 0.4\nvds = " << vds
        << "\n[run]\nscheme = \"beam\"\n"
        << run << "\n";
    return directory_.path() / name;
  }
  nlohmann::json run(const std::filesystem::path& deck) const {
    RunOptions options;
    options.deck.path = deck;
    options.devices = {find_device("cpu")};
    options.output_directory = directory_.path();
    SilentProgress silent;
    return make_mosfet_task()->run(options, silent);
  }
  /// Runs the deck on a mesh and keeps its result under a name.
  nlohmann::json stored(const std::string& name, const std::string& mesh) const {
    const nlohmann::json summary = run(deck("stored.toml", mesh, ""));
    std::filesystem::rename(directory_.path() / "result.h5", directory_.path() / name);
    return summary;
  }
  std::string refusal(const std::filesystem::path& deck) const {
    try {
      run(deck);
    } catch (const InvalidInput& failure) {
      return failure.what();
    }
    return "";
  }
  static double number(const nlohmann::json& summary, const char* name, std::size_t k = 0) {
    return summary["points"][k][name].get<double>();
  }

  test::TemporaryDirectory directory_;
};

constexpr const char* kCoarse = "nx = 21\nnz = 9\nsubbands = 1";
constexpr const char* kFine = "nx = 41\nnz = 17\nsubbands = 2";
constexpr const char* kFrom = "start_from = \"coarse.h5\"";

// The steady state does not depend on its start. 1e-4: a point ends when V changes by less than
// 1e-6 V in a step, and a current follows V by less than 1/(25 mV).
TEST_F(StoredStarts, ARunOnAFinerMeshEndsWhereItDoesWithoutThem) {
  const nlohmann::json coarse = stored("coarse.h5", kCoarse);
  const nlohmann::json alone = run(deck("alone.toml", kFine, "")),
                       after = run(deck("after.toml", kFine, kFrom));
  const double current = number(alone, "current_a_per_m");
  EXPECT_GT(std::fabs(number(coarse, "current_a_per_m") / current - 1.0), 1e-3)
      << "the meshes must differ, else nothing is shown";
  EXPECT_NEAR(number(after, "current_a_per_m") / current, 1.0, 1e-4);
  EXPECT_LT(number(after, "line_solves"), number(alone, "line_solves"));
  const nlohmann::json again = run(deck("again.toml", kCoarse, kFrom));
  EXPECT_NEAR(number(again, "current_a_per_m") / number(coarse, "current_a_per_m"), 1.0, 1e-4);
  EXPECT_LT(number(again, "line_solves"), 0.8 * number(coarse, "line_solves"));
}

// A bias that the stored run lacks starts as without it, and the summary says how many do not.
TEST_F(StoredStarts, OtherBiasesStartAsUsual) {
  stored("coarse.h5", kCoarse);
  const nlohmann::json both = run(deck("both.toml", kCoarse, kFrom, "[0.1, 0.3]"));
  EXPECT_NE(both.dump().find("1 of 2 bias points start from coarse.h5"), std::string::npos)
      << both.dump(1);
  const nlohmann::json usual = run(deck("usual.toml", kCoarse, "", "[0.1, 0.3]"));
  EXPECT_EQ(number(both, "current_a_per_m", 0), number(usual, "current_a_per_m", 0));
}

TEST_F(StoredStarts, WhatDoesNotFitIsRefusedByName) {
  const std::string missing = refusal(deck("missing.toml", kCoarse, kFrom));
  EXPECT_NE(missing.find("run.start_from = \"coarse.h5\": there is no such file"),
            std::string::npos)
      << missing;
  stored("coarse.h5", kCoarse);
  std::ofstream(directory_.path() / "weno.toml")
      << "[mesh]\nnx = 33\nnz = 9\n[bias]\nvgs = 0.4\nvds = 0.3\n[run]\nscheme = \"weno\"\n"
      << kFrom << "\n";
  const std::string scheme = refusal(directory_.path() / "weno.toml");
  EXPECT_NE(scheme.find("start_from needs run.scheme = \"beam\""), std::string::npos) << scheme;
  std::ofstream(directory_.path() / "longer.toml")
      << "[mesh]\nnx = 33\nnz = 9\nsubbands = 1\ndh_ev = 0.025\nnkappa = 4\n"
      << "[bias]\nvgs = 0.4\nvds = 0.3\n[run]\nscheme = \"beam\"\n"
      << kFrom << "\n";
  const std::string longer = refusal(directory_.path() / "longer.toml");
  EXPECT_NE(longer.find("the stored device measures"), std::string::npos) << longer;
  {
    H5Writer other(directory_.path() / "coarse.h5");
    other.write("/points/0/vgs_v", std::vector<double>{0.4}, std::vector<std::int64_t>{1}, "V");
    other.commit();
  }
  const std::string poor = refusal(deck("poor.toml", kCoarse, kFrom));
  EXPECT_NE(poor.find("/points/0/vds_v"), std::string::npos) << poor;
}

}  // namespace
}  // namespace quasi::mosfet
