// Tests the configuration, the state and the durable files of the client.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "client/input/config.hpp"
#include "client/session/durable_file.hpp"
#include "client/session/state.hpp"
#include "tests/service/support/client_files.hpp"

namespace quasi::client {
namespace {

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
  EXPECT_EQ(load_config({}, environment({}), {}).address.value, "unix:/run/quasi/server.sock");
  EXPECT_EQ(load_config({}, environment({{"XDG_RUNTIME_DIR", "/run/user/7"}}), {}).address.value,
            "unix:/run/user/7/quasi.sock");
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
              "'http://lab:7460' is not the address of a server (QUASI_SERVER)");
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
  write(path("state/pending/c.json.tmp123"), "half a fi");  // a file that a crash leaves
  EXPECT_EQ(State(path("state")).pending_count(), 2u);
  EXPECT_EQ(failure_in([] { State("").add_pending({}); }).status,
            ExitStatus::kLocalFile);  // without HOME the working directory is not used
  const auto entries = State(path("state")).pending();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].request_id, "a");
  EXPECT_EQ(entries[1].request_json, R"({"jobs":[{"name":"κ"}]})");
  state.remove_pending("a");
  state.remove_pending("a");
  EXPECT_EQ(state.pending().size(), 1u);
  // Other users of the machine must not read submissions.
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

}  // namespace
}  // namespace quasi::client
