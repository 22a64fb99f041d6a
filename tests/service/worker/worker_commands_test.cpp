// Tests quasi-worker as it is typed: its devices, its configuration, and what it refuses.

#include "tests/service/support/client_fixture.hpp"

namespace quasi::client {
namespace {

class WorkerCommands : public EndToEnd {
 protected:
  void SetUp() override {}

  Ran worker(std::vector<std::string> words) {
    words.insert(words.begin(), "quasi-worker");
    const auto process = spawn("worker" + std::to_string(++commands_), std::move(words));
    const int status = process->wait_at_most();
    return {status, process->out(), process->err()};
  }
  std::string fake(const std::string& list) const {
    return "fake:" + file("devices.toml", list).string();
  }
  static void expect_says(const std::string& text, const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  }
};

TEST_F(WorkerCommands, DevicesAreListedWithTheirFaults) {
  const std::string list = fake(
      "[[device]]\nuuid = \"GPU-1\"\nmodel = \"H100\"\nmemory_gib = 80\nfree_gib = 60\n"
      "processes = [7]\n"
      "[[device]]\nuuid = \"MIG-2\"\nmemory_gib = 10\nslots = 3\nfault = \"Xid 79\"\n");
  const Ran table = worker({"--devices", list, "devices"});
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_EQ(table.out,
            "GPU-1        H100, 80.0 GiB, 1 slot(s)\nMIG-2        Fake, 10.0 GiB, 3 slot(s), "
            "Xid 79\n");
  const Ran ran = worker({"--devices", list, "devices", "--json"});
  const json document = json::parse(ran.out);
  EXPECT_EQ(document["schema"], "quasi.worker.v1");
  const json first = document["devices"][0], second = document["devices"][1];
  EXPECT_EQ(first["free_bytes"], std::int64_t{60} << 30);
  EXPECT_EQ(first["processes"], json({7}));
  EXPECT_EQ(first["fault"], json());
  EXPECT_EQ(first["mig"], false);
  EXPECT_EQ(second["mig"], true) << "an instance of a GPU is a device of its own";
  EXPECT_EQ(second["fault"], "Xid 79");
  expect_says(worker({"--devices", "none", "--slots", "3", "devices"}).out, "3 slot(s)");
}

TEST_F(WorkerCommands, ADeviceThatIsLostEndsWithItsOwnStatus) {
  const Ran lost =
      worker({"--devices", fake("[[device]]\nuuid = \"GPU-1\"\nlost = true\n"), "devices"});
  EXPECT_EQ(lost.status, 75);
  expect_says(lost.err, "device GPU-1 is lost");
}

TEST_F(WorkerCommands, AWrongListOfDevicesIsAWrongConfiguration) {
  for (const auto& [list, words] : std::vector<std::pair<std::string, std::string>>{
           {"[[device]]\nuid = \"GPU-1\"\n", "unknown key 'uid' in [[device]]"},
           {"[[device]]\nmodel = \"H100\"\n", "'uuid' is missing"},
           {"[[device]]\nuuid = \"GPU-1\"\nslots = 0\n", "slots of GPU-1 must be 1..256"},
           {"[[device\n", "devices.toml"}}) {
    const Ran ran = worker({"--devices", fake(list), "devices"});
    EXPECT_EQ(ran.status, 78) << list;
    expect_says(ran.err, words);
  }
}

TEST_F(WorkerCommands, TheConfigurationIsPrintedWithItsSources) {
  const std::string config =
      file("worker.toml", "server = \"unix:/run/lab\"\nslots = 4\n").string();
  const Ran ran = worker({"--config", config, "--slots", "2", "--print-config", "--check-config"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  expect_says(ran.out, "unix:/run/lab");
  expect_says(ran.out, "worker.toml");
  expect_says(ran.out, "--slots");
  expect_says(ran.out, "the configuration is sound\n");
  const std::string wrong = file("wrong.toml", "sluts = 4\n").string();
  const Ran refused = worker({"--config", wrong, "--check-config"});
  EXPECT_EQ(refused.status, 78);
  expect_says(refused.err, "sluts");
  expect_says(refused.err, "slots");
  EXPECT_EQ(worker({"--slots", "many", "--check-config"}).status, 78);
}

TEST_F(WorkerCommands, UnknownWordsAreAnsweredWithTheNearest) {
  const Ran flag = worker({"--slot", "2"});
  EXPECT_EQ(flag.status, 2);
  EXPECT_EQ(flag.err,
            "error: no flag '--slot'; did you mean '--slots'?\nsee: quasi-worker --help\n");
  const Ran command = worker({"device"});
  EXPECT_EQ(command.status, 2);
  expect_says(command.err, "error: no command 'device'");
  EXPECT_EQ(worker({"--devices"}).status, 2) << "a flag without its value";
  expect_says(worker({"--version"}).out, "quasi-worker ");
  EXPECT_EQ(worker({"--help"}).status, 0);
}

TEST_F(WorkerCommands, ACodeThatCannotBeExchangedIsNotUsedUp) {
  const Ran absent = worker({"--config", path("absent/worker.toml").string(), "join", "code"});
  EXPECT_EQ(absent.status, 78);
  expect_says(absent.err, "the code is not used up");
  EXPECT_EQ(worker({"--config", path("worker.toml").string(), "join", "no code"}).status, 78);
  EXPECT_FALSE(fs::exists(path("worker.toml")));
}

}  // namespace
}  // namespace quasi::client
