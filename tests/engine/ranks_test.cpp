// One job on several processes, started by the MPI launcher: the same bits as one process, and a
// clean end whatever happens to any of them.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/gw/support/loop_files.hpp"
#include "tests/support/gw_decks.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/io/hdf5.hpp"

extern char** environ;

namespace quasi {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

const bool environment_set = [] {
  // More ranks than processors, and root in a container, are what a test has.
  for (const char* name :
       {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS", "OMPI_MCA_rmaps_base_oversubscribe"})
    setenv(name, "1", 1);
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none",
         1);                                                // needs a right that containers lack
  setenv("OMPI_MCA_plm_rsh_agent", "true", 1);              // one host: no ssh is looked for
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);  // ranks share what processors there are
  setenv("ASAN_OPTIONS", "fast_unwind_on_malloc=0",
         0);  // whole stacks, by which lsan.supp knows the library
  return true;
}();

/// quasi-engine run of a deck into `output`.
Words engine(const std::string& kind, const fs::path& deck, const fs::path& output,
             const Words& settings = {}) {
  Words words{QUASI_ENGINE, "run",     kind, deck.string(),  "--device",
              "cpu",        "--quiet", "-d", output.string()};
  for (const auto& setting : settings) words.insert(words.end(), {"--set", setting});
  return words;
}

Words silicon(const fs::path& output, const Words& more = {}) {
  Words settings{"four_phonon=.true.", "four_phonon_iteration=.true.", "scalebroad=0.5"};
  settings.insert(settings.end(), more.begin(), more.end());
  return engine("thermal", test::source_dir() / "examples/thermal/silicon-sw", output, settings);
}

struct Job {
  pid_t pid = -1;
  fs::path log;
};

/// Starts programs of the launcher: {n, words}, joined by ":". n = 0: no launcher.
Job start(const std::vector<std::pair<int, Words>>& programs, const fs::path& log) {
  Words words;
  if (programs.front().first > 0) words.emplace_back(QUASI_MPIEXEC);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (i > 0) words.emplace_back(":");
    if (programs[i].first > 0) words.insert(words.end(), {"-n", std::to_string(programs[i].first)});
    words.insert(words.end(), programs[i].second.begin(), programs[i].second.end());
  }
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  Job job{.pid = -1, .log = log};
  EXPECT_EQ(posix_spawn(&job.pid, argv[0], &files, nullptr, argv.data(), environ), 0) << argv[0];
  posix_spawn_file_actions_destroy(&files);
  return job;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Only a test that hangs waits so long: nothing is concluded from how soon a job was over.
constexpr std::chrono::seconds kHang{200};

int exit_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Exit status; a job that does not end is killed, and fails the test.
int wait_for(const Job& job) {
  int status = 0;
  for (const auto until = std::chrono::steady_clock::now() + kHang;
       std::chrono::steady_clock::now() < until;) {
    if (waitpid(job.pid, &status, WNOHANG) == job.pid) return exit_status(status);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ADD_FAILURE() << "the job hangs: " << text_of(job.log);
  kill(job.pid, SIGKILL);
  waitpid(job.pid, &status, 0);
  return -1;
}

int run(const std::vector<std::pair<int, Words>>& programs, const fs::path& log) {
  return wait_for(start(programs, log));
}

/// Process ids of the ranks of a job whose command line names `output`, in the order of their
/// ranks.
std::vector<pid_t> ranks_of(const fs::path& output) {
  std::vector<std::pair<std::string, pid_t>> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/proc", none)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string command = text_of(entry.path() / "cmdline"),
                      environment = text_of(entry.path() / "environ");
    const auto at = environment.find("OMPI_COMM_WORLD_RANK=");
    if (command.find(QUASI_ENGINE) != 0 || command.find(output.string()) == std::string::npos ||
        at == std::string::npos)
      continue;
    found.emplace_back(environment.substr(at, environment.find('\0', at) - at), std::stoi(name));
  }
  std::sort(found.begin(), found.end());
  std::vector<pid_t> pids;
  for (const auto& [rank, pid] : found) pids.push_back(pid);
  return pids;
}

/// Waits until `ready`; false after a while.
template <typename Ready>
bool eventually(const Ready& ready) {
  for (const auto until = std::chrono::steady_clock::now() + kHang;
       std::chrono::steady_clock::now() < until;) {
    if (ready()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

void expect_same_bits(const fs::path& one, const fs::path& other, const Words& datasets) {
  const H5Reader a(one / "result.h5"), b(other / "result.h5");
  for (const auto& name : datasets) {
    EXPECT_FALSE(a.doubles(name).empty());
    EXPECT_EQ(a.doubles(name), b.doubles(name)) << name;
  }
}

/// Skips where the launcher cannot start anything, a program of nobody's included.
class Ranks : public testing::Test {
 protected:
  void SetUp() override {
    static const test::TemporaryDirectory place;
    static const int status = run({{2, {"true"}}}, place.path() / "log");
    if (status != 0)
      GTEST_SKIP() << QUASI_MPIEXEC
                   << " cannot start two processes here: " << text_of(place.path() / "log");
  }
};

const Words kThermal{"/rates/4ph_total",
                     "/rates/4ph_recombination_normal",
                     "/rates/4ph_redistribution_umklapp",
                     "/rates/4ph_splitting_normal",
                     "/phase_space/4ph_processes_redistribution",
                     "/rates/3ph_absorption",
                     "/rates/3ph_emission",
                     "/kappa/rta",
                     "/kappa/converged"};

TEST_F(Ranks, ThermalGivesTheSameBitsOnAnyNumber) {
  const test::TemporaryDirectory place;
  const Words mesh{"ngrid=4 4 4"};
  ASSERT_EQ(run({{0, silicon(place.path() / "alone", mesh)}}, place.path() / "log"), 0)
      << text_of(place.path() / "log");
  for (const int n : {1, 2, 4}) {
    const fs::path output = place.path() / ("ranks" + std::to_string(n));
    ASSERT_EQ(run({{n, silicon(output, mesh)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    SCOPED_TRACE(std::to_string(n) + " ranks");
    expect_same_bits(place.path() / "alone", output, kThermal);
    EXPECT_NE(text_of(output / "summary.json").find("\"ranks\": " + std::to_string(n)),
              std::string::npos);
  }
}

// Draws are shared out like tiles.
TEST_F(Ranks, SampledRatesToo) {
  const test::TemporaryDirectory place;
  for (const Words& sampling :
       {Words{"ngrid=4 4 4", "sampling=by-weight", "num_sample_process_4ph=64",
              "four_phonon_iteration=.false."},
        Words{"ngrid=3 3 3", "sampling=uniform", "num_sample_process_4ph=40000",
              "four_phonon_iteration=.false."}}) {
    SCOPED_TRACE(sampling[1]);
    const fs::path alone = place.path() / ("alone" + sampling[1]),
                   shared = place.path() / ("shared" + sampling[1]);
    ASSERT_EQ(run({{0, silicon(alone, sampling)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    ASSERT_EQ(run({{3, silicon(shared, sampling)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    expect_same_bits(alone, shared, {"/rates/4ph_total", "/kappa/rta"});
  }
}

const std::string kGwDecks[2] = {test::kGwGamma, test::kGwGrid};
const Words kGw{"/epsilon/head_inverse", "/quasiparticles/x_ev",     "/quasiparticles/sx_ev",
                "/quasiparticles/ch_ev", "/quasiparticles/sigma_ev", "/quasiparticles/z"};

fs::path write_deck(const fs::path& place, const std::string& text) {
  fs::create_directories(place);
  std::ofstream(place / "deck.toml") << text;
  return place / "deck.toml";
}

TEST_F(Ranks, GwGivesTheSameBitsOnAnyNumber) {
  const test::TemporaryDirectory place;
  for (const std::string& text : kGwDecks) {
    const fs::path deck = write_deck(place.path() / std::to_string(text == kGwDecks[1]), text),
                   alone = deck.parent_path() / "alone";
    ASSERT_EQ(run({{0, engine("gw", deck, alone)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    for (const int n : {2, 4}) {
      SCOPED_TRACE(text + std::to_string(n) + " ranks");
      const fs::path output = deck.parent_path() / std::to_string(n);
      ASSERT_EQ(run({{n, engine("gw", deck, output)}}, place.path() / "log"), 0)
          << text_of(place.path() / "log");
      expect_same_bits(alone, output, kGw);
      EXPECT_EQ(text_of(alone / "epsmat.h5").size(), text_of(output / "epsmat.h5").size());
      EXPECT_FALSE(fs::exists(output / "checkpoint") && !fs::is_empty(output / "checkpoint"))
          << "a finished job leaves no checkpoint";
    }
  }
}

/// Six bias points: three chains of two points in steady mode, six chains in transient mode, which
/// writes pdfs too. Of four ranks one has no chain in steady mode.
fs::path write_sweep(const fs::path& place, const std::string& mode) {
  const std::string more =
      mode == "transient" ? "mode = \"transient\"\n[output]\npdf_at_fs = [3.0]\n" : "";
  return write_deck(place, R"(kind = "mosfet"
checkpoint_interval_s = 0.0
[mesh]
nx = 33
nz = 17
subbands = 1
nw = 12
nphi = 8
wmax_ev = 0.9
[bias]
vgs = [0.4, 0.5, 0.6]
vds = [0.1, 0.2]
[run]
t_end_fs = 14.0
steady_tol = 0.2
window_fs = 5.0
refresh_steps = 10
)" + more);
}

Words mosfet_datasets() {
  Words names{"/iv/I_mean", "/iv/t", "/iv/steps"};
  for (int point = 0; point < 6; ++point)
    for (const char* name : {"potential", "density", "current_x", "history", "terminals"})
      names.push_back("/points/" + std::to_string(point) + "/" + name);
  return names;
}

TEST_F(Ranks, MosfetSweepsGiveTheSameBitsOnAnyNumber) {
  const test::TemporaryDirectory place;
  for (const std::string mode : {"steady", "transient"}) {
    const fs::path deck = write_sweep(place.path() / mode, mode),
                   alone = deck.parent_path() / "alone";
    ASSERT_EQ(run({{0, engine("mosfet", deck, alone)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    for (const int n : {2, 4}) {
      SCOPED_TRACE(mode + ", " + std::to_string(n) + " ranks");
      const fs::path output = deck.parent_path() / std::to_string(n);
      ASSERT_EQ(run({{n, engine("mosfet", deck, output)}}, place.path() / "log"), 0)
          << text_of(place.path() / "log");
      expect_same_bits(alone, output, mosfet_datasets());
      EXPECT_EQ(text_of(alone / "iv.csv"), text_of(output / "iv.csv"));
      for (int point = 0; mode == "transient" && point < 6; ++point) {
        const std::string name = "pdf_" + std::to_string(point) + "_0.h5";
        EXPECT_EQ(H5Reader(alone / name).doubles("/pdf"), H5Reader(output / name).doubles("/pdf"));
      }
    }
  }
}

// Every turn of a loop is a sum over all ranks, whose results all of them go on with; so is the
// full matrix after it.
TEST_F(Ranks, GwLoopsAndTheFullMatrixGiveTheSameBits) {
  const test::TemporaryDirectory place;
  for (const auto& [name, more, datasets] :
       {std::tuple{"evgw0", test::kEigenvalueLoop, kGw},
        std::tuple{"qsgw0", test::kStateLoop,
                   Words{"/quasiparticles/mean_field_ev", "/quasiparticles/x_ev",
                         "/quasiparticles/sigma_ev"}},
        std::tuple{
            "matrix", test::kFullMatrix,
            Words{"/quasiparticles/sigma_ev", "/quasiparticles/qp1_ev", "/quasiparticles/z"}}}) {
    SCOPED_TRACE(name);
    const fs::path deck = test::write_loop_job(place.path() / name, more),
                   alone = deck.parent_path() / "alone", shared = deck.parent_path() / "shared";
    ASSERT_EQ(run({{0, engine("gw", deck, alone)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    ASSERT_EQ(run({{2, engine("gw", deck, shared)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    expect_same_bits(alone, shared, datasets);
  }
}

// A node that does not see the deck: its message, its status, and no rank left waiting.
TEST_F(Ranks, AFailureInOneEndsAllWithItsMessage) {
  const test::TemporaryDirectory place;
  const Words good = silicon(place.path() / "out", {"ngrid=8 8 8"});
  const int status = run(
      {{1, good}, {1, engine("thermal", place.path() / "absent", place.path() / "out")}, {1, good}},
      place.path() / "log");
  const std::string log = text_of(place.path() / "log");
  EXPECT_EQ(status, 10) << log;
  EXPECT_NE(log.find("error: rank 1: deck '" + (place.path() / "absent").string() + "'"),
            std::string::npos)
      << log;
  EXPECT_EQ(log.find("error: rank 0"), std::string::npos) << log;
  EXPECT_FALSE(fs::exists(place.path() / "out" / "result.h5"));
}

// Ranks that read different decks would add up what does not belong together.
TEST_F(Ranks, DifferentDecksAreNoticed) {
  const test::TemporaryDirectory place;
  const int status = run({{1, silicon(place.path() / "out", {"ngrid=4 4 4"})},
                          {1, silicon(place.path() / "out", {"ngrid=4 4 4", "scalebroad=0.4"})}},
                         place.path() / "log");
  const std::string log = text_of(place.path() / "log");
  EXPECT_EQ(status, 10) << log;
  EXPECT_NE(log.find("rank 1 found other bits for the phonon modes"), std::string::npos) << log;
}

// The two commands take the same --device.
TEST(EngineCommand, ValidateTakesSeveralDevicesAsRunDoes) {
  const test::TemporaryDirectory place;
  const Words validate{QUASI_ENGINE, "validate", "mosfet",
                       (test::source_dir() / "examples/mosfet/iv_coarse.toml").string(),
                       "--device"};
  for (const auto& [devices, status] : {std::pair{"cpu,cpu", 0}, {"cpu,gpu", 10}, {"", 10}}) {
    Words words = validate;
    words.emplace_back(devices);
    EXPECT_EQ(run({{0, words}}, place.path() / "log"), status) << text_of(place.path() / "log");
  }
}

TEST_F(Ranks, AModeThatCannotBeSharedIsRefused) {
  const test::TemporaryDirectory place;
  const int status =
      run({{2, engine("mosfet", test::source_dir() / "examples/mosfet/equilibrium.toml",
                      place.path() / "out")}},
          place.path() / "log");
  const std::string log = text_of(place.path() / "log");
  EXPECT_EQ(status, 10) << log;
  EXPECT_NE(log.find("runs in one process, 2 ranks were started"), std::string::npos) << log;
}

bool has_checkpoint(const fs::path& output) {
  std::error_code none;
  for (const auto& file : fs::directory_iterator(output / "checkpoint", none))
    if (file.path().extension() != ".tmp") return true;
  return false;
}

void signal_all(const std::vector<pid_t>& ranks, int number) {
  for (const pid_t rank : ranks) kill(rank, number);
}

/// A job of n ranks, all of them held (SIGSTOP) once `ready` was seen and before a result was
/// written. One that was over before, which a slow machine may do, shows nothing: begun again then,
/// from nothing.
struct HeldJob {
  Job job;
  std::vector<pid_t> ranks;  ///< empty: none was caught, which fails the test
};
HeldJob hold(int n, const Words& words, const fs::path& output, const fs::path& log,
             const std::function<bool()>& ready) {
  for (int tries = 0; tries < 20; ++tries) {
    const Job job = start({{n, words}}, log);
    int status = 0;
    bool ended = false;
    EXPECT_TRUE(eventually([&] {
      ended = waitpid(job.pid, &status, WNOHANG) == job.pid;
      return ended || (ready() && ranks_of(output).size() == static_cast<std::size_t>(n));
    })) << text_of(log);
    if (!ended) {
      const std::vector<pid_t> ranks = ranks_of(output);
      signal_all(ranks, SIGSTOP);
      if (ranks.size() == static_cast<std::size_t>(n) && !fs::exists(output / "result.h5"))
        return {job, ranks};
      signal_all(ranks, SIGCONT);
      status = wait_for(job);
    } else {
      status = exit_status(status);
    }
    EXPECT_EQ(status, 0) << text_of(log);
    fs::remove_all(output);
  }
  ADD_FAILURE() << "always over before it was seen";
  return {};
}

const Words kLonger{"ngrid=5 5 5", "checkpoint_interval_s=0",
                    "four_phonon_iteration=.false."};  // 8 tiles

// Cancelled in one rank, resumed by another number of them, at last by one process.
TEST_F(Ranks, ACancelledJobIsResumedByAnotherNumber) {
  const test::TemporaryDirectory place;
  const fs::path whole = place.path() / "whole", broken = place.path() / "broken";
  ASSERT_EQ(run({{0, silicon(whole, kLonger)}}, place.path() / "log"), 0)
      << text_of(place.path() / "log");
  for (const int n : {2, 3}) {
    int status = 0;
    for (int tries = 0; status == 0 && tries < 20;
         ++tries) {  // 0: the rank had nothing left to be cancelled
      fs::remove_all(broken);
      const HeldJob held = hold(n, silicon(broken, kLonger), broken, place.path() / "log",
                                [&] { return has_checkpoint(broken); });
      ASSERT_FALSE(held.ranks.empty());
      kill(held.ranks.back(), SIGTERM);
      signal_all(held.ranks, SIGCONT);
      status = wait_for(held.job);
    }
    const std::string log = text_of(place.path() / "log");
    EXPECT_EQ(status, 14) << log;
    EXPECT_NE(log.find("error: rank " + std::to_string(n - 1) + ": cancelled"), std::string::npos)
        << log;
    ASSERT_TRUE(has_checkpoint(broken));
    ASSERT_EQ(run({{n == 2 ? 4 : 0, silicon(broken, kLonger)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    expect_same_bits(whole, broken, kThermal);
  }
}

// Killed in one rank after some checkpoint, resumed by another number, at last by one process.
TEST_F(Ranks, AKilledGwJobIsResumedByAnotherNumber) {
  const test::TemporaryDirectory place;
  for (const std::string& text : kGwDecks) {
    const fs::path deck = write_deck(place.path() / std::to_string(text == kGwDecks[1]), text),
                   alone = deck.parent_path() / "alone", broken = deck.parent_path() / "broken";
    ASSERT_EQ(run({{0, engine("gw", deck, alone)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    for (const int n : {2, 3}) {
      const HeldJob held = hold(n, engine("gw", deck, broken), broken, place.path() / "log",
                                [&] { return has_checkpoint(broken); });
      ASSERT_FALSE(held.ranks.empty());
      kill(held.ranks.back(), SIGKILL);
      signal_all(held.ranks, SIGCONT);
      EXPECT_NE(wait_for(held.job), 0) << text_of(place.path() / "log");
    }
    ASSERT_EQ(
        run({{text == kGwDecks[0] ? 4 : 0, engine("gw", deck, broken)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    expect_same_bits(alone, broken, kGw);
  }
}

// The states of points that were under way in other ranks are in the checkpoint of rank 0.
TEST_F(Ranks, AKilledMosfetSweepIsResumedByAnotherNumber) {
  const test::TemporaryDirectory place;
  const fs::path deck = write_sweep(place.path(), "steady"), whole = place.path() / "whole",
                 broken = place.path() / "broken";
  ASSERT_EQ(run({{0, engine("mosfet", deck, whole)}}, place.path() / "log"), 0)
      << text_of(place.path() / "log");
  for (const int n : {2, 3}) {
    const HeldJob held = hold(n, engine("mosfet", deck, broken), broken, place.path() / "log",
                              [&] { return has_checkpoint(broken); });
    ASSERT_FALSE(held.ranks.empty());
    kill(held.ranks.back(), SIGKILL);
    signal_all(held.ranks, SIGCONT);
    EXPECT_NE(wait_for(held.job), 0) << text_of(place.path() / "log");
  }
  ASSERT_EQ(run({{0, engine("mosfet", deck, broken)}}, place.path() / "log"), 0)
      << text_of(place.path() / "log");
  expect_same_bits(whole, broken, mosfet_datasets());
  EXPECT_EQ(text_of(whole / "iv.csv"), text_of(broken / "iv.csv"));
}

// A rank that the kernel kills takes the job with it, and what was finished is kept.
TEST_F(Ranks, AKilledRankEndsTheJob) {
  const test::TemporaryDirectory place;
  const fs::path whole = place.path() / "whole", broken = place.path() / "broken";
  ASSERT_EQ(run({{0, silicon(whole, kLonger)}}, place.path() / "log"), 0);
  for (const std::size_t victim : {0, 1}) {
    fs::remove_all(broken);
    const HeldJob held = hold(2, silicon(broken, kLonger), broken, place.path() / "log",
                              [&] { return has_checkpoint(broken); });
    ASSERT_FALSE(held.ranks.empty());
    kill(held.ranks[victim], SIGKILL);
    signal_all(held.ranks, SIGCONT);
    const int status = wait_for(held.job);
    const std::string log = text_of(place.path() / "log");
    EXPECT_NE(status, 0);
    EXPECT_NE(log.find("rank " + std::to_string(victim)), std::string::npos) << log;
    EXPECT_NE(log.find("signal 9"), std::string::npos) << log;
    EXPECT_FALSE(fs::exists(broken / "result.h5"));
    EXPECT_TRUE(eventually([&] { return ranks_of(broken).empty(); })) << "a rank is left";
  }
  ASSERT_EQ(run({{0, silicon(broken, kLonger)}}, place.path() / "log"), 0)
      << text_of(place.path() / "log");
  expect_same_bits(whole, broken, kThermal);
}

}  // namespace
}  // namespace quasi
