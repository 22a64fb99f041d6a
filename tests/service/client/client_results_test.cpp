// Results that are used again: kept by `quasi run --store`, and taken by a later job from an
// earlier one.

#include <cmath>

#include "tests/service/support/client_fixture.hpp"
#include "tests/support/reference_data.hpp"

namespace quasi::client {
namespace {

/// Programs of one user, without a server.
class KeptRuns : public EndToEnd {
 protected:
  void SetUp() override {}

  Ran run(const std::string& folder, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"run",
                                      "thermal",
                                      (test::source_dir() / "examples/thermal/silicon-sw").string(),
                                      "--set",
                                      "ngrid=3 3 3",
                                      "--store",
                                      path("store").string(),
                                      "-d",
                                      path(folder).string()};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = quasi(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran;
  }
  static bool is_taken(const Ran& ran) {
    return ran.err.find("took the result of an equal run") != std::string::npos;
  }
};

TEST_F(KeptRuns, AnEqualRunTakesTheKeptResult) {
  const Ran first = run("first");
  EXPECT_FALSE(is_taken(first));
  const Ran second = run("second");
  EXPECT_TRUE(is_taken(second)) << second.err;
  EXPECT_EQ(second.out, first.out);
  for (const char* name : {"result.h5", "summary.json", "table.txt"})
    EXPECT_EQ(slurp(path("second") / name), slurp(path("first") / name)) << name;
  EXPECT_FALSE(is_taken(run("other", {"--set", "T=310"})));
  EXPECT_FALSE(is_taken(run("anew", {"--refresh"})));
  EXPECT_TRUE(is_taken(run("second", {"--force"})));
  const Ran document = run("third", {"--json"});
  EXPECT_EQ(json::parse(document.out)["schema"], "quasi.run.v1") << document.out;
  EXPECT_EQ(quasi({"run", "thermal", "deck", "--refresh"}).status, 2);
}

TEST_F(KeptRuns, ADamagedFileIsComputedAgain) {
  const std::string result = (run("first"), slurp(path("first/result.h5")));
  for (const auto& entry : fs::recursive_directory_iterator(path("store/blobs")))
    if (entry.is_regular_file() && fs::file_size(entry) == result.size()) {
      fs::permissions(entry, fs::perms::owner_all);
      std::fstream(entry.path(), std::ios::in | std::ios::out | std::ios::binary).put('!');
    }
  const Ran second = run("second");
  EXPECT_FALSE(is_taken(second));
  EXPECT_NE(second.err.find("damaged"), std::string::npos) << second.err;
  EXPECT_EQ(slurp(path("second/result.h5")), result);
  EXPECT_TRUE(is_taken(run("third"))) << "the computed result was not kept";
}

// A sweep runs each point once.
TEST_F(KeptRuns, ASweepTakesThePointsThatAreThere) {
  run("one", {"--set", "T=300"});
  const Ran sweep = run("sweep", {"--sweep", "T=300,310"});
  EXPECT_TRUE(is_taken(sweep)) << sweep.err;
  EXPECT_NE(slurp(path("sweep/sweep.csv")).find("succeeded"), std::string::npos);
}

// ε⁻¹ of one job is the input of two others, which only sum Σ. The stored ε⁻¹ has 8 digits, so that
// Σ agrees with that of the whole job to 1e-6 eV.
TEST_F(EndToEnd, EpsilonOfOneJobGoesIntoSigmaOfOthers) {
  const std::string mean_field =
      "kind = \"gw\"\n[meanfield]\nsource = \"epm\"\ncrystal = \"silicon\"\ncutoff_ry = 5.0\n"
      "k_grid = [2, 2, 2]\nbands = 12\n";
  const std::string sigma =
      "[sigma]\nmethod = \"hl-gpp\"\nbands = 10\nband_min = 2\nband_max = 4\n"
      "kpoints = [[0.0, 0.0, 0.0]]\n";
  const auto whole =
      file("whole.toml", mean_field + "[epsilon]\ncutoff_ry = 3.0\nbands = 10\n" + sigma);
  const auto last = file("last.toml", mean_field +
                                          "[epsilon]\neps0mat = \"eps0mat.h5\"\nepsmat = "
                                          "\"epsmat.h5\"\n" +
                                          sigma);
  const std::string first = submit(whole.string());
  const std::string from = "=" + first + ":";
  const Ran sent = quasi({"submit", "gw", last.string(), "--sweep", "sigma.bands=9,10", "--take",
                          "deck/eps0mat.h5" + from + "eps0mat.h5", "--take",
                          "deck/epsmat.h5" + from + "epsmat.h5"});
  ASSERT_EQ(sent.status, 0) << sent.err;
  ASSERT_EQ(quasi({"wait", "last"}).status, 0);
  const auto states = [&](const std::string& job) {
    const json shown = json::parse(quasi({"show", job, "--json"}).out)["jobs"][0];
    EXPECT_EQ(shown["state"], "succeeded") << shown;
    EXPECT_EQ(quasi({"fetch", job, "-d", path(job).string()}).status, 0);
    const json summary = json::parse(slurp(path(job) / "summary.json"));
    return summary.value("summary", summary).at("quasiparticles");
  };
  const json expected = states(first);
  const std::string list = quasi({"list", "-o", "name"}).out;
  const std::string tenth = list.substr(0, 28), ninth = list.substr(29, 28);
  const json with_ten = states(tenth), with_nine = states(ninth);
  ASSERT_EQ(with_ten.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double sigma_ev = expected[i]["sigma_ev"];
    EXPECT_NEAR(with_ten[i]["sigma_ev"], sigma_ev, 1e-6);
    EXPECT_GT(std::abs(with_nine[i]["sigma_ev"].get<double>() - sigma_ev), 1e-3);
  }
}

}  // namespace
}  // namespace quasi::client
