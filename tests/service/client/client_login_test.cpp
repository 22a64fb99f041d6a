// Tests the way from an empty folder to a remote job, with the real programs and TCP: the server is
// set up by `quasi-server init`, people come by `quasi login`, a worker by `quasi-worker join`.

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <optional>

#include "server/access/certificates.hpp"
#include "tests/service/support/client_fixture.hpp"

namespace quasi::client {
namespace {

/// A second machine: a network namespace with a cable to this one where the system permits it,
/// otherwise this machine, which the server then serves at 127.0.0.2.
class OtherMachine {
 public:
  OtherMachine() {
    const std::string id = std::to_string(::getpid());
    // Tests that run at once have networks of their own.
    const std::string network = "10.231." + std::to_string(::getpid() % 250) + ".";
    here_ = network + "1";
    const std::string steps =
        "ip netns add qs" + id + " && ip link add qa" + id + " type veth peer name qb" + id +
        " && ip link set qb" + id + " netns qs" + id + " && ip addr add " + here_ + "/30 dev qa" +
        id + " && ip link set qa" + id + " up && ip netns exec qs" + id + " ip addr add " +
        network + "2/30 dev qb" + id + " && ip netns exec qs" + id + " ip link set qb" + id + " up";
    has_network_ = std::system(("(" + steps + ") 2>/dev/null").c_str()) == 0;
    name_ = "qs" + id;
    cable_ = "qa" + id;
    if (!has_network_) clean();
    std::cout << (has_network_ ? "between two network namespaces, " + network + "2 to " + here_
                               : "on one machine, to 127.0.0.2")
              << '\n';
  }
  ~OtherMachine() { clean(); }
  OtherMachine(const OtherMachine&) = delete;
  OtherMachine& operator=(const OtherMachine&) = delete;

  std::string server_host() const { return has_network_ ? here_ : "127.0.0.2"; }
  /// The words that run a program on the other machine.
  std::vector<std::string> there(std::vector<std::string> words) const {
    if (has_network_) words.insert(words.begin(), {"/usr/sbin/ip", "netns", "exec", name_});
    return words;
  }

 private:
  void clean() const {
    std::system(("(ip link del " + cable_ + "; ip netns del " + name_ + ") 2>/dev/null").c_str());
  }
  bool has_network_ = false;
  std::string name_, cable_, here_;
};

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(socket);
  return ntohs(address.sin_port);
}

/// The file with this ending in a folder.
std::string file_with(const fs::path& folder, const std::string& ending) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().string().ends_with(ending)) return entry.path().string();
  return {};
}

class LoginByCode : public EndToEnd {
 protected:
  void SetUp() override {
    if (port_.empty()) port_ = std::to_string(free_port());
    const Ran made = run("init", {program("quasi-server"), "init", "--hostname",
                                  machine_.server_host(), "--port", port_, "--data-directory",
                                  path("data").string(), "--config", path("server.toml").string()});
    ASSERT_EQ(made.status, 0) << made.err;
    setup_ = made.out;
    server_ = std::make_unique<Process>(
        std::vector<std::string>{program("quasi-server"), "--config", path("server.toml").string()},
        path("server"), std::vector<std::string>{});
    await_output(*server_, &Process::err, "\"ready\"");
  }
  static std::string program(const std::string& name) {
    return std::string(QUASI_BINARY_DIR) + "/" + name;
  }
  std::string address() const { return machine_.server_host() + ":" + port_; }
  /// The code after these words in the output of init.
  std::string code_after(const std::string& words) const {
    const std::size_t start = setup_.find(words) + words.size() + 1;
    return setup_.substr(start, setup_.find('\n', start) - start);
  }
  Ran run(const std::string& log, const std::vector<std::string>& words,
          const std::vector<std::string>& variables = {}) {
    Process process(words, path(log + std::to_string(++runs_)), variables);
    const int status = process.wait_at_most();
    return {status, process.out(), process.err()};
  }
  /// Runs quasi for a person on the other machine. Everybody has a folder of their own.
  Ran as(const std::string& person, std::vector<std::string> words) {
    words.insert(words.begin(), program("quasi"));
    return run(person, machine_.there(words), variables_of(person));
  }
  /// Runs a program there that reads a code from standard input, where no list of processes shows
  /// it.
  Ran with_code(const std::string& person, const std::string& command, const std::string& code) {
    const std::string text = file(person + ".code", code + "\n");
    return run(person, machine_.there({"/bin/sh", "-c", command + " < " + text}),
               variables_of(person));
  }
  std::vector<std::string> variables_of(const std::string& person) const {
    return {"QUASI_CONFIG=" + path(person + "/client.toml").string(),
            "QUASI_STATE=" + path(person + "/state").string()};
  }
  std::string new_code(const std::string& name, const std::string& role,
                       const std::string& pool = "") {
    EXPECT_EQ(as("admin", {"admin", "user", name, "--role", role, "--pool", pool}).status, 0);
    const Ran made = as("admin", {"admin", "code", name});
    EXPECT_EQ(made.status, 0) << made.err;
    return made.out.substr(0, made.out.find('\n'));
  }
  void start_joined_worker(const std::string& code) {
    file("worker.toml",
         "devices = \"none\"  # no GPU here\nserver = \"unix:/old\"\n"
         "state_directory = \"" +
             path("worker-state").string() + "\"\n");
    const Ran joined = with_code(
        "worker", program("quasi-worker") + " --config " + path("worker.toml").string() + " join -",
        code);
    ASSERT_EQ(joined.status, 0) << joined.err;
    worker_ = std::make_unique<Process>(
        machine_.there({program("quasi-worker"), "--config", path("worker.toml").string()}),
        path("worker"), std::vector<std::string>{});
  }
  /// Puts a certificate of the server's own CA in the place of the present one.
  static server::ValidTime days(int first, int last) {
    const std::int64_t now = std::time(nullptr);
    return {.from_s = now + first * 86'400, .until_s = now + last * 86'400};
  }
  void replace_certificate(const std::string& name, int first_day, int last_day,
                           std::optional<server::KeyedCertificate> authority = {}) {
    const fs::path tls = path("data/tls");
    if (!authority)
      authority = {.certificate_pem = slurp(tls / "ca.pem"), .key_pem = slurp(tls / "ca.key")};
    const auto own = server::make_server_certificate(*authority, {name}, days(first_day, last_day));
    std::ofstream(tls / "server.key") << own.key_pem;
    std::ofstream(tls / "server.pem") << own.certificate_pem << authority->certificate_pem;
  }
  /// Waits until a call fails with these words, because the server reads its files every second.
  void await_failure(const std::string& says) {
    const auto deadline = Clock::now() + kHang;
    Ran ran;
    while ((ran = as("admin", {"list"})).err.find(says) == std::string::npos)
      ASSERT_LT(Clock::now(), deadline) << "never said '" << says << "' but " << ran.err;
    EXPECT_EQ(ran.status, 6) << ran.err;
  }

  OtherMachine machine_;
  std::string port_, setup_;
  int runs_ = 0;
};

// From an empty folder to results of two users besides the admin, by the documented commands. Each
// of the two sees their own job alone.
TEST_F(LoginByCode, ThreeCommandsLeadToARemoteJob) {
  const auto start = Clock::now();
  const Ran admin = as("admin", {"login", code_after("quasi login")});
  ASSERT_EQ(admin.status, 0) << admin.err;
  ASSERT_NO_FATAL_FAILURE(start_joined_worker(code_after("quasi-worker join")));
  EXPECT_NE(slurp(path("worker.toml")).find("devices = \"none\"  # no GPU here\n"),
            std::string::npos);
  EXPECT_EQ(slurp(path("worker.toml")).find("unix:/old"), std::string::npos);

  for (const std::string person : {"ada", "bo"}) {
    const Ran login =
        with_code(person, program("quasi") + " login --name lab -", new_code(person, "user"));
    ASSERT_EQ(login.status, 0) << login.err;
    const Ran who = as(person, {"whoami"});
    EXPECT_EQ(who.out, person + "  user  default  at " + address() + "\n") << who.err;
    const Ran ran = as(person, {"submit", "thermal", QUASI_EXAMPLES_DIR "/thermal/silicon", "--set",
                                "ngrid=4,4,4", "--set", "T=300", "--wait"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    const Ran fetched = as(person, {"fetch", "last", "-d", path(person + "/out").string()});
    EXPECT_EQ(fetched.status, 0) << fetched.err;
    EXPECT_TRUE(fs::exists(path(person + "/out/result.h5")));
    EXPECT_EQ(json::parse(as(person, {"list", "--json"}).out)["jobs"].size(), 1u);
  }
  std::cout << "from the first login to two fetched results: "
            << std::chrono::duration_cast<milliseconds>(Clock::now() - start).count() << " ms\n";
}

// The code of a worker carries its pool. Jobs name a pool, and only its worker takes them.
TEST_F(LoginByCode, AWorkerJoinsThePoolThatItIsBoundTo) {
  ASSERT_EQ(as("admin", {"login", code_after("quasi login")}).status, 0);
  ASSERT_NO_FATAL_FAILURE(start_joined_worker(new_code("gpu1", "worker", "large")));
  EXPECT_NE(slurp(path("worker.toml")).find("pool = \"large\"\n"), std::string::npos);
  EXPECT_NE(as("admin", {"admin", "users"}).out.find("worker in large"), std::string::npos);
  const auto submit_to = [&](std::vector<std::string> flags) {
    std::vector<std::string> words{"submit", "thermal",     QUASI_EXAMPLES_DIR "/thermal/silicon",
                                   "--set",  "ngrid=4,4,4", "--set",
                                   "T=300"};
    words.insert(words.end(), flags.begin(), flags.end());
    return as("admin", words);
  };
  const Ran done = submit_to({"--pool", "large", "--wait"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_NE(as("admin", {"devices"}).out.find("pool large: 0 queued, 0 running"),
            std::string::npos);
  EXPECT_EQ(submit_to({"--no-cache"}).status, 0);
  const Ran why = as("admin", {"why", "last"});
  EXPECT_NE(why.out.find("no worker of pool default"), std::string::npos) << why.out << why.err;

  // A worker whose configuration names another pool is refused, and its log names the remedy.
  worker_->end(SIGTERM);
  const std::string text = slurp(path("worker.toml"));
  std::ofstream(path("worker.toml")) << "pool = \"default\"\n"
                                     << text.substr(0, text.find("pool = ")) +
                                            text.substr(text.find('\n', text.find("pool = ")) + 1);
  worker_ = std::make_unique<Process>(
      machine_.there({program("quasi-worker"), "--config", path("worker.toml").string()}),
      path("worker"), std::vector<std::string>{});
  await_output(*worker_, &Process::err, "is bound to the pool large");
}

// The token of a narrowed code has the scopes of the code, and so has the token that renews it.
TEST_F(LoginByCode, ANarrowedCodeGivesANarrowedToken) {
  ASSERT_EQ(as("admin", {"login", code_after("quasi login")}).status, 0);
  ASSERT_EQ(as("admin", {"admin", "user", "plots", "--role", "user"}).status, 0);
  const Ran made = as("admin", {"admin", "code", "plots", "--scope", "read,cancel"});
  ASSERT_EQ(made.status, 0) << made.err;
  const Ran login = as("plots", {"login", made.out.substr(0, made.out.find('\n'))});
  ASSERT_EQ(login.status, 0) << login.err;
  EXPECT_NE(login.err.find("you are plots (user) at " + address() + ", for read,cancel;"),
            std::string::npos)
      << login.err;
  EXPECT_EQ(as("plots", {"login", "--renew"}).status, 0);
  const Ran who = as("plots", {"whoami"});
  EXPECT_TRUE(who.out.ends_with("  for read,cancel\n")) << who.out << who.err;
  EXPECT_EQ(as("plots", {"list"}).status, 0);
  const Ran refused = as("plots", {"submit", "thermal", QUASI_EXAMPLES_DIR "/thermal/silicon"});
  EXPECT_EQ(refused.status, 6) << refused.err;
  EXPECT_NE(refused.err.find("needs the scope submit"), std::string::npos) << refused.err;

  const Ran worker = as("admin", {"admin", "code", "worker", "--scope", "read"});
  EXPECT_EQ(worker.status, 9) << worker.err;
  EXPECT_NE(worker.err.find("--pool POOL"), std::string::npos) << worker.err;
  EXPECT_EQ(as("admin", {"admin", "code", "plots", "--scope", "reed"}).status, 2);
}

TEST_F(LoginByCode, ACodeIsGoodForOneUseAndNamesItsServer) {
  const std::string code = code_after("quasi login");
  ASSERT_EQ(as("admin", {"login", code}).status, 0);
  const std::string token_file = file_with(path("admin"), ".token");
  const std::string first = slurp(token_file);
  EXPECT_EQ(as("admin", {"login", "--renew"}).status, 0);
  EXPECT_NE(slurp(token_file), first);
  EXPECT_EQ(as("admin", {"list"}).status, 0) << "the new token";
  std::ofstream(token_file) << first;
  EXPECT_EQ(as("admin", {"list"}).status, 0) << "the old token has a day left";

  const Ran again = as("eve", {"login", code});
  EXPECT_EQ(again.status, 6);
  EXPECT_NE(again.err.find("was used before"), std::string::npos) << again.err;
  EXPECT_NE(again.err.find("quasi admin code NAME"), std::string::npos) << again.err;
  EXPECT_FALSE(fs::exists(path("eve/client.toml")));

  std::string cut = code_after("quasi-worker join");
  cut.pop_back();
  EXPECT_NE(as("eve", {"login", cut}).err.find("no whole code"), std::string::npos);
  EXPECT_NE(as("admin", {"login", code_after("quasi-worker join")}).err.find("--name NAME"),
            std::string::npos);

  // Another server at the address of the code has another CA, and gets no secret.
  const std::string ada = new_code("ada", "user");
  server_->end(SIGKILL);
  fs::remove_all(path("data"));
  fs::remove(path("server.toml"));
  SetUp();
  const Ran other = as("ada", {"login", ada});
  EXPECT_EQ(other.status, 6);
  EXPECT_NE(other.err.find("does not show the CA that the code names"), std::string::npos)
      << other.err;
  const Ran list = as("admin", {"list"});
  EXPECT_EQ(list.status, 6);
  EXPECT_NE(list.err.find("is not signed by the CA in"), std::string::npos) << list.err;
}

TEST_F(LoginByCode, EveryRefusalNamesItsReason) {
  ASSERT_EQ(as("admin", {"login", code_after("quasi login")}).status, 0);
  // The files of a login are for their owner alone.
  for (const fs::directory_entry& entry : fs::directory_iterator(path("admin"))) {
    struct stat info {};
    ::stat(entry.path().c_str(), &info);
    if (entry.is_regular_file()) EXPECT_EQ(info.st_mode & 077, 0u) << entry.path();
  }
  file("eve/client.toml", "");
  const Ran plain = run("plain", machine_.there({program("quasi"), "--server", address(), "list"}),
                        variables_of("eve"));
  EXPECT_NE(plain.err.find("quasi login CODE"), std::string::npos) << plain.err;
  EXPECT_NE(plain.status, 0);

  replace_certificate(machine_.server_host(), -1, 1,
                      server::make_authority("another CA", days(-1, 1)));
  await_failure("is not signed by the CA in");
  replace_certificate("gpu.example.org", -1, 1);
  await_failure("is for other names: gpu.example.org");
  replace_certificate(machine_.server_host(), 1, 2);
  await_failure("is not valid before");
  EXPECT_NE(as("admin", {"list"}).err.find("date -u"), std::string::npos);
  replace_certificate(machine_.server_host(), -2, -1);
  await_failure("expired on");

  const Ran renewed =
      run("renew", {program("quasi-server"), "init", "--renew", "--hostname",
                    machine_.server_host(), "--data-directory", path("data").string()});
  ASSERT_EQ(renewed.status, 0) << renewed.err;
  const auto deadline = Clock::now() + kHang;
  while (as("admin", {"list"}).status != 0) ASSERT_LT(Clock::now(), deadline);
}

// I18: codes, tokens and keys are in their files alone: in no log, no database, no command line and
// no environment.
TEST_F(LoginByCode, SecretsAreInTheirFilesAlone) {
  ASSERT_EQ(with_code("admin", program("quasi") + " login", code_after("quasi login")).status, 0);
  ASSERT_NO_FATAL_FAILURE(start_joined_worker(code_after("quasi-worker join")));
  ASSERT_EQ(as("admin", {"submit", "thermal", QUASI_EXAMPLES_DIR "/thermal/silicon", "--set",
                         "ngrid=4,4,4", "--set", "T=300", "--wait", "--verbose"})
                .status,
            0);
  const std::string host = machine_.server_host();
  std::map<std::string, std::string> secrets;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path("")))
    if (entry.path().extension() == ".token")
      secrets[entry.path().filename().string()] = slurp(entry.path()).substr(17, 43);
  ASSERT_EQ(secrets.size(), 2u) << "of the admin and of the worker";
  for (const char* key : {"data/tls/ca.key", "data/tls/server.key"})
    secrets[fs::path(key).filename().string()] = slurp(path(key)).substr(40, 60);
  secrets["admin.code"] = code_after("quasi login").substr(60, 40);
  secrets["worker.code"] = code_after("quasi-worker join").substr(60, 40);
  for (const auto& [name, secret] : secrets) {
    ASSERT_GE(secret.size(), 40u) << name;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path(""))) {
      const std::string file = entry.path().filename().string();
      const bool holds = entry.is_regular_file() && file != name && file != "init1.out" &&
                         slurp(entry.path()).find(secret) != std::string::npos;
      EXPECT_FALSE(holds) << file << " holds the secret of " << name;
    }
    int processes = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
      const std::string command = slurp(entry.path() / "cmdline");
      if (command.find("quasi-") == std::string::npos) continue;
      ++processes;
      EXPECT_EQ(command.find(secret), std::string::npos) << name;
      EXPECT_EQ(slurp(entry.path() / "environ").find(secret), std::string::npos) << name;
    }
    EXPECT_GE(processes, 2) << "server and worker are running";
  }
}

}  // namespace
}  // namespace quasi::client
