// What the client reads and writes on this machine: configuration, state, decks, job files.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "client/commands/submit.hpp"
#include "client/engine/local_check.hpp"
#include "client/input/config.hpp"
#include "client/input/deck.hpp"
#include "client/input/job_file.hpp"
#include "client/session/durable_file.hpp"
#include "client/session/state.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::client {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

Environment environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

/// The failure of `body`; the test fails if there is none.
template <typename Body>
Failure failure_in(Body&& body) {
  try {
    body();
  } catch (const Failure& failure) {
    return failure;
  }
  ADD_FAILURE() << "did not fail";
  return {ExitStatus::kOk, ""};
}

#define EXPECT_SAYS(failure, part) \
  EXPECT_NE(std::string((failure).what()).find(part), std::string::npos) << (failure).what()

class ClientFiles : public testing::Test {
 protected:
  fs::path path(const std::string& name) const { return directory_.path() / name; }
  fs::path file(const std::string& name, const std::string& text) const {
    write(path(name), text);
    return path(name);
  }

 private:
  test::TemporaryDirectory directory_;
};

TEST_F(ClientFiles, ConfigurationRises) {
  const fs::path system =
      file("etc.toml", "timeout = \"20s\"\n[context.lab]\naddress = \"lab:1\"\n");
  const fs::path own =
      file("own.toml",
           "[context]\nuse = \"lab\"\n[context.lab]\naddress = \"lab:2\"\ntimeout = \"30s\"\n"
           "[context.home]\naddress = \"unix:/s\"\n");
  Config config = load_config({system, own}, environment({{"HOME", "/h"}}), {});
  EXPECT_EQ(config.address.value, "lab:2");
  EXPECT_EQ(config.address.origin, own.string() + ":4");
  EXPECT_EQ(config.timeout_s.value, 30.0);
  EXPECT_EQ(config.state_directory.value, "/h/.local/state/quasi");

  config = load_config({system, own}, environment({{"QUASI_CONTEXT", "home"}}), {});
  EXPECT_EQ(config.address.value, "unix:/s");
  EXPECT_EQ(config.timeout_s.value, 20.0);
  config = load_config({system, own},
                       environment({{"QUASI_SERVER", "env:1"}, {"QUASI_TIMEOUT", "1m"}}), {});
  EXPECT_EQ(config.address.value, "env:1");
  EXPECT_EQ(config.timeout_s.value, 60.0);
  config = load_config({system, own}, environment({{"QUASI_SERVER", "env:1"}}),
                       {.context = {}, .server = "flag:1", .timeout = "5s"});
  EXPECT_EQ(config.address.value, "flag:1");
  EXPECT_EQ(config.address.origin, "--server");
  EXPECT_EQ(load_config({}, environment({}), {}).address.value, "127.0.0.1:7460");
}

TEST_F(ClientFiles, WrongConfigurationNamesFileLineAndNearestKey) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"timout = \"1s\"", ":1: unknown key 'timout' in "},
      {"timeout = 15", ":1: 'timeout' must be a text"},
      {"timeout = \"soon\"", ":1: 'timeout' must be a time above zero"},
      {"\n[context.lab]\nadress = \"a:1\"",
       ":3: unknown key 'adress' in [context.lab]; did you mean 'address'?"},
      {"[context.lab]\n", ":1: [context.lab] has no 'address'"},
      {"context = 3", ":1: 'context' must be a table"},
      {"[context]\nlab = 3", ":2: 'context.lab' must be a table"},
      {"timeout = \"1s", ":1:"}};
  for (const auto& [text, says] : table) {
    const fs::path at = file("c.toml", text);
    const Failure failure = failure_in([&] { load_config({at}, environment({}), {}); });
    EXPECT_EQ(failure.status, ExitStatus::kInvalidInput) << text;
    EXPECT_SAYS(failure, at.string() + says);
  }
  const fs::path at = file("c.toml", "[context.lab]\naddress = \"a:1\"\n");
  const Failure failure = failure_in([&] {
    load_config({at}, environment({{"QUASI_CONTEXT", "lap"}}), {});
  });
  EXPECT_SAYS(failure, "no context 'lap' (named by QUASI_CONTEXT); did you mean 'lab'?");
  EXPECT_SAYS(failure_in([&] {
                load_config({at}, environment({{"QUASI_SERVER", "http://lab:7460"}}), {});
              }),
              "'http://lab:7460' is no address of a server (QUASI_SERVER)");
}

TEST_F(ClientFiles, PendingSubmissionsSurviveAndComeOldestFirst) {
  const State state(path("state"));
  EXPECT_EQ(state.pending_count(), 0u);
  EXPECT_TRUE(state.pending().empty());
  state.add_pending({.request_id = "b",
                     .created_ms = 2,
                     .address = "a:1",
                     .store_id = "s",
                     .request_json = R"({"jobs":[{"name":"κ"}]})"});
  state.add_pending({.request_id = "a",
                     .created_ms = 1,
                     .address = "a:1",
                     .store_id = "s",
                     .request_json = "{}"});
  write(path("state/pending/c.json.tmp123"), "half a fi");  // what a crash leaves
  EXPECT_EQ(State(path("state")).pending_count(), 2u);
  EXPECT_EQ(failure_in([] { State("").add_pending({}); }).status,
            ExitStatus::kLocalFile);  // no HOME: never into the current folder
  const auto entries = State(path("state")).pending();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].request_id, "a");
  EXPECT_EQ(entries[1].request_json, R"({"jobs":[{"name":"κ"}]})");
  state.remove_pending("a");
  state.remove_pending("a");
  EXPECT_EQ(state.pending().size(), 1u);
  // Nobody else on the machine may read what a person submits.
  EXPECT_EQ(fs::status(path("state/pending")).permissions(), fs::perms::owner_all);

  write(path("state/pending/d.json"), "{\"request_id\": 3}");
  EXPECT_SAYS(failure_in([&] { state.pending(); }), "d.json");
}

TEST_F(ClientFiles, LastIsTheNewestSubmission) {
  const State state(path("state"));
  EXPECT_TRUE(state.last().empty());
  state.remember_last({"j_1", "j_2"});
  state.remember_last({"j_3"});
  EXPECT_EQ(State(path("state")).last(), (std::vector<std::string>{"j_3"}));
}

TEST_F(ClientFiles, DurableFilesSayWhatFailed) {
  const Failure failure = failure_in([&] { write_durably(path("absent/file"), "x"); });
  EXPECT_EQ(failure.status, ExitStatus::kLocalFile);
  EXPECT_SAYS(failure, "absent/file");
  EXPECT_SAYS(failure, "No such file");
  write_durably(path("file"), std::string(100'000, 'x'));
  EXPECT_EQ(read_whole(path("file"), 1 << 20).size(), 100'000u);
  EXPECT_SAYS(failure_in([&] { read_whole(path("file"), 10); }), "larger than 10 bytes");
}

TEST_F(ClientFiles, ADeckDirectoryTravelsWithoutItsResults) {
  for (const char* name : {"CONTROL", "FORCE_CONSTANTS_2ND", "FORCE_CONSTANTS_3RD", "BTE.kappa",
                           "README.md", ".hidden", "T300K/BTE.w"})
    file(std::string("si/") + name, name);
  const Deck deck = collect_deck("thermal", path("si"));
  EXPECT_EQ(deck.slot, "deck");
  std::vector<std::string> slots;
  for (const LocalInput& input : deck.inputs) slots.push_back(input.slot);
  EXPECT_EQ(slots, (std::vector<std::string>{"deck/CONTROL", "deck/FORCE_CONSTANTS_2ND",
                                             "deck/FORCE_CONSTANTS_3RD"}));
  EXPECT_EQ(deck.inputs[0].size_bytes, 7u);
  EXPECT_SAYS(failure_in([&] { collect_deck("gw", path("si")); }), "holds no file of a gw deck");
}

TEST_F(ClientFiles, SymbolicLinksAreRefusedWithTheCommandThatHelps) {
  file("wfn", "data");
  fs::create_directories(path("gw"));
  fs::create_symlink(path("wfn"), path("gw/WFN"));
  const Failure failure = failure_in([&] { collect_deck("gw", path("gw")); });
  EXPECT_EQ(failure.status, ExitStatus::kInvalidInput);
  EXPECT_SAYS(failure, "symbolic link");
  EXPECT_NE(failure.remedy.find("cp --remove-destination"), std::string::npos);
}

TEST_F(ClientFiles, ATomlDeckBringsTheFilesItNames) {
  file("d/deck.toml",
       "kind = \"gw\"\n[meanfield]\nwfn = \"WFN\"\nrho = \"sub/RHO\"\nmethod = \"none\"\n");
  file("d/WFN", "w");
  file("d/sub/RHO", "r");
  file("d/other", "o");
  const Deck deck = collect_deck("gw", path("d/deck.toml"));
  EXPECT_EQ(deck.slot, "deck/deck.toml");
  std::vector<std::string> slots;
  for (const LocalInput& input : deck.inputs) slots.push_back(input.slot);
  EXPECT_EQ(slots, (std::vector<std::string>{"deck/WFN", "deck/deck.toml", "deck/sub/RHO"}));

  file("outside", "x");
  file("d/bad.toml", "kind = \"gw\"\nwfn = \"../outside\"\n");
  const Failure failure = failure_in([&] { collect_deck("gw", path("d/bad.toml")); });
  EXPECT_SAYS(failure, "bad.toml:2: '../outside' lies outside the deck's directory");
  EXPECT_EQ(collect_deck("gw", file("d/my deck.toml", "a = 1")).slot, "deck/deck.toml");
}

// A thermal deck in TOML: the files of its directory travel, results and other decks there do not.
TEST_F(ClientFiles, ATomlDeckBringsTheDirectoryItNames) {
  file("t/deck.toml", "kind = \"thermal\"\ndirectory = \"si\"\nT = 300\n");
  for (const char* name :
       {"t/si/POSCAR", "t/si/fc2.hdf5", "t/si/fc3.hdf5", "t/si/BORN", "t/si/phono3py_disp.yaml",
        "t/si/result.h5", "t/si/other.toml", "t/unrelated"})
    file(name, "x");
  const auto slots_of = [&](const fs::path& deck) {
    std::vector<std::string> slots;
    for (const LocalInput& input : collect_deck("thermal", deck).inputs)
      slots.push_back(input.slot);
    return slots;
  };
  EXPECT_EQ(slots_of(path("t/deck.toml")),
            (std::vector<std::string>{"deck/deck.toml", "deck/si/BORN", "deck/si/POSCAR",
                                      "deck/si/fc2.hdf5", "deck/si/fc3.hdf5",
                                      "deck/si/phono3py_disp.yaml"}));
  EXPECT_EQ(slots_of(file("t/si/here.toml", "kind = \"thermal\"\ndirectory = \".\"\n")),
            (std::vector<std::string>{"deck/BORN", "deck/POSCAR", "deck/fc2.hdf5", "deck/fc3.hdf5",
                                      "deck/here.toml", "deck/phono3py_disp.yaml"}));
  EXPECT_SAYS(
      failure_in([&] { collect_deck("thermal", file("t/a.toml", "directory = \"../t2\"")); }),
      "lies outside the deck's directory");
  EXPECT_SAYS(
      failure_in([&] { collect_deck("thermal", file("t/b.toml", "directory = \"gone\"")); }),
      "no directory");
}

TEST_F(ClientFiles, NamesThatCannotBeSlotsAreSaidToBeSo) {
  EXPECT_EQ(slot_problem("deck/WFN_2-x.h5"), "");
  for (const char* wrong : {"", "/a", "a//b", "a/", ".a", "a/..", "a b", "a/b/c/d/e/f/g/h/i", "κ"})
    EXPECT_NE(slot_problem(wrong), "") << wrong;
  file("d/in put", "x");
  EXPECT_SAYS(failure_in([&] { collect_deck("other", path("d")); }), "cannot travel");
  EXPECT_EQ(failure_in([&] { local_input("a", path("nothing")); }).status, ExitStatus::kLocalFile);
  EXPECT_EQ(failure_in([&] { local_input("a b", path("d")); }).status, ExitStatus::kUsage);
}

TEST_F(ClientFiles, ADeckIsAJobAndItsJobTableSetsTheRest) {
  const fs::path deck =
      file("nano.toml",
           "kind = \"mosfet\"\n[geometry]\nchannel_nm = 10.0\n"
           "[job]\nname = \"Nanosheet\"\npriority = -3\nmax_runtime = \"2h\"\ndevice = \"cuda\"\n"
           "labels = { project = \"thesis\" }\n[job.retry]\nmax_attempts = 2\n");
  const std::vector<JobRequest> jobs = jobs_from_file(deck);
  ASSERT_EQ(jobs.size(), 1u);
  const v1::JobSpec& spec = jobs[0].spec;
  EXPECT_EQ(spec.name(), "Nanosheet");
  EXPECT_EQ(spec.priority(), -3);
  EXPECT_EQ(spec.max_runtime().seconds(), 7200);
  EXPECT_EQ(spec.labels().at("project"), "thesis");
  EXPECT_EQ(spec.retry().max_attempts(), 2u);
  EXPECT_EQ(spec.mosfet().device(), v1::DEVICE_PREFERENCE_CUDA);
  EXPECT_EQ(spec.mosfet().deck(), "deck/nano.toml");
  EXPECT_EQ(jobs[0].deck, deck);
  check_limits(jobs);
  EXPECT_EQ(jobs_from_file(file("plain.toml", "kind = \"mosfet\"\n"))[0].spec.name(), "plain");
}

TEST_F(ClientFiles, AJobFileIsTheSpecInTomlOrJson) {
  file("si/CONTROL", "c");
  file("extra", "e");
  const fs::path toml =
      file("job.toml",
           "name = \"si\"\nnot_before = 2030-01-31T08:00:00Z\n"
           "[thermal]\ndeck = \"si\"\nsettings = { T = 300, compat = \"fourphonon\" }\n"
           "exports = [\"bte\"]\n[resources]\ngpus = 2\n[files]\n\"deck/extra\" = \"extra\"\n");
  const std::vector<JobRequest> jobs = jobs_from_file(toml);
  ASSERT_EQ(jobs.size(), 1u);
  const v1::JobSpec& spec = jobs[0].spec;
  EXPECT_EQ(spec.thermal().deck(), "deck");
  ASSERT_EQ(spec.thermal().settings_size(), 2);
  std::map<std::string, std::string> settings;
  for (const v1::Setting& setting : spec.thermal().settings())
    settings[setting.key()] = setting.value();
  EXPECT_EQ(settings, (std::map<std::string, std::string>{{"T", "300"}, {"compat", "fourphonon"}}));
  EXPECT_EQ(spec.not_before().seconds(), 1896076800);
  EXPECT_EQ(spec.resources().gpus(), 2u);
  ASSERT_EQ(jobs[0].files.size(), 2u);
  EXPECT_EQ(jobs[0].files[1].slot, "deck/extra");
  check_limits(jobs);

  const fs::path json =
      file("job.json",
           R"([{"test": {"sleep": {"duration": "2s"}}}, {"name": "b", "test": {"noop": {}}}])");
  const std::vector<JobRequest> two = jobs_from_file(json);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].spec.test().sleep().duration().seconds(), 2);
  EXPECT_EQ(two[1].spec.name(), "b");
  EXPECT_EQ(
      jobs_from_file(file("many.toml", "[[jobs]]\n[jobs.test.noop]\n[[jobs]]\n[jobs.test.noop]\n"))
          .size(),
      2u);
}

TEST_F(ClientFiles, WrongJobFilesNameLineAndField) {
  file("si/CONTROL", "c");
  const std::vector<std::pair<std::string, std::string>> table{
      {"name = \"a\"\nprioritty = 3\n[test.noop]",
       ":2: prioritty: unknown key 'prioritty' in the job; did you mean 'priority'?"},
      {"priority = \"high\"\n[test.noop]", ":1: priority: "},
      {"priority = 3000000000\n[test.noop]", ":1: priority: must be a whole number from"},
      {"max_runtime = \"soon\"\n[test.noop]", ":1: max_runtime: must be a time like"},
      {"[test.noop]\n[thermal]\ndeck = \"si\"", "exclude each other"},
      {"[thermal]\nexports = [\"bte\"]", "'deck' is missing"},
      {"[thermal]\ndeck = \"absent\"", "no deck"},
      {"[thermal]\ndeck = \"si\"\ndevice = \"gpu\"",
       ":3: thermal.device: must be one of auto, cpu, cuda"},
      {"name = \"a\"", "does not say what is to be computed"},
      {"not_before = 2030-01-31\n[test.noop]", ":1: a date or time alone"},
      {"not_before = 2030-01-31T08:00:00\n[test.noop]", ":1: a time needs its offset"},
      {"labels = [\"a\"]\n[test.noop]", ":1: labels: must be a table of name = value"},
      {"name = \"a\nb\"", ":1:"},
      {"jobs = []", "the list is empty"},
      {"name = \"x\"\n[[jobs]]\n", "beside 'jobs' nothing else"},
      {"[test.sleep]\nduration = inf", ":2: test.sleep.duration"},
      {"kind = 7", ":1: kind: must be a text"},
      {"kind = \"termal\"", "no kind 'termal' of job takes a deck; did you mean 'thermal'?"},
      {"kind = \"mosfet\"\n[job]\ninputs = []", ":3: job.inputs: unknown key 'inputs'"},
      {"kind = \"mosfet\"\n[job]\nnam = \"a\"",
       ":3: job.nam: unknown key 'nam' in 'job'; did you mean 'name'?"}};
  for (const auto& [text, says] : table) {
    const fs::path at = file("job.toml", text);
    const Failure failure = failure_in([&] { jobs_from_file(at); });
    EXPECT_SAYS(failure, says);
    EXPECT_NE(failure.remedy, "") << text;
  }
  EXPECT_SAYS(failure_in([&] { jobs_from_file(file("a.json", "{\"test\": {\"noop\": {}},,}")); }),
              "line 1, column");
  EXPECT_SAYS(failure_in([&] { jobs_from_file(file("a.txt", "x")); }), "neither .toml nor .json");
  EXPECT_SAYS(failure_in([&] { jobs_from_file(path("si")); }), "which kind of deck");
}

TEST_F(ClientFiles, FlagsOfSubmitLieOverTheFile) {
  const fs::path deck = file("nano.toml", "kind = \"mosfet\"\n[job]\nname = \"a\"\npriority = 3\n");
  JobArguments arguments;
  arguments.words = {deck.string()};
  arguments.settings = {"mesh.nx=65", "note=a=b"};
  arguments.name = "b";
  arguments.priority = 7;
  arguments.max_runtime = "1.5s";
  arguments.labels = {"k=v"};
  const std::vector<JobRequest> jobs = build_jobs(arguments);
  const v1::JobSpec& spec = jobs.at(0).spec;
  EXPECT_EQ(spec.name(), "b");
  EXPECT_EQ(spec.priority(), 7);
  EXPECT_EQ(spec.mosfet().settings(1).key(), "note");
  EXPECT_EQ(spec.mosfet().settings(1).value(), "a=b");
  EXPECT_EQ(spec.max_runtime().nanos(), 500'000'000);
  arguments.words = {deck.string(), deck.string()};
  EXPECT_EQ(build_jobs(arguments).at(1).spec.name(), "b[1]");
  arguments.settings = {"T"};
  EXPECT_SAYS(failure_in([&] { build_jobs(arguments); }), "--set: 'T' has no '='");
  arguments.settings = {};
  arguments.priority = 700;
  EXPECT_SAYS(failure_in([&] { check_limits(build_jobs(arguments)); }),
              "jobs[0].priority: must be -100...100");
  arguments.words.pop_back();
  EXPECT_SAYS(failure_in([&] { check_limits(build_jobs(arguments)); }),
              deck.string() + ": priority: must be -100...100, got 700");
  EXPECT_EQ(readable_field("jobs[0].spec.resources.gpus", 1), "resources.gpus");
  EXPECT_EQ(readable_field("jobs[3].spec.resources.gpus", 4), "jobs[3].resources.gpus");
  EXPECT_EQ(readable_field("jobs[0].spec", 1), "jobs[0]");
  EXPECT_EQ(readable_field("request_id", 1), "request_id");
}

/// One small change somewhere: a byte flipped, a piece dropped, doubled, or replaced by something
/// that parsers stumble over.
std::string mutated(std::string text, std::mt19937& random) {
  static const std::vector<std::string> pieces{"\x00\xff",
                                               "[[",
                                               "]]",
                                               "\"",
                                               "{",
                                               "}",
                                               "=",
                                               "\n",
                                               "nan",
                                               "-1",
                                               "1e999",
                                               "99999999999999999999",
                                               "null",
                                               "\xc3",
                                               "'''",
                                               "#",
                                               "../../etc/passwd",
                                               "/dev/zero",
                                               "1979-05-27",
                                               "true",
                                               ",",
                                               "\\u0000",
                                               "a.b.c = 1\n"};
  const int edits = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < edits; ++i) {
    const std::size_t at = text.empty() ? 0 : random() % text.size();
    const std::size_t length = std::min<std::size_t>(1 + random() % 12, text.size() - at);
    switch (random() % 4) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(random() % 256);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      default:
        text.insert(at, pieces[random() % pieces.size()]);
        break;
    }
  }
  return text;
}

// Whatever a file holds, the answer is a job or a sentence that names the file, and with it a line
// or a field; never a crash, never "unexpected".
TEST_F(ClientFiles, MutatedJobFilesAreUnderstoodOrRefusedByName) {
  file("si/CONTROL", "c");
  const std::vector<std::pair<std::string, std::string>> seeds{
      {"job.toml",
       "name = \"si\"\npriority = 3\nmax_runtime = \"2h\"\nnot_before = "
       "2030-01-31T08:00:00Z\n[labels]\na = \"b\"\n"
       "[thermal]\ndeck = \"si\"\nsettings = { T = 300 }\nexports = [\"bte\"]\ndevice = "
       "\"cpu\"\n[resources]\ngpus = 2\n"},
      {"deck.toml",
       "kind = \"mosfet\"\n[geometry]\nchannel_nm = 10.0\n[job]\nname = \"a\"\nlabels = { p = "
       "\"t\" }\n"},
      {"job.json",
       R"({"name": "a", "labels": {"k": "v"}, "test": {"flaky": {"failures": 2, "status": 1}}, "retry": {"max_attempts": 3, "resume": true}})"},
      {"jobs.json",
       R"({"jobs": [{"test": {"noop": {}}}, {"test": {"emit": {"bytes": "100", "seed": 1}}, "max_runtime": "10s"}]})"}};
  int refused = 0;
  for (unsigned seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto& [name, text] = seeds[seed % seeds.size()];
    const fs::path at = file(name, mutated(text, random));
    try {
      std::vector<JobRequest> jobs = jobs_from_file(at);
      try {
        check_limits(jobs);
      } catch (const Failure& failure) {
        ++refused;
        const std::string what = failure.what();
        EXPECT_TRUE(what.starts_with(at.string() + ": ") ||
                    (jobs.size() > 1 && what.starts_with("jobs[")))
            << what;
      }
    } catch (const Failure& failure) {
      ++refused;
      const std::string what = failure.what();
      // The file's name, a file it names, or the kind it names.
      EXPECT_TRUE(what.find(name) != std::string::npos || what.find("deck") != std::string::npos ||
                  what.find("kind") != std::string::npos || what.find("input") != std::string::npos)
          << what;
      EXPECT_TRUE(failure.status == ExitStatus::kInvalidInput ||
                  failure.status == ExitStatus::kLocalFile || failure.status == ExitStatus::kUsage)
          << what;
      EXPECT_NE(failure.remedy, "") << what;
    }
  }
  EXPECT_GT(refused, 100);  // the mutations do break files
}

}  // namespace
}  // namespace quasi::client
