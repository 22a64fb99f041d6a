#include "tests/engine/ranks_job.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/support/gw_decks.hpp"
#include "tests/support/mosfet_decks.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/io/hdf5.hpp"

extern char** environ;

namespace quasi::test {

namespace fs = std::filesystem;

namespace {

// Tests run more ranks than processors, and as root in containers.
const bool environment_set = [] {
  for (const char* name :
       {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS", "OMPI_MCA_rmaps_base_oversubscribe"})
    setenv(name, "1", 1);
  // Copies between processes need a right that containers lack.
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
  // All ranks run on one host: the launcher need not look for ssh.
  setenv("OMPI_MCA_plm_rsh_agent", "true", 1);
  // The ranks share all processors.
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
  // lsan.supp knows the MPI library by whole stacks.
  setenv("ASAN_OPTIONS", "fast_unwind_on_malloc=0", 0);
  return true;
}();

}  // namespace

Words engine(const std::string& kind, const fs::path& deck, const fs::path& output,
             const Words& settings) {
  Words words{QUASI_ENGINE, "run",     kind, deck.string(),  "--device",
              "cpu",        "--quiet", "-d", output.string()};
  for (const auto& setting : settings) words.insert(words.end(), {"--set", setting});
  return words;
}

Words silicon(const fs::path& output, const Words& more) {
  Words settings{"four_phonon=.true.", "four_phonon_iteration=.true.", "scalebroad=0.5"};
  settings.insert(settings.end(), more.begin(), more.end());
  return engine("thermal", source_dir() / "examples/thermal/silicon-sw", output, settings);
}

fs::path write_deck(const fs::path& place, const std::string& text) {
  fs::create_directories(place);
  std::ofstream(place / "deck.toml") << text;
  return place / "deck.toml";
}

fs::path write_sweep(const fs::path& place, const std::string& mode) {
  const std::string more =
      mode == "transient" ? "mode = \"transient\"\n[output]\npdf_at_fs = [3.0]\n" : "";
  return write_deck(place, kMosfetCoarse + R"([bias]
vgs = [0.4, 0.5, 0.6]
vds = [0.1, 0.2]
[run]
t_end_fs = 14.0
steady_tol = 0.2
window_fs = 5.0
refresh_steps = 10
)" + more);
}

const Words kThermal{"/rates/4ph_total",
                     "/rates/4ph_recombination_normal",
                     "/rates/4ph_redistribution_umklapp",
                     "/rates/4ph_splitting_normal",
                     "/phase_space/4ph_processes_redistribution",
                     "/rates/3ph_absorption",
                     "/rates/3ph_emission",
                     "/kappa/rta",
                     "/kappa/converged"};

const std::string kGwDecks[2] = {kGwGamma, kGwGrid};
const Words kGw{"/epsilon/head_inverse", "/quasiparticles/x_ev",     "/quasiparticles/sx_ev",
                "/quasiparticles/ch_ev", "/quasiparticles/sigma_ev", "/quasiparticles/z"};

Words mosfet_datasets() {
  Words names{"/iv/I_mean", "/iv/t", "/iv/steps"};
  for (int point = 0; point < 6; ++point)
    for (const char* name : {"potential", "density", "current_x", "history", "terminals"})
      names.push_back("/points/" + std::to_string(point) + "/" + name);
  return names;
}

Job start(const Programs& programs, const fs::path& log) {
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

namespace {

int exit_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

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

int run(const Programs& programs, const fs::path& log) { return wait_for(start(programs, log)); }

void expect_same_bits(const fs::path& one, const fs::path& other, const Words& datasets) {
  const H5Reader a(one / "result.h5"), b(other / "result.h5");
  for (const auto& name : datasets) {
    EXPECT_FALSE(a.doubles(name).empty());
    EXPECT_EQ(a.doubles(name), b.doubles(name)) << name;
  }
}

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

bool has_checkpoint(const fs::path& output) {
  std::error_code none;
  for (const auto& file : fs::directory_iterator(output / "checkpoint", none))
    if (file.path().extension() != ".tmp") return true;
  return false;
}

void signal_all(const std::vector<pid_t>& ranks, int number) {
  for (const pid_t rank : ranks) kill(rank, number);
}

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
  ADD_FAILURE() << "every job ended before it could be stopped";
  return {};
}

void Ranks::SetUp() {
  static const TemporaryDirectory place;
  static const int status = run({{2, {"true"}}}, place.path() / "log");
  if (status != 0)
    GTEST_SKIP() << QUASI_MPIEXEC
                 << " cannot start two processes here: " << text_of(place.path() / "log");
}

}  // namespace quasi::test
