// Tests every command as a user types it, with the real programs, a real server and a real worker.

#include <algorithm>
#include <random>

#include "tests/service/support/client_fixture.hpp"
#include "tests/support/reference_data.hpp"

namespace quasi::client {
namespace {

TEST_F(EndToEnd, ASubmissionFollowedToItsResult) {
  const Ran ran =
      quasi({"submit", job("emit", "[test.emit]\nbytes = 100000\nseed = 7"), "--watch"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out.rfind("submitted j_", 0), 0u) << ran.out;
  EXPECT_NE(ran.out.find("succeeded"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find('\033'), std::string::npos);  // without a terminal there are no colours

  const Ran fetched = quasi({"fetch", "last", "-d", path("out").string()});
  EXPECT_EQ(fetched.status, 0) << fetched.err;
  EXPECT_NE(fetched.out.find("data.bin  98 KiB  ok\n"), std::string::npos) << fetched.out;
  EXPECT_EQ(fs::file_size(path("out/data.bin")), 100000u);
  EXPECT_FALSE(fs::exists(path("out/data.bin.part")));
  EXPECT_NE(quasi({"fetch", "last", "-d", path("out").string()}).out.find("ok (was here)"),
            std::string::npos);

  // A different file of this name is never overwritten without --force.
  file("out/data.bin", "mine");
  const Ran refused = quasi({"fetch", "last", "-d", path("out").string()});
  EXPECT_EQ(refused.status, 10) << refused.err;
  EXPECT_EQ(slurp(path("out/data.bin")), "mine");
  EXPECT_EQ(quasi({"fetch", "last", "-d", path("out").string(), "--force"}).status, 0);
  EXPECT_EQ(fs::file_size(path("out/data.bin")), 100000u);

  const Ran unknown = quasi({"fetch", "last", "--artifact", "data.bim", "-d", path("x").string()});
  EXPECT_EQ(unknown.status, 5);
  EXPECT_NE(unknown.err.find("did you mean 'data.bin'?"), std::string::npos) << unknown.err;
}

TEST_F(EndToEnd, DocumentsOfEveryCommandParseAndCarryTheSchema) {
  const std::string id = submit(job("emit", "[test.emit]\nbytes = 10"), {"--wait"});
  const auto document = [&](std::vector<std::string> words) {
    words.emplace_back("--json");
    const Ran ran = quasi(words);
    EXPECT_EQ(ran.status, 0) << words[0] << ": " << ran.err;
    const json parsed = json::parse(ran.out, nullptr, false);
    EXPECT_EQ(parsed.value("schema", ""), "quasi.cli.v1") << words[0] << ": " << ran.out;
    return parsed;
  };
  EXPECT_EQ(document({"list"})["jobs"][0]["id"], id);
  EXPECT_EQ(document({"show", id})["jobs"][0]["artifacts"][0]["name"], "data.bin");
  const json isolation = document({"show", id})["jobs"][0]["attempt_history"][0]["isolation"];
  EXPECT_TRUE(isolation["whole"].is_boolean()) << isolation;
  EXPECT_NE(isolation["walls"].get<std::string>().find("system calls"), std::string::npos);
  EXPECT_EQ(document({"wait", id})["jobs"][0]["state"], "succeeded");
  EXPECT_EQ(document({"watch", id})["jobs"][0]["state"], "succeeded");
  EXPECT_EQ(document({"logs", id})["job"], id);
  EXPECT_EQ(document({"fetch", id, "-d", path("o").string()})["jobs"][0]["files"][0]["name"],
            "data.bin");
  EXPECT_EQ(document({"cancel", id})["jobs"][0]["state"], "succeeded");
  EXPECT_EQ(document({"devices"})["pools"][0]["workers"][0]["devices"][0]["backend"], "cpu");
  EXPECT_FALSE(document({"version"})["server"].is_null());
  EXPECT_EQ(document({"submit", job("n", "[test.noop]")})["submitted"].size(), 1u);
  EXPECT_EQ(document({"submit", job("n", "[test.noop]"), "--dry-run"})["jobs"].size(), 1u);
  EXPECT_EQ(document({"validate", job("n", "[test.noop]")})["server"]["asked"], true);

  const Ran lines = quasi({"watch", id, "--jsonl"});
  std::istringstream stream(lines.out);
  int count = 0;
  for (std::string line; std::getline(stream, line); ++count)
    EXPECT_FALSE(json::parse(line, nullptr, false).is_discarded()) << line;
  EXPECT_GE(count, 2);

  const Ran error = quasi({"show", "j_01J9QK3V8NXW2R5T7Y9A1C3E5G", "--json"});
  EXPECT_EQ(error.status, 5) << error.err;
  EXPECT_EQ(json::parse(error.out)["error"]["exit_status"], 5);
}

TEST_F(EndToEnd, EndsOfJobsAreTheExitStatus) {
  EXPECT_EQ(quasi({"submit", job("ok", "[test.noop]"), "--wait"}).status, 0);
  const Ran failed = quasi({"submit", job("bad", "[test.exit]\nstatus = 10"), "--watch"});
  EXPECT_EQ(failed.status, 3) << failed.err;
  EXPECT_NE(failed.out.find("INVALID_INPUT"), std::string::npos) << failed.out;
  EXPECT_EQ(
      quasi({"submit", job("ok", "[test.noop]"), job("bad", "[test.exit]\nstatus = 10"), "--wait"})
          .status,
      14);

  const std::string id = submit(job("long", "[test.sleep]\nduration = \"10h\""));
  const Ran late = quasi({"wait", id, "--timeout", "300ms"});
  EXPECT_EQ(late.status, 124) << late.err;
  EXPECT_NE(late.err.find("quasi watch last"), std::string::npos) << late.err;
  EXPECT_EQ(quasi({"fetch", id}).status, 10);
  const Ran cancelled = quasi({"cancel", id, "--reason", "enough"});
  EXPECT_EQ(cancelled.status, 0) << cancelled.err;
  EXPECT_EQ(quasi({"wait", id}).status, 4);
  EXPECT_EQ(quasi({"cancel", id}).status, 0);  // a repeated cancel has no further effect
}

TEST_F(EndToEnd, SeveralJobsAreCancelledOnlyWhenSaid) {
  const std::string work = "[test.sleep]\nduration = \"10h\"";
  EXPECT_EQ(quasi({"submit", job("a", work), job("b", work)}).status, 0);
  const Ran refused = quasi({"cancel", "last"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("2 jobs; no job was cancelled"), std::string::npos) << refused.err;
  EXPECT_EQ(quasi({"cancel", "last", "--yes"}).status, 0);
  EXPECT_EQ(quasi({"wait", "last"}).status, 4);
}

TEST_F(EndToEnd, JobsAreFoundByWhatTheyAre) {
  const std::string a =
      submit(job("alpha", "[test.noop]"), {"--label", "project=thesis", "--wait"});
  const std::string b = submit(job("beta", "[test.noop]"), {"--wait"});
  EXPECT_EQ(quasi({"list", "-o", "name"}).out, b + "\n" + a + "\n");
  EXPECT_EQ(quasi({"list", "-o", "name", "--oldest-first", "-n", "1"}).out, a + "\n");
  EXPECT_EQ(quasi({"list", "-o", "name", "--label", "project=thesis"}).out, a + "\n");
  EXPECT_EQ(quasi({"list", "-o", "name", "--name", "be"}).out, b + "\n");
  EXPECT_EQ(quasi({"list", "-o", "name", "--state", "active"}).out, "");
  EXPECT_EQ(quasi({"list", "-o", "name", "--since", "1h", "--kind", "test"}).out,
            b + "\n" + a + "\n");
  EXPECT_EQ(quasi({"show", b.substr(0, 20), "-o", "name"}).out, b + "\n");
  EXPECT_EQ(quasi({"show", "last", "-o", "name"}).out, b + "\n");
  EXPECT_EQ(quasi({"show", "j_000000"}).status, 5);
}

TEST_F(EndToEnd, LogsAreFollowedToTheEnd) {
  const std::string id = submit(job("nap", "[test.sleep]\nduration = \"1s\""));
  const Ran followed = quasi({"logs", "-f", id});
  EXPECT_EQ(followed.status, 0) << followed.err;
  EXPECT_EQ(followed.out, "sleeping\n");
  EXPECT_EQ(quasi({"logs", id}).out, followed.out);
  EXPECT_EQ(quasi({"logs", id, "--attempt", "7"}).status, 5);
}

// The whole use of a physicist: a deck goes in and a table comes out, with and without a server.
TEST_F(EndToEnd, PhysicsFromDeckToTable) {
  const std::string deck = (test::source_dir() / "examples/thermal/silicon-sw").string();
  const Ran ran = quasi({"submit", "thermal", deck, "--set", "ngrid=3 3 3", "--watch"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("thermal conductivity"), std::string::npos) << ran.out;
  EXPECT_NE(ran.err.find("uploaded  deck/CONTROL"), std::string::npos) << ran.err;
  // Submitting equal files again uploads nothing.
  const json again = json::parse(
      quasi({"submit", "thermal", deck, "--set", "ngrid=3 3 3", "--wait", "--json"}).out);
  ASSERT_FALSE(again["inputs"].empty());
  for (const json& input : again["inputs"]) EXPECT_EQ(input["uploaded"], false) << input;
  EXPECT_EQ(quasi({"fetch", "last", "-d", path("out").string()}).status, 0);

  const Ran here =
      quasi({"run", "thermal", deck, "--set", "ngrid=3 3 3", "-d", path("here").string()});
  EXPECT_EQ(here.status, 0) << here.err;
  EXPECT_NE(here.out.find("thermal conductivity"), std::string::npos) << here.out;
  const json remote = json::parse(slurp(path("out/summary.json")));
  const json local = json::parse(slurp(path("here/summary.json")));
  EXPECT_EQ(remote["summary"]["kappa_w_per_mk"], local["summary"]["kappa_w_per_mk"]);
  // Equal jobs have equal bytes, on a server and without one.
  EXPECT_EQ(slurp(path("out/result.h5")), slurp(path("here/result.h5")));
}

// An equal job takes the result that is there, unless it is told to compute.
TEST_F(EndToEnd, AnEqualJobTakesTheResult) {
  const std::string deck = (test::source_dir() / "examples/thermal/silicon-sw").string();
  const auto submit = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"submit",      "thermal", deck,    "--set",
                                      "ngrid=3 3 3", "--wait",  "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return json::parse(quasi(words).out);
  };
  const json first = submit({"--name", "first"});
  EXPECT_EQ(first["submitted"][0]["reused"], false) << first;
  const json second = submit({"--name", "second", "--device", "cpu"});
  EXPECT_EQ(second["submitted"][0]["reused"], true) << second;
  const std::string source = first["submitted"][0]["id"], taker = second["submitted"][0]["id"];
  const json job = json::parse(quasi({"show", taker, "--json"}).out)["jobs"][0];
  EXPECT_EQ(job["state"], "succeeded");
  EXPECT_EQ(job["reused_from"], source);
  EXPECT_EQ(job["attempts"], 0);
  EXPECT_NE(quasi({"show", taker}).out.find("of " + source), std::string::npos);
  EXPECT_NE(quasi({"cache", "explain", source, taker}).out.find("same result"), std::string::npos);
  EXPECT_EQ(quasi({"fetch", source, "-d", path("one").string()}).status, 0);
  EXPECT_EQ(quasi({"fetch", taker, "-d", path("two").string()}).status, 0);
  EXPECT_EQ(slurp(path("one/result.h5")), slurp(path("two/result.h5")));

  EXPECT_EQ(submit({"--no-cache"})["submitted"][0]["reused"], false);
  const json other = submit({"--set", "T=310"});
  EXPECT_EQ(other["submitted"][0]["reused"], false);
  const std::string id = other["submitted"][0]["id"];
  const std::string why = quasi({"cache", "explain", source, id}).out;
  EXPECT_NE(why.find("settings[1].value"), std::string::npos) << why;
  EXPECT_EQ(quasi({"submit", "thermal", deck, "--no-cache", "--refresh"}).status, 2);
  EXPECT_EQ(quasi({"cache", "explain", source}).status, 2);
}

TEST_F(EndToEnd, WrongDecksAreRefusedBeforeAnythingTravels) {
  const std::string deck = (test::source_dir() / "examples/thermal/silicon-sw").string();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"submit", "thermal", deck, "--set", "TT=300"},
        {"validate", "thermal", deck, "--set", "TT=300"},
        {"run", "thermal", deck, "--set", "TT=300", "-d", path("r").string()}}) {
    const Ran ran = quasi(words);
    EXPECT_EQ(ran.status, 9) << words[0] << ": " << ran.err;
    EXPECT_NE(ran.err.find("unknown key"), std::string::npos) << ran.err;
    EXPECT_EQ(ran.err.find("uploaded"), std::string::npos);
  }
  EXPECT_EQ(quasi({"run", "thermal", deck, "--device", "cuda:99", "-d", path("r").string()}).status,
            13);
  EXPECT_EQ(quasi({"run", "thermal", path("absent").string(), "-d", path("r").string()}).status, 9);
  EXPECT_EQ(quasi({"run", "thermal", deck, "--divice", "cpu"}).status, 2);
  EXPECT_EQ(quasi({"list", "-o", "name"}).out, "");
  EXPECT_EQ(quasi({"validate", "thermal", deck, "--set", "ngrid=3 3 3"}).status, 0);
  const Ran kinds = quasi({"list", "--kind", "thremal"});
  EXPECT_EQ(kinds.status, 2);
  EXPECT_NE(kinds.err.find("did you mean 'thermal'?"), std::string::npos) << kinds.err;
  EXPECT_NE(kinds.err.find("kinds: thermal, mosfet, gw\n"), std::string::npos)
      << "test is for tests: " << kinds.err;
}

// Editors of other systems leave a byte order mark of UTF-8 and carriage returns in a CONTROL.
TEST_F(EndToEnd, ADeckEditedElsewhereIsTheSameDeck) {
  fs::copy(test::source_dir() / "examples/thermal/silicon-sw", path("deck"));
  std::string text = "\xEF\xBB\xBF";
  for (const char c : slurp(path("deck/CONTROL")))
    text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  std::ofstream(path("deck/CONTROL"), std::ios::binary) << text;
  const Ran ran = quasi({"validate", "thermal", path("deck").string(), "--set", "ngrid=3 3 3"});
  EXPECT_EQ(ran.status, 0) << ran.err;
}

// One file is the deck for the engine and the job for the client.
TEST_F(EndToEnd, TheJobTableOfADeckIsTheClients) {
  const std::string deck =
      file("eq.toml", slurp(test::source_dir() / "examples/mosfet/equilibrium.toml") +
                          "\n[job]\nname = \"from the deck\"\npriority = 7\n");
  const Ran checked = quasi({"validate", deck});
  EXPECT_EQ(checked.status, 0) << checked.err;
  const json planned = json::parse(quasi({"submit", deck, "--dry-run", "--json"}).out);
  EXPECT_EQ(planned.at("jobs").at(0).at("name"), "from the deck");
  EXPECT_EQ(planned.at("jobs").at(0).at("priority"), 7);

  const std::string wrong = file("wrong.toml", "kind = \"mosfet\"\n[job]\npriorty = 7\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"validate", wrong},
        {"submit", wrong},
        {"run", wrong, "-d", path("r").string()},
        {"run", "mosfet", wrong, "-d", path("r").string()}}) {
    const Ran ran = quasi(words);
    EXPECT_EQ(ran.status, 9) << words[0] << ": " << ran.err;
    EXPECT_NE(
        ran.err.find(
            "wrong.toml:3: job.priorty: unknown key 'priorty' in 'job'; did you mean 'priority'?"),
        std::string::npos)
        << ran.err;
  }
}

// Submits a TOML deck of each kind, with [job], named files and --set, and fetches the result.
// `quasi run` of that deck gives an equal summary.
TEST_F(EndToEnd, TomlDecksOfEveryKindGoTheWholeWay) {
  fs::copy(test::source_dir() / "examples/thermal/silicon-sw", path("silicon-sw"));
  const std::string job_table = "\n[job]\nname = \"mine\"\nmax_runtime = \"10h\"\n";
  struct Deck {
    std::string kind, file, key;
    std::vector<std::string> settings;
  };
  const std::vector<Deck> decks{
      {"thermal",
       file("sw.toml",
            "kind = \"thermal\"\ndirectory = \"silicon-sw\"\nngrid = [2, 2, 2]\n"
            "allow_few_processes = true\n" +
                job_table),
       "kappa_w_per_mk",
       {"T=350"}},
      {"mosfet",
       file("mos.toml", slurp(test::source_dir() / "examples/mosfet/equilibrium.toml") + job_table),
       "",
       {}},
      {"gw",
       file("gw.toml", slurp(test::source_dir() / "examples/gw/silicon-epm.toml") + job_table),
       "",
       {}}};
  for (const Deck& deck : decks) {
    SCOPED_TRACE(deck.kind);
    std::vector<std::string> words{"submit", deck.file, "--wait", "--json"};
    std::vector<std::string> here{"run", deck.file, "-d", path("here-" + deck.kind).string()};
    for (const std::string& setting : deck.settings)
      for (auto* line : {&words, &here}) line->insert(line->end(), {"--set", setting});
    // The text files lie in one folder per temperature.
    if (deck.kind == "thermal")
      for (auto* line : {&words, &here}) line->insert(line->end(), {"--export", "bte"});
    const Ran ran = quasi(words);
    ASSERT_EQ(ran.status, 0) << ran.err << ran.out;
    const json job = json::parse(ran.out)["jobs"][0];
    EXPECT_EQ(job["name"], "mine");
    EXPECT_EQ(job["kind"], deck.kind);
    ASSERT_EQ(quasi({"fetch", job["id"], "-d", path("out-" + deck.kind).string()}).status, 0);
    ASSERT_EQ(quasi(here).status, 0);
    const json remote = json::parse(slurp(path("out-" + deck.kind + "/summary.json")));
    const json local = json::parse(slurp(path("here-" + deck.kind + "/summary.json")));
    ASSERT_FALSE(remote["summary"].empty());
    if (deck.kind == "thermal") {
      EXPECT_EQ(remote["summary"]["temperatures_k"], json::array({350.0}));
      EXPECT_EQ(remote["summary"]["kappa_w_per_mk"], local["summary"]["kappa_w_per_mk"]);
      const std::string kappa = slurp(path("here-thermal/T350K/BTE.kappa"));
      EXPECT_FALSE(kappa.empty());
      EXPECT_EQ(slurp(path("out-thermal/T350K/BTE.kappa")), kappa);
    }
  }
}

TEST_F(EndToEnd, WhatNoKindKnowsIsRefusedWithTheNearestName) {
  const std::string thermal = (test::source_dir() / "examples/thermal/silicon-sw").string();
  const std::string mosfet = (test::source_dir() / "examples/mosfet/equilibrium.toml").string();
  const auto expect_refused = [&](const std::vector<std::string>& deck,
                                  const std::vector<std::string>& flags, const std::string& says) {
    for (const std::string verb : {"validate", "submit", "run"}) {
      std::vector<std::string> words{verb};
      words.insert(words.end(), deck.begin(), deck.end());
      words.insert(words.end(), flags.begin(), flags.end());
      if (verb == "run") words.insert(words.end(), {"-d", path("r").string()});
      const Ran ran = quasi(words);
      EXPECT_EQ(ran.status, 9) << verb << ": " << ran.err;
      EXPECT_NE(ran.err.find(says), std::string::npos) << verb << ": " << ran.err;
    }
  };
  expect_refused({"thermal", thermal}, {"--export", "btw"},
                 "export 'btw' is unknown for thermal; did you mean 'bte'?");
  expect_refused({mosfet}, {"--export", "bte"}, "a mosfet job writes no further formats");
  expect_refused({"thermal", thermal}, {"--set", "ngird=3 3 3"}, "did you mean 'ngrid'?");
  expect_refused({mosfet}, {"--set", "geometry.chanel_nm=3"}, "did you mean");
  EXPECT_EQ(quasi({"list", "-o", "name"}).out, "");
}

// Broken job files sent through client and server give an exit status of the table in
// docs/reference/cli.md, never a crash and never INTERNAL.
TEST_F(EndToEnd, MutatedJobFilesNeverSurpriseServerOrClient) {
  const std::string sound =
      R"({"name": "a", "labels": {"k": "v"}, "priority": 3, "max_runtime": "60s", )"
      R"("test": {"flaky": {"failures": 2, "status": 1}}, "retry": {"max_attempts": 3}, )"
      R"("resources": {"gpus": 1, "cpus": 2}})";
  const std::vector<std::string> pieces{"-1", "1e99",    "99999999999", "null", "\"\"", "{}",
                                        "[]", "\\u0000", "\xc3",        ",",    "}",    "0.5"};
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::string text = sound;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0)
        text.erase(at, 1 + random() % 6);
      else
        text.insert(at, pieces[random() % pieces.size()]);
      if (text.empty()) text = "{";
    }
    const Ran ran = quasi({"validate", file("fuzz.json", text)});
    EXPECT_TRUE(ran.status == 0 || ran.status == 9) << ran.status << ": " << ran.err << text;
    if (ran.status == 9) {
      EXPECT_TRUE(ran.err.find("fuzz.json") != std::string::npos ||
                  ran.err.find("jobs[0]") != std::string::npos)
          << ran.err << text;
    }
  }
}

TEST_F(EndToEnd, DeleteRemovesEndedJobsAndForceEndsThemFirst) {
  const std::string done = submit(job("done", "[test.noop]"), {"--wait"});
  const std::string live = submit(job("live", "[test.sleep]\nduration = \"10h\""));
  const Ran refused = quasi({"delete", live});
  EXPECT_EQ(refused.status, 10) << refused.err;
  EXPECT_NE(refused.err.find("cancel it first"), std::string::npos) << refused.err;
  const Ran unconfirmed = quasi({"delete", done, live});
  EXPECT_EQ(unconfirmed.status, 2) << unconfirmed.err;
  EXPECT_EQ(quasi({"delete", done}).out, done + "  deleted\n");
  EXPECT_EQ(quasi({"show", done}).status, 5);
  const Ran forced = quasi({"delete", live, "--force", "--json"});
  EXPECT_EQ(forced.status, 0) << forced.err;
  EXPECT_EQ(json::parse(forced.out)["jobs"][0]["id"], live);
  EXPECT_EQ(quasi({"list", "-o", "name"}).out, "");
}

}  // namespace
}  // namespace quasi::client
