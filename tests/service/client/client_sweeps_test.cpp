// Tests sweeps and chains of real jobs: a figure of a result stops the rest of a sweep, and a job
// on a finer mesh follows that on a coarser one.

#include <algorithm>
#include <fstream>

#include "tests/service/support/client_fixture.hpp"
#include "tests/support/reference_data.hpp"

namespace quasi::client {
namespace {

class SweepsEndToEnd : public EndToEnd {
 protected:
  static std::string deck() {
    return (test::source_dir() / "examples/thermal/silicon-sw").string();
  }
  json shown(const std::string& id) {
    return json::parse(quasi({"show", id, "--json"}).out)["jobs"][0];
  }
  /// Submits one job on a mesh and returns its id.
  std::string submit_mesh(const std::string& mesh, std::vector<std::string> more) {
    // The coarsest mesh has few processes.
    std::vector<std::string> words = {
        "submit", "thermal", deck(), "--set", "ngrid=" + mesh, "--set", "allow_few_processes=T",
        "-o",     "name"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = quasi(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.out.substr(0, ran.out.find('\n'));
  }
};

// Two of three temperatures meet a rule, so the third is not computed. A rule about a figure that
// no result has is shown as such.
TEST_F(SweepsEndToEnd, AFigureStopsTheRest) {
  const Ran sent = quasi({"submit", "thermal", deck(), "--set", "ngrid=3 3 3", "--sweep",
                          "T=300,400,500", "--max-concurrent", "1", "--stop-when",
                          "kappa_w_per_mk.xx>0:2", "--stop-when", "kapa<1"});
  ASSERT_EQ(sent.status, 0) << sent.err;
  const std::string set = sent.out.substr(sent.out.find("s_"), 28);
  EXPECT_EQ(quasi({"wait", set}).status, 14) << "some jobs succeeded, and one was cancelled";
  const std::string page = quasi({"show", set}).out;
  EXPECT_NE(page.find("kappa_w_per_mk.xx > 0 in 2 jobs; met by 2 so far"), std::string::npos)
      << page;
  EXPECT_NE(page.find("kapa < 1; met by 0 so far; 2 results have no number of this name"),
            std::string::npos)
      << page;
  const json document = json::parse(quasi({"show", set, "--json"}).out)["set"];
  EXPECT_EQ(document["counts"], json({{"succeeded", 2}, {"cancelled", 1}}));
  EXPECT_EQ(document["stop_rules"][0]["comparison"], ">");
  EXPECT_EQ(document["stop_rules"][1]["jobs_lacking"], 2);
  EXPECT_FALSE(document["stop_reason"].is_null());

  const std::string last = quasi({"list", "-o", "name"}).out.substr(0, 28);
  const std::string reason = "its set stopped, because kappa_w_per_mk.xx > 0 in 2 jobs: ";
  EXPECT_NE(quasi({"why", last}).out.find("it was cancelled: " + reason), std::string::npos);
  EXPECT_NE(quasi({"show", last}).out.find(reason), std::string::npos) << quasi({"show", last}).out;
  EXPECT_EQ(shown(last)["cancel_reason"].get<std::string>().find(reason), 0u);

  const Ran wrong = quasi(
      {"submit", "thermal", deck(), "--sweep", "T=300,400", "--stop-when", "kappa_w_per_mk.xx"});
  EXPECT_EQ(wrong.status, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("it has none of <, <=, > and >="), std::string::npos) << wrong.err;
}

// A rule stops a sweep that runs without a server, too.
TEST_F(SweepsEndToEnd, AFigureStopsARun) {
  const Ran ran =
      quasi({"run", "thermal", deck(), "--set", "ngrid=3 3 3", "--sweep", "T=300,400,500",
             "--stop-when", "kappa_w_per_mk.xx>0:2", "-d", path("runs").string()});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.err.find("stopped because kappa_w_per_mk.xx > 0 in 2 jobs: "), std::string::npos)
      << ran.err;
  EXPECT_NE(ran.err.find("1 jobs were not run"), std::string::npos) << ran.err;
  const std::string table = slurp(path("runs/sweep.csv"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3) << table;
}

// Each mesh waits for the success of the coarser one. The chain ends where a mesh fails.
TEST_F(SweepsEndToEnd, AMeshFollowsAMesh) {
  std::vector<std::string> ids;
  for (const char* mesh : {"2 2 2", "3 3 3", "4 4 4"})
    ids.push_back(submit_mesh(mesh, ids.empty() ? std::vector<std::string>{}
                                                : std::vector<std::string>{"--after", ids.back()}));
  ASSERT_EQ(quasi({"wait", ids.back()}).status, 0);
  for (std::size_t i = 1; i < ids.size(); ++i)
    EXPECT_GE(shown(ids[i])["started"].get<std::string>(), shown(ids[i - 1])["ended"]) << i;
  const std::string table = quasi({"table", ids[0], ids[1], ids[2]}).out;
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4) << table;

  // The first job holds the others back until all of them wait.
  const std::string first = submit_mesh("16 16 16", {});
  const std::string hopeless = submit_mesh("0 0 0", {"--no-check", "--after-any", first});
  const std::string after = submit_mesh("3 3 3", {"--after", hopeless});
  EXPECT_EQ(quasi({"cancel", first}).status, 0);
  EXPECT_EQ(quasi({"wait", after}).status, 3);
  EXPECT_EQ(shown(after)["failure"]["reason"], "DEPENDENCY");
}

// A job on a finer mesh takes the result of the coarser one, and starts from it.
TEST_F(SweepsEndToEnd, AFinerMeshStartsFromTheResultOfACoarserOne) {
  const auto deck_of = [&](const std::string& name, const std::string& nodes,
                           const std::string& run) {
    std::ofstream(path(name)) << "[geometry]\nsource_nm = 6\nchannel_nm = 8\ndrain_nm = 6\n[mesh]\n"
                              << nodes << "\nsubbands = 1\ndh_ev = 0.025\nnkappa = 4\n"
                              << "[bias]\nvgs = 0.4\nvds = 0.3\n[run]\nscheme = \"beam\"\n"
                              << run << "\n";
    return path(name).string();
  };
  const Ran first =
      quasi({"submit", "mosfet", deck_of("coarse.toml", "nx = 21\nnz = 9", ""), "-o", "name"});
  ASSERT_EQ(first.status, 0) << first.err;
  const std::string coarse = first.out.substr(0, first.out.find('\n'));
  const Ran second = quasi({"submit", "mosfet",
                            deck_of("fine.toml", "nx = 41\nnz = 17", "start_from = \"coarse.h5\""),
                            "--take", "deck/coarse.h5=" + coarse + ":result.h5", "-o", "name"});
  ASSERT_EQ(second.status, 0) << second.err;
  const std::string fine = second.out.substr(0, second.out.find('\n'));
  ASSERT_EQ(quasi({"wait", fine}).status, 0) << quasi({"logs", fine}).out;
  const std::string log = quasi({"logs", fine}).out;
  EXPECT_NE(log.find("1 of 1 bias points start from coarse.h5"), std::string::npos) << log;
}

}  // namespace
}  // namespace quasi::client
