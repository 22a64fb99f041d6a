// Tests the things that first users stumbled over, each with the real programs: linked decks, used
// folders, names of jobs, repeated jobs, inputs, waiting jobs, verdicts, notifications, diagnosis.

#include <chrono>
#include <thread>

#include "tests/service/support/client_fixture.hpp"
#include "tests/support/reference_data.hpp"

namespace quasi::client {
namespace {

const std::string kSilicon = (test::source_dir() / "examples/thermal/silicon-sw").string();
const std::string kTransistor = (test::source_dir() / "examples/mosfet/equilibrium.toml").string();

class Frictions : public EndToEnd {
 protected:
  /// A deck whose files are links, as workflows lay them out.
  fs::path linked_deck() const {
    fs::create_directories(path("linked"));
    for (const auto& entry : fs::directory_iterator(kSilicon))
      fs::create_symlink(entry.path(), path("linked") / entry.path().filename());
    return path("linked");
  }
  Ran run_transistor(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"run", "mosfet", kTransistor, "-d", path("out").string()};
    words.insert(words.end(), more.begin(), more.end());
    return quasi(words);
  }
};

TEST_F(Frictions, ALinkedDeckIsTakenByValidateSubmitAndRunAlike) {
  const std::string deck = linked_deck().string();
  const Ran checked = quasi({"validate", "thermal", deck, "--set", "ngrid=3 3 3"});
  EXPECT_EQ(checked.status, 0) << checked.err;
  const Ran sent = quasi({"submit", "thermal", deck, "--set", "ngrid=3 3 3", "--watch"});
  EXPECT_EQ(sent.status, 0) << sent.err;
  const Ran here =
      quasi({"run", "thermal", deck, "--set", "ngrid=3 3 3", "-d", path("r").string()});
  EXPECT_EQ(here.status, 0) << here.err;

  // A link that leads to a private file is not followed, and nothing is sent.
  file("home/.ssh/id_ed25519", "secret");
  fs::remove(path("linked/FORCE_CONSTANTS_2ND"));
  fs::create_symlink(path("home/.ssh/id_ed25519"), path("linked/FORCE_CONSTANTS_2ND"));
  for (const char* verb : {"validate", "submit"}) {
    const Ran refused = quasi({verb, "thermal", deck});
    EXPECT_EQ(refused.status, 9) << verb << refused.err;
    EXPECT_NE(refused.err.find("is not sent to a server"), std::string::npos) << refused.err;
  }
}

TEST_F(Frictions, RunProtectsAUsedFolderAndLeavesNothingOfAnOlderRun) {
  const Ran first = run_transistor();
  EXPECT_EQ(first.status, 0) << first.err;
  // The last lines say where the results are and how to look at them.
  EXPECT_NE(first.err.find("results in '" + path("out").string() + "': result.h5, summary.json"),
            std::string::npos)
      << first.err;
  EXPECT_NE(first.err.find("quasi plot " + path("out").string()), std::string::npos) << first.err;
  const std::string result = slurp(path("out/result.h5"));

  const Ran second = run_transistor({"--set", "mesh.nx=41"});
  EXPECT_EQ(second.status, 10) << second.err;
  EXPECT_NE(second.err.find("holds the results of an earlier run"), std::string::npos);
  EXPECT_NE(second.err.find("--force"), std::string::npos);
  EXPECT_EQ(slurp(path("out/result.h5")), result);

  // A refused deck gives the old results back; files of other origin are never touched.
  file("out/notes.txt", "mine");
  const Ran wrong = run_transistor({"--force", "--set", "mesh.nonsense=1"});
  EXPECT_EQ(wrong.status, 9) << wrong.err;
  EXPECT_EQ(slurp(path("out/result.h5")), result);
  EXPECT_EQ(run_transistor().status, 10);

  // An older run with a further file: after --force no file of that run is left.
  std::ofstream(path("out/eqp1.dat")) << "old";
  json list = json::parse(slurp(path("out/.quasi-run.json")));
  list["files"].push_back("eqp1.dat");
  std::ofstream(path("out/.quasi-run.json")) << list.dump();
  const Ran replaced = run_transistor({"--force"});
  EXPECT_EQ(replaced.status, 0) << replaced.err;
  EXPECT_FALSE(fs::exists(path("out/eqp1.dat")));
  EXPECT_TRUE(fs::exists(path("out/result.h5")));
  EXPECT_EQ(slurp(path("out/notes.txt")), "mine");
}

TEST_F(Frictions, RunMixesNoResultsIntoOthersFolders) {
  // The deck itself is no folder for results.
  fs::copy(kSilicon, path("deck"));
  const Ran into_deck =
      quasi({"run", "thermal", path("deck").string(), "-d", path("deck").string()});
  EXPECT_EQ(into_deck.status, 10) << into_deck.err;
  EXPECT_FALSE(fs::exists(path("deck/result.h5")));
  // Results of another program or of fetch are not on the list of a run, so they are not replaced.
  file("out/result.h5", "of another program");
  const Ran foreign = run_transistor({"--force"});
  EXPECT_EQ(foreign.status, 10) << foreign.err;
  EXPECT_EQ(slurp(path("out/result.h5")), "of another program");
  // A refused deck leaves no empty folder.
  EXPECT_EQ(
      quasi({"run", "mosfet", kTransistor, "-d", path("new").string(), "--set", "x=1"}).status, 9);
  EXPECT_FALSE(fs::exists(path("new")));
}

TEST_F(Frictions, JobsAreNamedByTheirNames) {
  const std::string id = submit(job("si-gw", "[test.noop]"), {"--wait"});
  EXPECT_EQ(quasi({"show", "si-gw", "-o", "name"}).out, id + "\n");
  EXPECT_EQ(quasi({"wait", "si-gw"}).status, 0);
  const Ran unknown = quasi({"show", "si-g"});  // a beginning of a name is no name
  EXPECT_EQ(unknown.status, 5) << unknown.err;
  const std::string twin = submit(job("si-gw", "[test.noop]"), {"--wait"});
  const Ran ambiguous = quasi({"cancel", "si-gw"});
  EXPECT_EQ(ambiguous.status, 2) << ambiguous.err;
  EXPECT_NE(ambiguous.err.find("2 jobs have the name 'si-gw'; the newest is " + twin),
            std::string::npos)
      << ambiguous.err;
}

TEST_F(Frictions, AJobIsRepeatedWithAnotherSetting) {
  const std::string id = submit(
      job("first", "[thermal]\ndeck = \"" + kSilicon + "\"\nsettings = { ngrid = \"3 3 3\" }"),
      {"--label", "project=thesis", "--wait"});
  const Ran again =
      quasi({"resubmit", "first", "--set", "T=400", "--name", "second", "--wait", "--json"});
  EXPECT_EQ(again.status, 0) << again.err;
  const json old_spec = json::parse(quasi({"show", id, "--json"}).out)["jobs"][0]["spec"];
  json spec = json::parse(quasi({"show", "second", "--json"}).out)["jobs"][0]["spec"];
  EXPECT_EQ(spec["inputs"], old_spec["inputs"]);
  EXPECT_EQ(spec["labels"], old_spec["labels"]);
  ASSERT_EQ(spec["thermal"]["settings"].size(), 2u) << spec;
  EXPECT_EQ(spec["thermal"]["settings"][1]["key"], "T");
  EXPECT_EQ(json::parse(again.out)["submitted"][0]["name"], "second");
  // A file of this machine replaces an input.
  const fs::path control = file("CONTROL", slurp(kSilicon + "/CONTROL") + "\n");
  const Ran changed = quasi({"resubmit", "first", "--name", "third", "--input",
                             "deck/CONTROL=" + control.string(), "--wait"});
  EXPECT_EQ(changed.status, 0) << changed.err;
  spec = json::parse(quasi({"show", "third", "--json"}).out)["jobs"][0]["spec"];
  EXPECT_EQ(spec["inputs"].size(), old_spec["inputs"].size());
  EXPECT_NE(spec["inputs"], old_spec["inputs"]);
}

TEST_F(Frictions, AnEmptyLogSaysWhereTheResultsAre) {
  const std::string id = submit(
      job("quiet", "[thermal]\ndeck = \"" + kSilicon + "\"\nsettings = { ngrid = \"3 3 3\" }"),
      {"--wait"});
  const Ran logs = quasi({"logs", "quiet"});
  EXPECT_EQ(logs.status, 0) << logs.err;
  EXPECT_TRUE(logs.out.empty()) << logs.out;
  EXPECT_NE(logs.err.find("the engine had nothing to tell; results: quasi show " + id),
            std::string::npos)
      << logs.err;
}

TEST_F(Frictions, TheHelpOfExportNamesTheFormatsOfTheEngine) {
  const Ran refused = quasi({"run", "thermal", kSilicon, "-d", path("x").string(), "--set",
                             "ngrid=3 3 3", "--export", "nothing"});
  EXPECT_EQ(refused.status, 9) << refused.err;
  const std::string help = quasi({"help", "run"}).out;
  std::size_t formats = 0;
  for (const char* format : {"bte", "phono3py"}) {
    EXPECT_NE(help.find(format), std::string::npos) << help;
    formats += refused.err.find(format) != std::string::npos;
  }
  EXPECT_EQ(formats, 2u) << refused.err;
}

TEST_F(Frictions, InputsComeBackInEveryStateOfTheJob) {
  const std::string name =
      job("deep", "[test.sleep]\nduration = \"10h\"\n[files]\n\"deck/a\" = \"" +
                      file("a.txt", "hello").string() + "\"");
  const std::string id = submit(name);
  const Ran fetched = quasi({"fetch", id, "--inputs", "-d", path("back").string()});
  EXPECT_EQ(fetched.status, 0) << fetched.err;
  EXPECT_EQ(slurp(path("back/deck/a")), "hello");
  EXPECT_EQ(quasi({"cancel", id}).status, 0);
  EXPECT_EQ(quasi({"wait", id}).status, 4);
  const Ran results = quasi({"fetch", id, "-d", path("x").string()});
  EXPECT_EQ(results.status, 10);
  EXPECT_NE(results.err.find("quasi resubmit " + id), std::string::npos) << results.err;
}

TEST_F(Frictions, AWaitingJobSaysWhatItWaitsFor) {
  const auto because = [&](const std::string& id) {
    const json job = json::parse(quasi({"show", id, "--json"}).out)["jobs"][0];
    return job["waiting_because"].is_null() ? "" : job["waiting_because"].get<std::string>();
  };
  const std::string work = "[test.sleep]\nduration = \"10h\"";
  const std::string a = submit(job("a", work)), b = submit(job("b", work));
  await_state(a, "running");
  await_state(b, "running");
  EXPECT_EQ(because(a), "");
  const std::string c = submit(job("c", work)), d = submit(job("d", work));
  EXPECT_EQ(because(c), "it is the next; no fitting slot is free");
  EXPECT_EQ(because(d), "1 job is ahead of it");
  const std::string urgent = submit(job("e", work), {"--priority", "5"});
  EXPECT_EQ(because(urgent), "it is the next; no fitting slot is free");
  EXPECT_EQ(because(d), "2 jobs are ahead of it");
  const std::string elsewhere = submit(job("f", work + "\n[resources]\npool = \"attic\""));
  EXPECT_NE(because(elsewhere).find("attic"), std::string::npos) << because(elsewhere);
  EXPECT_NE(quasi({"show", d}).out.find("because    2 jobs are ahead of it"), std::string::npos);
}

// A job that waits after a failed attempt says so, with the server's own reason.
TEST_F(Frictions, AJobInItsBackOffSaysSo) {
  const std::string id = submit(job("flaky", "[test.flaky]\nfailures = 1\nstatus = 15"));
  json shown;
  for (int i = 0; i < 300 && (shown.is_null() || shown["waiting_because"].is_null() ||
                              shown["waiting_because"].get<std::string>().find("attempt") ==
                                  std::string::npos);
       ++i) {
    shown = json::parse(quasi({"show", id, "--json"}).out)["jobs"][0];
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(shown["waiting_because"].dump().find("\"it waits after its last attempt until "), 0U)
      << shown;
}

// A worker that dies takes its answer with it. Whoever waits for its job is told so, and the job
// ends once a worker is there again.
TEST_F(Frictions, WaitingForAJobWhoseWorkerDiedSaysSo) {
  server_->end(SIGTERM);
  server_flags_ = {"--lease-ttl", "1.5", "--requeue-delay", "0.1", "--restart-grace", "0"};
  start_server();
  const auto waiting =
      begin({"submit", job("lonely", "[test.sleep]\nduration = \"3s\""), "--wait"});
  while (quasi({"show", "lonely"}).status != 0 && waiting->running()) {
  }
  await_state("lonely", "running");
  const auto watching = begin({"watch", "lonely"});
  // A busy machine may have missed the short lease before, which was said then.
  const std::size_t said_before = waiting->err().size();
  worker_->end(SIGKILL);
  while (waiting->err().find("no worker of pool default answers; '", said_before) ==
             std::string::npos &&
         waiting->running())
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  await_output(*watching, &Process::err, "no worker of pool default answers; '");
  EXPECT_NE(waiting->err().find("was last seen at", said_before), std::string::npos)
      << waiting->err();
  const json job = json::parse(quasi({"show", "lonely", "--json"}).out)["jobs"][0];
  EXPECT_NE(job["waiting_because"].get<std::string>().find("was last seen at"), std::string::npos)
      << job["waiting_because"];
  // Several polls later it has been said once. This is judged before there is a new worker, which
  // may miss its lease, too.
  std::this_thread::sleep_for(std::chrono::seconds(4));
  EXPECT_EQ(waiting->err().find("no worker", said_before), waiting->err().rfind("no worker"))
      << "said twice";
  start_worker();
  EXPECT_EQ(waiting->wait_at_most(), 0) << waiting->err();
  EXPECT_EQ(watching->wait_at_most(), 0) << watching->err();
}

TEST_F(Frictions, APlanBeginsWithTheVerdict) {
  const Ran plan = quasi({"validate", "thermal", kSilicon, "--set", "ngrid=4 4 4"});
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_EQ(plan.out.rfind("ok  " + kSilicon + "  thermal\n  plan\n    time", 0), 0u) << plan.out;
  EXPECT_NE(plan.out.find(" K\n"), std::string::npos) << plan.out;
  EXPECT_EQ(plan.out.find("deviation"), std::string::npos) << plan.out;
  const Ran details = quasi({"validate", "thermal", kSilicon, "--set", "ngrid=4 4 4", "--verbose"});
  EXPECT_NE(details.out.find("rad/ps\n"), std::string::npos) << details.out;
  EXPECT_NE(details.out.find("deviation"), std::string::npos) << details.out;
}

TEST_F(Frictions, TheEndOfAJobRunsACommandHere) {
  const std::string good = submit(job("good", "[test.noop]"));
  const std::string bad = submit(job("bad", "[test.exit]\nstatus = 10"));
  const Ran watched = quasi({"watch", good, bad, "--notify",
                             "echo \"$1 $2 $3\" >> '" + path("told").string() + "'; echo loud"});
  EXPECT_EQ(watched.status, 14) << watched.err;
  const std::string told = slurp(path("told"));
  EXPECT_NE(told.find(good + " good succeeded\n"), std::string::npos) << told;
  EXPECT_NE(told.find(bad + " bad failed\n"), std::string::npos) << told;
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 2);
  EXPECT_EQ(watched.out.find("loud"), std::string::npos) << watched.out;
  const Ran broken = quasi({"wait", good, "--notify", "exit 3"});
  EXPECT_EQ(broken.status, 0) << broken.err;
  EXPECT_NE(broken.err.find("--notify: the command ended with status 3"), std::string::npos);
}

TEST_F(Frictions, TheDoctorNamesWhatWorksAndWhatDoesNot) {
  const auto level = [](const json& document, const std::string& name) {
    for (const json& check : document["checks"])
      if (check["name"] == name) return check["level"].get<std::string>();
    return std::string("absent");
  };
  await_output(*worker_, &Process::err, "");
  json well;
  const auto deadline = Clock::now() + kHang;
  do {
    well = json::parse(quasi({"doctor", "--json"}).out);
  } while (level(well, "workers") != "ok" && Clock::now() < deadline);
  for (const char* name : {"program", "engine", "state", "disk", "server", "workers"})
    EXPECT_EQ(level(well, name), "ok") << name << well.dump(1);
  EXPECT_TRUE(well["ok"]);
  server_->end(SIGKILL);
  const Ran ill = quasi({"doctor"});
  EXPECT_EQ(ill.status, 14) << ill.out;
  EXPECT_NE(ill.out.find("fault  server"), std::string::npos) << ill.out;
}

TEST_F(Frictions, ABugReportHoldsWhatIsAskedForAndNothingSecret) {
  EXPECT_EQ(quasi({"submit", job("ill", "[test.exit]\nstatus = 10"), "--label",
                   "patient=confidential", "--wait"})
                .status,
            3);
  file("client.toml", "");
  const auto process = spawn(
      "report", {"quasi", "--server", socket(), "bug-report", "ill", "-o", path("b.json").string()},
      {"QUASI_TOKEN=hunter2"});
  EXPECT_EQ(process->wait_at_most(), 0) << process->err();
  const std::string text = slurp(path("b.json"));
  const json report = json::parse(text);
  EXPECT_EQ(report["schema"], "quasi.bug-report.v1");
  EXPECT_EQ(report["job"]["failure"]["reason"], "INVALID_INPUT");
  EXPECT_TRUE(report["job"].contains("log_end"));
  EXPECT_FALSE(report["system"]["kernel"].get<std::string>().empty());
  EXPECT_GE(report["checks"].size(), 7u);
  EXPECT_NE(text.find("QUASI_TOKEN"), std::string::npos) << "names of variables are kept";
  for (const char* secret : {"hunter2", "confidential"})
    EXPECT_EQ(text.find(secret), std::string::npos) << secret;
  EXPECT_EQ(quasi({"bug-report", "-o", path("b.json").string()}).status, 10);
}

// The engine knows the kinds that have such bars.
TEST_F(Frictions, ATargetErrorBelongsToGwJobs) {
  const Ran thermal =
      quasi({"run", "thermal", kSilicon, "-d", path("x").string(), "--target-error", "0.02"});
  EXPECT_EQ(thermal.status, 9);
  EXPECT_NE(thermal.err.find("--target-error = 0.02 belongs to gw jobs"), std::string::npos)
      << thermal.err;
  const std::string deck = (test::source_dir() / "examples/gw/silicon-epm.toml").string();
  const Ran gw = quasi({"run", "gw", deck, "-d", path("y").string(), "--target-error", "100"});
  EXPECT_EQ(gw.status, 9);
  EXPECT_NE(gw.err.find("pseudobands.target_error_ev"), std::string::npos) << gw.err;
  EXPECT_EQ(quasi({"run", "gw", deck, "--target-error", "1", "--store", path("s").string()}).status,
            2);
}

}  // namespace
}  // namespace quasi::client
