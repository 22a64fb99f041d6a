// Tests the command line: accepted words, refused words with their error texts, and exit statuses.

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <random>

#include "client/engine/engine_process.hpp"
#include "client/input/arguments.hpp"
#include "client/views/outcome.hpp"
#include "proto/wire/status.hpp"

namespace quasi::client {
namespace {

/// The failure for a command line. The test fails if there is none.
Failure refused(const std::vector<std::string>& words) {
  try {
    parse_arguments(words);
  } catch (const Failure& failure) {
    return failure;
  }
  ADD_FAILURE() << "was not refused";
  return {ExitStatus::kOk, ""};
}

TEST(ClientArguments, GlobalFlagsStandBeforeOrAfterTheCommand) {
  EXPECT_EQ(parse_arguments({"--json", "list"}).format, Format::kJson);
  EXPECT_EQ(parse_arguments({"list", "--json"}).format, Format::kJson);
  EXPECT_EQ(parse_arguments({"list", "-o", "name"}).format, Format::kName);
  EXPECT_EQ(parse_arguments({"watch", "--jsonl", "last"}).format, Format::kJsonl);
  EXPECT_EQ(parse_arguments({"show", "last", "--server", "unix:/tmp/s"}).config.server,
            "unix:/tmp/s");
  EXPECT_EQ(refused({"list", "--json", "-o", "name"}).status, ExitStatus::kUsage);
}

TEST(ClientArguments, RepeatedFlagsAddUpAndPositionalsStayTheirOwn) {
  const Arguments parsed = parse_arguments({"submit", "thermal", "--set", "T=300", "deck", "--set",
                                            "ngrid=4 4 4", "--label", "a=b", "--priority", "-5"});
  EXPECT_EQ(parsed.submit.job.words, (std::vector<std::string>{"thermal", "deck"}));
  EXPECT_EQ(parsed.submit.job.settings, (std::vector<std::string>{"T=300", "ngrid=4 4 4"}));
  EXPECT_EQ(parsed.submit.job.priority, -5);
  EXPECT_EQ(parse_arguments({"list", "--state", "failed,running"}).list.states,
            (std::vector<std::string>{"failed", "running"}));
}

TEST(ClientArguments, APriorityMayBeNegativeAndIsBounded) {
  const Arguments parsed = parse_arguments({"reprioritise", "last", "-5"});
  EXPECT_EQ(parsed.command, "reprioritise");
  EXPECT_EQ(parsed.reprioritise.job, "last");
  EXPECT_EQ(parsed.reprioritise.priority, -5);
  EXPECT_EQ(parse_arguments({"reprioritise", "last", "100"}).reprioritise.priority, 100);
  EXPECT_EQ(refused({"reprioritise", "last", "101"}).status, ExitStatus::kUsage);
  EXPECT_EQ(refused({"reprioritise", "last"}).status, ExitStatus::kUsage);
  EXPECT_EQ(parse_arguments({"hold", "a", "b", "--reason", "wait"}).hold.jobs,
            (std::vector<std::string>{"a", "b"}));
}

TEST(ClientArguments, MistypedWordsAreAnsweredWithTheNearest) {
  EXPECT_STREQ(refused({"sumbit", "x"}).what(), "no command 'sumbit'; did you mean 'submit'?");
  EXPECT_STREQ(refused({"--server", "a", "lst"}).what(), "no command 'lst'; did you mean 'list'?");
  EXPECT_STREQ(refused({"list", "--sate", "failed"}).what(),
               "no flag '--sate' in quasi list; did you mean '--state'?");
  EXPECT_STREQ(refused({"--frob"}).what(),
               "no flag '--frob'");  // dashes alone must not make --json the nearest flag
  EXPECT_EQ(refused({"help", "submti"}).status, ExitStatus::kUsage);
  EXPECT_STREQ(refused({"fetch"}).what(), "missing: JOB");
}

TEST(ClientArguments, HelpIsThereForEveryCommand) {
  const std::string overview = parse_arguments({}).text;
  for (const char* command :
       {"submit",   "validate", "list",       "show",    "watch",      "wait",
        "logs",     "fetch",    "cancel",     "hold",    "release",    "reprioritise",
        "why",      "usage",    "devices",    "whoami",  "admin",      "run",
        "resubmit", "doctor",   "bug-report", "version", "completion", "help"}) {
    EXPECT_NE(overview.find(std::string("\n  ") + command + " "), std::string::npos) << command;
    const Arguments help = parse_arguments({"help", command});
    EXPECT_EQ(help.command, "text");
    EXPECT_NE(help.text.find(std::string("quasi ") + command), std::string::npos) << help.text;
    EXPECT_EQ(parse_arguments({command, "--help"}).text, help.text);
  }
}

/// Lets a shell parse a script. Returns its exit status.
int shell_reads(const std::string& shell, const std::string& script) {
  const std::string path = testing::TempDir() + "/completion." + shell;
  std::FILE* file = std::fopen(path.c_str(), "w");
  std::fwrite(script.data(), 1, script.size(), file);
  std::fclose(file);
  return std::system((shell + " -n " + path).c_str());
}

TEST(ClientArguments, CompletionsNameEveryCommandAndAreSoundScripts) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = parse_arguments({"completion", shell}).text;
    for (const char* word : {"submit", "watch", "--max-runtime", "quasi list -o name"}) {
      const std::string wanted =
          std::string(shell) == "fish" && word[0] == '-' ? std::string(word).substr(2) : word;
      EXPECT_NE(script.find(wanted), std::string::npos) << shell << ": " << word;
    }
    if (std::system((std::string("command -v ") + shell + " >/dev/null").c_str()) == 0) {
      EXPECT_EQ(shell_reads(shell, script), 0) << shell;
    }
  }
  EXPECT_EQ(refused({"completion", "tcsh"}).status, ExitStatus::kUsage);
}

/// Returns the words that the completion of bash offers after `line`, in one line.
std::string offered_by_bash(const std::vector<std::string>& line) {
  const std::string path = testing::TempDir() + "/offered.bash";
  std::FILE* file = std::fopen(path.c_str(), "w");
  std::fputs(parse_arguments({"completion", "bash"}).text.c_str(), file);
  std::fputs("COMP_WORDS=(quasi", file);
  for (const std::string& word : line) std::fprintf(file, " '%s'", word.c_str());
  std::fprintf(file, ")\nCOMP_CWORD=%zu\n_quasi\necho \"${COMPREPLY[*]}\"\n", line.size());
  std::fclose(file);
  std::FILE* shell = popen(("bash " + path).c_str(), "r");
  std::string offered;
  for (int letter = std::fgetc(shell); letter != EOF; letter = std::fgetc(shell))
    if (letter != '\n') offered += static_cast<char>(letter);
  EXPECT_EQ(pclose(shell), 0);
  return offered;
}

TEST(ClientArguments, CompletionOffersTheValuesOfFlags) {
  EXPECT_EQ(offered_by_bash({"list", "--state", "f"}), "failed");
  EXPECT_EQ(offered_by_bash({"list", "--state", "en"}), "ended");
  EXPECT_EQ(offered_by_bash({"list", "--kind", "th"}), "thermal");
  EXPECT_EQ(offered_by_bash({"run", "thermal", "--set", "ngr"}), "ngrid=");
  EXPECT_EQ(offered_by_bash({"run", "mosfet", "--set", "geometry.si"}), "geometry.silicon_nm=");
  // Keys of the server are no keys of a deck.
  EXPECT_EQ(offered_by_bash({"submit", "--set", "lease_t"}), "");
  EXPECT_EQ(offered_by_bash({"subm"}), "submit");
}

TEST(ClientArguments, EndsOfTheEngineBecomeTheClientsOwn) {
  const std::vector<std::pair<int, ExitStatus>> table{{0, ExitStatus::kOk},
                                                      {1, ExitStatus::kUnexpected},
                                                      {2, ExitStatus::kUsage},
                                                      {106, ExitStatus::kUsage},
                                                      {10, ExitStatus::kInvalidInput},
                                                      {11, ExitStatus::kJobFailed},
                                                      {12, ExitStatus::kEngineUnavailable},
                                                      {13, ExitStatus::kEngineUnavailable},
                                                      {14, ExitStatus::kJobCancelled},
                                                      {15, ExitStatus::kLocalFile},
                                                      {16, ExitStatus::kEngineUnavailable},
                                                      {77, ExitStatus::kUnexpected}};
  for (const auto& [status, expected] : table)
    EXPECT_EQ(status_of_engine({.status = status, .signal = 0}), expected) << status;
  EXPECT_EQ(status_of_engine({.status = 0, .signal = SIGSEGV}), ExitStatus::kJobFailed);
}

TEST(ClientArguments, AnswersOfTheServerBecomeExitStatuses) {
  using grpc::StatusCode;
  const std::vector<std::tuple<StatusCode, std::string, ExitStatus>> table{
      {StatusCode::INVALID_ARGUMENT, "FIELD_INVALID", ExitStatus::kInvalidInput},
      {StatusCode::NOT_FOUND, "JOB", ExitStatus::kNotFound},
      {StatusCode::ALREADY_EXISTS, "REQUEST_ID_REUSED", ExitStatus::kConflict},
      {StatusCode::FAILED_PRECONDITION, "WRONG_STATE", ExitStatus::kConflict},
      {StatusCode::FAILED_PRECONDITION, "UNSCHEDULABLE", ExitStatus::kEngineUnavailable},
      {StatusCode::ABORTED, "FENCED", ExitStatus::kConflict},
      {StatusCode::OUT_OF_RANGE, "OFFSET_PAST_END", ExitStatus::kConflict},
      {StatusCode::UNAUTHENTICATED, "TOKEN_INVALID", ExitStatus::kNotAllowed},
      {StatusCode::PERMISSION_DENIED, "ROLE_REQUIRED", ExitStatus::kNotAllowed},
      {StatusCode::RESOURCE_EXHAUSTED, "RATE_LIMITED", ExitStatus::kQuota},
      {StatusCode::UNAVAILABLE, "STARTING", ExitStatus::kUnreachable},
      {StatusCode::UNAVAILABLE, "", ExitStatus::kUnreachable},
      {StatusCode::DEADLINE_EXCEEDED, "", ExitStatus::kUnreachable},
      {StatusCode::DATA_LOSS, "BLOB_CORRUPT", ExitStatus::kDataIntegrity},
      {StatusCode::UNKNOWN, "LOCAL_FILE", ExitStatus::kLocalFile},
      {StatusCode::INTERNAL, "INTERNAL", ExitStatus::kUnexpected}};
  for (const auto& [code, reason, expected] : table) {
    const grpc::Status status = reason.empty() ? grpc::Status(code, "why")
                                               : wire::make_status(code, "why", {.reason = reason});
    const Failure failure = failure_of(status, "host:1");
    EXPECT_EQ(failure.status, expected) << reason;
    EXPECT_NE(std::string(failure.what()), "") << reason;
    EXPECT_EQ(std::string(failure.what()).find('\n'), std::string::npos) << reason;
  }
  const Failure fields = failure_of(
      wire::make_status(
          StatusCode::INVALID_ARGUMENT, "bad",
          {.reason = "FIELD_INVALID", .fields = {{"jobs[0].spec.name", "too long"}, {"b", "c"}}}),
      "host:1");
  EXPECT_STREQ(fields.what(), "jobs[0].spec.name: too long");
  EXPECT_EQ(fields.violations.size(), 2u);
}

TEST(ClientArguments, EndsOfJobsBecomeExitStatuses) {
  const auto jobs = [](std::initializer_list<v1::JobState> states) {
    std::vector<v1::Job> list;
    for (const v1::JobState state : states) list.emplace_back().set_state(state);
    return list;
  };
  EXPECT_EQ(status_of_jobs(jobs({v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_SUCCEEDED})),
            ExitStatus::kOk);
  EXPECT_EQ(status_of_jobs(jobs({v1::JOB_STATE_FAILED})), ExitStatus::kJobFailed);
  EXPECT_EQ(status_of_jobs(jobs({v1::JOB_STATE_CANCELLED})), ExitStatus::kJobCancelled);
  EXPECT_EQ(status_of_jobs(jobs({v1::JOB_STATE_CANCELLED, v1::JOB_STATE_FAILED})),
            ExitStatus::kJobFailed);
  EXPECT_EQ(status_of_jobs(jobs({v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED})),
            ExitStatus::kPartial);
}

// A random command line is either accepted or refused as a usage error with a sentence.
TEST(ClientArguments, RandomCommandLinesNeverSurprise) {
  const std::vector<std::string> vocabulary{
      "submit",   "list",       "show",       "watch",
      "fetch",    "run",        "cancel",     "logs",
      "help",     "completion", "--json",     "-o",
      "name",     "--set",      "T=300",      "=",
      "--",       "-",          "--priority", "-5",
      "x",        "",           "--timeout",  "15s",
      "@",        "last",       "--state",    "failed",
      "j_0",      "--limit",    "-n",         "99999999999999999999",
      "\xff\xfe", "--set=",     "--=",        "-vq",
      "--gpus",   "-1",         "bash",       std::string(5000, 'a'),
      "--lable",  "{}",         "[",          "%s%n"};
  for (unsigned seed = 1; seed <= 250; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<std::string> words;
    const std::size_t count = random() % 7;
    for (std::size_t i = 0; i < count; ++i)
      words.push_back(vocabulary[random() % vocabulary.size()]);
    try {
      EXPECT_NE(parse_arguments(words).command, "");
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.status, ExitStatus::kUsage);
      EXPECT_NE(std::string(failure.what()), "");
      EXPECT_NE(failure.remedy, "");
    }
  }
}

}  // namespace
}  // namespace quasi::client
