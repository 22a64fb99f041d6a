// Tests that the programs accept the options and variables in the units, images, compose file and
// Slurm scripts of deploy/ and in the Dockerfile.

#include <regex>
#include <set>

#include "tests/service/support/client_fixture.hpp"
#include "tests/support/reference_data.hpp"

namespace quasi::client {
namespace {

const std::string kBin = QUASI_BINARY_DIR;

std::string source(const std::string& name) { return slurp(test::source_dir() / name); }

/// The groups of every match of a pattern.
std::vector<std::smatch> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return {std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()};
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

class Deploy : public EndToEnd {
 protected:
  /// Runs `command` in bash, with the programs on the PATH and `variables` ("NAME=value") set.
  std::unique_ptr<Process> bash(const std::string& log, const std::string& command,
                                const std::vector<std::string>& variables = {}) {
    std::string script = "export PATH='" + path("bin").string() + ":" + kBin + ":/usr/bin:/bin'";
    for (const std::string& variable : variables)
      script += " " + variable.substr(0, variable.find('=')) + "='" +
                variable.substr(variable.find('=') + 1) + "'";
    return std::make_unique<Process>(
        std::vector<std::string>{"/bin/bash", "-c", script + "; exec " + command}, path(log),
        std::vector<std::string>{});
  }
};

TEST_F(Deploy, UnitsStartTheProgramsWithWhatTheyUnderstand) {
  const std::string config =
      file("gpu.toml", "server = \"unix:/run/quasi-worker/worker.sock\"\ndevices = \"nvml\"\n")
          .string();
  for (const char* unit : {"quasi-server.service", "quasi-worker@.service"}) {
    // systemd joins a line that ends with a backslash to the next line.
    const std::string text = std::regex_replace(source(std::string("deploy/systemd/") + unit),
                                                std::regex("\\\\\n *"), "");
    const auto starts = matches(text, "ExecStart=/usr/local/bin/([^\n]+)");
    ASSERT_EQ(starts.size(), 1u) << unit;
    std::string command = std::regex_replace(starts[0][1].str(), std::regex("%i"), "gpu");
    command = std::regex_replace(command, std::regex("/etc/quasi-worker/gpu.toml"), config);
    // The user of workers need not exist where the tests run.
    command =
        std::regex_replace(command, std::regex("--worker-uids quasi-worker"), "--worker-uids root");
    const auto checked = bash(unit, kBin + "/" + command + " --check-config");
    EXPECT_EQ(checked->wait_at_most(), 0) << command << '\n' << checked->err();
    EXPECT_NE(checked->out().find("sound"), std::string::npos) << checked->out();
  }
}

// The server and its workers are two users, so that no engine reaches the data of the server. The
// socket of workers lies in a folder of their group.
TEST_F(Deploy, UnitsKeepServerAndWorkersApart) {
  const std::string server = source("deploy/systemd/quasi-server.service"),
                    worker = source("deploy/systemd/quasi-worker@.service");
  EXPECT_EQ(matches(server, "\nUser=quasi\n").size(), 1u);
  EXPECT_EQ(matches(worker, "\nUser=quasi-worker\n").size(), 1u);
  EXPECT_EQ(
      matches(server, "install -d -m 2750 -o quasi -g quasi-worker /run/quasi-worker\n").size(),
      1u);
  EXPECT_EQ(matches(server, "--worker-listen unix:/run/quasi-worker/worker.sock ").size(), 1u);
  for (const std::string& unit : {server, worker}) {
    EXPECT_EQ(matches(unit, "\nWatchdogSec=\\d+s\n").size(), 1u);
    EXPECT_EQ(matches(unit, "\nMemoryMax=[0-9]+[G%]\n").size(), 1u);
  }
  const auto unknown =
      bash("unknown", kBin + "/quasi-server --check-config --worker-uids nobody-here");
  EXPECT_EQ(unknown->wait_at_most(), 78);
  EXPECT_NE(unknown->err().find("names of users of this machine, got \"nobody-here\""),
            std::string::npos)
      << unknown->err();
}

// In a user namespace of its own the server would take all users of its socket for one.
TEST_F(Deploy, TheUnitOfTheServerKnowsTheUsersOfItsSocket) {
  EXPECT_EQ(matches(source("deploy/systemd/quasi-server.service"), "\nPrivateUsers=no\n").size(),
            1u);
}

TEST_F(Deploy, ImagesCopyWhatIsThereAndSetWhatIsRead) {
  const std::string text = source("Dockerfile");
  for (const auto& copy : matches(text, "\nCOPY (?!--from)([^\n]+)")) {
    auto names = words_of(copy[1]);
    names.pop_back();
    for (const std::string& name : names)
      EXPECT_TRUE(fs::exists(test::source_dir() / name)) << name;
  }
  for (const auto& copy : matches(text, "/opt/quasi/bin/(quasi[a-z-]*)"))
    EXPECT_TRUE(fs::exists(kBin + "/" + copy[1].str())) << copy[1];
  std::size_t n_variables = 0;
  for (const auto& line : matches(text, "\nENV ([^\n]*QUASI_[^\n]*)"))
    for (const std::string& variable : words_of(line[1])) {
      const std::string name = variable.substr(0, variable.find('=')),
                        value = variable.substr(name.size() + 1);
      const std::string program = name.starts_with("QUASI_SERVER_")   ? "quasi-server"
                                  : name.starts_with("QUASI_WORKER_") ? "quasi-worker"
                                                                      : "quasi";
      const auto shown = bash(name, program + " --print-config", {variable});
      EXPECT_EQ(shown->wait_at_most(), 0) << shown->err();
      EXPECT_TRUE(
          std::regex_search(shown->out(), std::regex('"' + value + "\"\\]? *# [^\n]*" + name)))
          << program << " does not read " << name << '\n'
          << shown->out();
      ++n_variables;
    }
  EXPECT_EQ(n_variables, 6u) << "variables are set in another way than this test knows";
  const auto health =
      matches(text, "\nHEALTHCHECK [^\n]* CMD \\[\"quasi-server\", \"([^\"]+)\"\\]");
  ASSERT_EQ(health.size(), 1u);
  const auto probe =
      bash("probe", "quasi-server " + health[0][1].str(), {"QUASI_SERVER_LISTEN=" + socket()});
  EXPECT_EQ(probe->wait_at_most(), 0) << probe->err();
}

// An image is built from the sources and from nothing that lies beside them.
TEST_F(Deploy, TheBuilderOfImagesGetsTheSourcesAlone) {
  std::istringstream rules(source(".dockerignore"));
  std::set<std::string> sent;
  bool refuses_all = false;
  for (std::string line; std::getline(rules, line);) {
    if (line == "*") refuses_all = true;
    if (!line.starts_with('!')) continue;
    EXPECT_TRUE(refuses_all) << line << " comes before the rule that refuses all";
    sent.insert(line.substr(1));
    EXPECT_TRUE(fs::exists(test::source_dir() / line.substr(1))) << line;
  }
  std::set<std::string> needed{"CITATION.cff", "CMakeLists.txt", "LICENSE",
                               "README.md",    "deploy",         "docs"};
  for (const std::smatch& folder : matches(source("CMakeLists.txt"), "add_subdirectory\\(([a-z]+)"))
    needed.insert(folder[1]);
  needed.erase("tests");
  needed.erase("bench");
  EXPECT_EQ(sent, needed);
}

TEST_F(Deploy, ComposeBuildsTargetsAndArgumentsOfTheDockerfile) {
  const std::string compose = source("deploy/compose.yaml"), docker = source("Dockerfile");
  std::size_t n = 0;
  for (const auto& target : matches(compose, "target: (\\w+)")) {
    EXPECT_TRUE(std::regex_search(docker, std::regex(" AS " + target[1].str() + "\n")))
        << target[1];
    ++n;
  }
  for (const auto& argument : matches(compose, "\n +([A-Z_]+): ")) {
    EXPECT_TRUE(std::regex_search(docker, std::regex("\nARG " + argument[1].str() + "=")))
        << argument[1];
    ++n;
  }
  EXPECT_EQ(n, 7u) << "targets or arguments are written in another way than this test knows";
}

// Slurm announces the end of an allocation by a signal. The worker then drains and ends properly.
TEST_F(Deploy, TheWorkerOfAnAllocationServesUntilItIsTold) {
  worker_->end(SIGTERM);
  const auto script =
      bash("sbatch", "bash " + (test::source_dir() / "deploy/slurm/worker.sbatch").string(),
           {"QUASI_SERVER=" + socket(), "SLURM_JOB_ID=7", "TMPDIR=" + path("tmp").string(),
            "QUASI_WORKER_DEVICES=none"});
  const std::string id = submit(job("a", "[test.noop]"));
  EXPECT_EQ(quasi({"wait", id}).status, 0) << script->err();
  EXPECT_TRUE(fs::exists(path("tmp/quasi-worker-7/worker_id")));
  script->send(SIGTERM);
  EXPECT_EQ(script->wait_at_most(), 0) << script->err();
  EXPECT_NE(script->err().find("draining"), std::string::npos) << script->err();
}

// A script replaces srun: it drops the flags of srun and starts one rank.
TEST_F(Deploy, TheEngineOfAnAllocationRunsItsDeck) {
  fs::create_directories(path("bin"));
  file("bin/srun",
       "#!/bin/bash\necho \"$1 $2\" > " + path("flags").string() + "\nshift 2\nexec \"$@\"\n");
  fs::permissions(path("bin/srun"), fs::perms::owner_all);
  const auto script =
      bash("sbatch",
           "bash " + (test::source_dir() / "deploy/slurm/engine.sbatch").string() + " thermal " +
               (test::source_dir() / "examples/thermal/silicon-sw").string() + " --set ngrid=3,3,3",
           {"SLURM_JOB_ID=7", "QUASI_OUTPUT=" + path("result").string()});
  EXPECT_EQ(script->wait_at_most(), 0) << script->err();
  EXPECT_EQ(slurp(path("flags")), "--mpi=pmix --kill-on-bad-exit=1\n");
  EXPECT_TRUE(fs::exists(path("result/result.h5")));
  const auto bare = bash(
      "bare", "bash " + (test::source_dir() / "deploy/slurm/engine.sbatch").string() + " thermal",
      {"SLURM_JOB_ID=7"});
  EXPECT_EQ(bare->wait_at_most(), 2);
  EXPECT_NE(bare->err().find("usage: sbatch"), std::string::npos) << bare->err();
}

}  // namespace
}  // namespace quasi::client
