// Tests jobs that are built from job files and decks.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

#include "client/commands/submit.hpp"
#include "client/engine/local_check.hpp"
#include "client/input/job_file.hpp"
#include "tests/service/support/client_files.hpp"

namespace quasi::client {
namespace {

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
      {"name = \"a\"", "no table of a kind is given"},
      {"not_before = 2030-01-31\n[test.noop]", ":1: a date or time alone"},
      {"not_before = 2030-01-31T08:00:00\n[test.noop]", ":1: a time needs its offset"},
      {"labels = [\"a\"]\n[test.noop]", ":1: labels: must be a table of name = value"},
      {"name = \"a\nb\"", ":1:"},
      {"jobs = []", "the list is empty"},
      {"name = \"x\"\n[[jobs]]\n", "may have no other key at its top"},
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
  const Failure folder = failure_in([&] { jobs_from_file(path("si")); });
  EXPECT_SAYS(folder, "the kind of its deck was not given");
  EXPECT_NE(folder.remedy.find("KIND one of: "), std::string::npos) << folder.remedy;
  EXPECT_NE(folder.remedy.find("thermal"), std::string::npos) << folder.remedy;
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

/// Makes one small change: a byte is flipped, or a piece is dropped, doubled, or replaced by text
/// that is difficult for parsers.
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

// Every file gives either a job or a sentence that names the file with a line or a field. It never
// gives a crash or status "unexpected".
TEST_F(ClientFiles, MutatedJobFilesAreUnderstoodOrRefusedByName) {
  ::setenv("QUASI_ENGINE", "/nonexistent/quasi-engine",
           1);  // starting one engine per file would take minutes
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
       R"({"name": "a", "labels": {"k": "v"}, "test": )"
       R"({"flaky": {"failures": 2, "status": 1}}, "retry": {"max_attempts": 3, "resume": true}})"},
      {"jobs.json", R"({"jobs": [{"test": {"noop": {}}}, {"test": {"emit": )"
                    R"({"bytes": "100", "seed": 1}}, "max_runtime": "10s"}]})"}};
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
      // The text names the file, a file named in it, or its kind.
      EXPECT_TRUE(what.find(name) != std::string::npos || what.find("deck") != std::string::npos ||
                  what.find("kind") != std::string::npos || what.find("input") != std::string::npos)
          << what;
      EXPECT_TRUE(failure.status == ExitStatus::kInvalidInput ||
                  failure.status == ExitStatus::kLocalFile || failure.status == ExitStatus::kUsage)
          << what;
      EXPECT_NE(failure.remedy, "") << what;
    }
  }
  ::unsetenv("QUASI_ENGINE");
  EXPECT_GT(refused, 100);  // the mutations must break files
}

}  // namespace
}  // namespace quasi::client
