// Tests users and tokens as people use them, with the real programs: on the Unix socket without any
// step, on TCP with a token file.

#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/service/support/client_fixture.hpp"

namespace quasi::client {
namespace {

class WithTokens : public EndToEnd {
 protected:
  WithTokens() {
    server_flags_ = {"--require-tokens", "true"};
    more_addresses_ = ",127.0.0.1:0";
  }
  /// The TCP address of the server, from its log.
  std::string tcp() const {
    const std::string log = server_->err();
    const std::size_t start = log.find("\"127.0.0.1:") + 1;
    return log.substr(start, log.find('"', start) - start);
  }
  /// Runs quasi on TCP with a token file, or without one.
  Ran on_tcp(std::vector<std::string> words, const std::string& token_file = "") {
    words.insert(words.begin(), {"quasi", "--server", tcp()});
    std::vector<std::string> variables;
    if (!token_file.empty()) variables.push_back("QUASI_TOKEN_FILE=" + token_file);
    const auto process = spawn("tcp" + std::to_string(++calls_), words, variables);
    const int status = process->wait_at_most();
    return {status, process->out(), process->err()};
  }
  /// Makes a user with a token file.
  std::string user_with_token(const std::string& name) {
    const std::string file = path(name + ".token").string();
    EXPECT_EQ(quasi({"admin", "user", name, "--role", "user", "--tenant", "phonons"}).status, 0);
    const Ran made = quasi({"admin", "token", name, "--output", file});
    EXPECT_EQ(made.status, 0) << made.err;
    EXPECT_EQ(made.out, "");
    return file;
  }
  int calls_ = 0;
};

TEST_F(WithTokens, TheUnixSocketAsksForNoStep) {
  const Ran ran = quasi({"submit", job("ok", "[test.noop]"), "--wait"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  const Ran who = quasi({"whoami"});
  EXPECT_NE(who.out.find("  admin  default  at unix:"), std::string::npos) << who.out;
}

// An admin sets a quota by its flag and takes it back by "default", a user sees it, and a
// submission over it ends with the status of quotas.
TEST_F(WithTokens, QuotasAreSetAndShown) {
  const std::string file = user_with_token("ada");
  const json set = json::parse(
      quasi({"admin", "quota", "user", "ada", "--jobs", "0", "--gpu-hours", "1.5", "--json"}).out);
  EXPECT_EQ(set["accounts"][0]["own_quotas"]["jobs"], 0) << set;
  EXPECT_EQ(set["accounts"][0]["own_quotas"]["gpu_hours"], 1.5);
  EXPECT_TRUE(set["accounts"][0]["own_quotas"]["shares"].is_null());
  const Ran refused = on_tcp({"submit", job("ok", "[test.noop]")}, file);
  EXPECT_EQ(refused.status, 7) << refused.err;
  EXPECT_NE(refused.err.find("quasi usage"), std::string::npos) << refused.err;
  const Ran own = on_tcp({"usage"}, file);
  EXPECT_EQ(own.status, 0) << own.err;
  EXPECT_NE(own.out.find("0 / 0"), std::string::npos) << own.out;
  EXPECT_NE(own.out.find("0 / 1.5"), std::string::npos) << own.out;
  EXPECT_NE(own.out.find("tenant phonons"), std::string::npos) << own.out;
  EXPECT_EQ(on_tcp({"usage", "--all"}, file).status, 6);
  EXPECT_EQ(quasi({"admin", "quota", "user", "ada", "--jobs", "default"}).status, 0);
  EXPECT_EQ(on_tcp({"submit", job("ok", "[test.noop]"), "--wait"}, file).status, 0);
  EXPECT_EQ(quasi({"admin", "quota", "user", "ada", "--jobs", "many"}).status, 2);
  EXPECT_EQ(quasi({"admin", "quota", "user", "nobody"}).status, 5);
}

TEST_F(WithTokens, ATokenFileOpensTcp) {
  const Ran without = on_tcp({"list"});
  EXPECT_EQ(without.status, 6) << without.err;
  EXPECT_NE(without.err.find("QUASI_TOKEN_FILE"), std::string::npos) << without.err;

  const std::string file = user_with_token("nightly");
  struct stat info {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const Ran who = on_tcp({"whoami"}, file);
  EXPECT_EQ(who.out.rfind("nightly  user  phonons  at 127.0.0.1:", 0), 0u) << who.out << who.err;
  const Ran submitted = on_tcp({"submit", job("ok", "[test.noop]"), "--wait"}, file);
  EXPECT_EQ(submitted.status, 0) << submitted.err;
  const Ran refused = on_tcp({"admin", "users"}, file);
  EXPECT_EQ(refused.status, 6);
  EXPECT_NE(refused.err.find("the role of nightly is user"), std::string::npos) << refused.err;

  ::chmod(file.c_str(), 0644);
  const Ran open = on_tcp({"list"}, file);
  EXPECT_EQ(open.status, 6);
  EXPECT_NE(open.err.find("chmod 600"), std::string::npos) << open.err;
  ::chmod(file.c_str(), 0600);

  const json users = json::parse(quasi({"admin", "users", "--json"}).out);
  std::string key;
  for (const json& user : users["principals"])
    if (user["name"] == "nightly") key = user["tokens"][0]["key"];
  ASSERT_EQ(key.size(), 12u) << users;
  EXPECT_EQ(quasi({"admin", "revoke", key}).status, 0);
  const Ran revoked = on_tcp({"list"}, file);
  EXPECT_EQ(revoked.status, 6);
  EXPECT_NE(revoked.err.find("not valid"), std::string::npos) << revoked.err;
}

// The message of an expired token names the operator's command and the clocks of both machines.
TEST_F(WithTokens, AnExpiredTokenSaysSo) {
  user_with_token("ada");
  const std::string file = path("brief.token").string();
  ASSERT_EQ(quasi({"admin", "token", "ada", "--lifetime", "1s", "--output", file}).status, 0);
  const auto deadline = Clock::now() + kHang;
  Ran ran;
  while ((ran = on_tcp({"list"}, file)).status == 0) ASSERT_LT(Clock::now(), deadline);
  EXPECT_EQ(ran.status, 6);
  EXPECT_NE(ran.err.find("the token has expired"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("compare the clocks"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("quasi admin token NAME"), std::string::npos) << ran.err;
}

// A program that only reads gets a token that only reads.
TEST_F(WithTokens, ANarrowedTokenIsShownAndKeptToItsScopes) {
  user_with_token("plots");
  const std::string file = path("reader.token").string();
  const Ran made = quasi({"admin", "token", "plots", "--scope", "read", "--output", file});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(on_tcp({"list"}, file).status, 0);
  const Ran refused = on_tcp({"submit", job("ok", "[test.noop]")}, file);
  EXPECT_EQ(refused.status, 6) << refused.err;
  EXPECT_NE(refused.err.find("needs the scope submit"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("quasi whoami"), std::string::npos) << refused.err;
  const Ran who = on_tcp({"whoami"}, file);
  EXPECT_TRUE(who.out.ends_with("  for read\n")) << who.out;
  EXPECT_EQ(json::parse(on_tcp({"whoami", "--json"}, file).out)["scopes"], json({"read"}));
  EXPECT_NE(quasi({"admin", "users"}).out.find("(read)"), std::string::npos);
  const Ran unknown = quasi({"admin", "token", "plots", "--scope", "reed"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("read, submit, cancel, admin"), std::string::npos) << unknown.err;
}

// I18: the token is in its file and nowhere else: no other file of the server, the worker or the
// client, no log, no command line and no environment of a process.
TEST_F(WithTokens, ATokenIsInItsFileAlone) {
  const std::string file = user_with_token("nightly");
  const std::string secret = slurp(file).substr(17, 43);
  EXPECT_EQ(on_tcp({"submit", job("ok", "[test.noop]"), "--wait", "--verbose"}, file).status, 0);
  const std::string id = submit(job("long", "[test.sleep]\nduration = \"10h\""));
  await_state(id, "running");
  std::string places;
  for (const auto& entry : fs::recursive_directory_iterator(path("")))
    if (entry.is_regular_file() && slurp(entry.path()).find(secret) != std::string::npos)
      places += entry.path().filename().string() + "\n";
  EXPECT_EQ(places, "nightly.token\n");
  int processes = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string command = slurp(entry.path() / "cmdline");
    if (command.find("quasi-") == std::string::npos) continue;
    ++processes;
    EXPECT_EQ(command.find(secret), std::string::npos);
    EXPECT_EQ(slurp(entry.path() / "environ").find(secret), std::string::npos);
  }
  EXPECT_GE(processes, 3) << "server, worker and engine were running";
}

/// Lets programs of the test dump core into the folder of the test.
class WithCores : public WithTokens {
 protected:
  WithCores() {
    ::getrlimit(RLIMIT_CORE, &usual_);
    rlimit most = usual_;
    most.rlim_cur = most.rlim_max;
    ::setrlimit(RLIMIT_CORE, &most);
    fs::current_path(path(""));
  }
  ~WithCores() override {
    fs::current_path(folder_);
    ::setrlimit(RLIMIT_CORE, &usual_);
  }
  fs::path folder_ = fs::current_path();
  rlimit usual_{};
};

// I18: a crash of the server, a worker or a client writes no memory with tokens to a disk.
TEST_F(WithCores, NoProgramWithATokenDumpsCore) {
  Process other({"/bin/sleep", "1000"}, path("other"), {});
  other.end(SIGABRT);
  if (!other.dumped_core()) GTEST_SKIP() << "this machine dumps no core of any program";
  const std::string token = "QUASI_TOKEN_FILE=" + user_with_token("ada");
  const auto client = spawn("client",
                            {"quasi", "--server", tcp(), "submit", job("ok", "[test.noop]"),
                             "--pool", "empty", "--watch"},
                            {token});
  await_output(*client, &Process::err, "no worker of pool empty");
  await_output(*worker_, &Process::err, "registered");
  for (Process* process : {client.get(), worker_.get(), server_.get()}) {
    EXPECT_EQ(process->end(SIGABRT), 128 + SIGABRT);
    EXPECT_FALSE(process->dumped_core());
  }
}

}  // namespace
}  // namespace quasi::client
