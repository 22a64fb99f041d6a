// Tests the orders of operators as they are typed, with a real worker whose jobs write checkpoints.

#include <algorithm>
#include <regex>

#include "tests/service/support/client_fixture.hpp"

namespace quasi::client {
namespace {

class OrdersEndToEnd : public EndToEnd {
 protected:
  OrdersEndToEnd() { server_flags_ = {"--requeue-delay", "1", "--heartbeat-interval", "1"}; }

  /// A job of forty steps, each with a checkpoint.
  std::string submit_steps(const std::string& max_runtime) {
    return submit(job("steps", "max_runtime = \"" + max_runtime +
                                   "\"\n[test.checkpointing]\nsteps = 40\ninterval = \"150ms\""));
  }
  json shown(const std::string& id) {
    return json::parse(quasi({"show", id, "--json"}).out)["jobs"][0];
  }
  /// Waits until the engine has written some checkpoints.
  void await_checkpoint(const std::string& id) {
    const auto deadline = Clock::now() + kHang;
    while (shown(id)["progress"].is_null() || shown(id)["progress"]["done"].get<int>() < 2) {
      ASSERT_LT(Clock::now(), deadline) << shown(id);
      std::this_thread::sleep_for(milliseconds(50));
    }
  }
  /// Checks that the job succeeded in two attempts, of which the second began at the checkpoint.
  void expect_went_on(const std::string& id) {
    ASSERT_EQ(quasi({"wait", id}).status, 0);
    const json job = shown(id);
    ASSERT_EQ(job["attempt_history"].size(), 2u) << job;
    ASSERT_EQ(quasi({"fetch", id, "-d", path(id).string()}).status, 0);
    const std::string steps = slurp(path(id) / "steps.txt");
    std::smatch found;
    ASSERT_TRUE(std::regex_match(
        steps, found, std::regex("attempt \\d: 1\\.\\.(\\d+)\nattempt \\d: (\\d+)\\.\\.40\n")))
        << steps;
    EXPECT_GE(std::stoi(found[1]), 2);
    EXPECT_EQ(std::stoi(found[2]), std::stoi(found[1]) + 1) << steps;
  }
  std::string worker_name() {
    return json::parse(quasi({"devices", "--json"}).out)["pools"][0]["workers"][0]["name"];
  }
};

// A preempted job goes on from its checkpoint, and its first attempt is not counted.
TEST_F(OrdersEndToEnd, APreemptedJobGoesOnFromItsCheckpoint) {
  const std::string id = submit_steps("1h");
  await_checkpoint(id);
  const Ran ran = quasi({"admin", "preempt", id, "--reason", "a talk"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, id + "  writes a checkpoint and goes back to the queue\n");
  expect_went_on(id);
  const Ran events = quasi({"watch", id, "--jsonl"});
  EXPECT_NE(events.out.find("preempted by "), std::string::npos) << events.out;
  EXPECT_NE(events.out.find(": a talk"), std::string::npos) << events.out;

  const Ran late = quasi({"admin", "preempt", id});
  EXPECT_EQ(late.status, 10) << late.err;
  EXPECT_NE(late.err.find("only jobs that a worker has are preempted"), std::string::npos)
      << late.err;
}

// A drained worker has two jobs. The one that fits the given time ends there. The other goes back
// to the queue with its checkpoint, and goes on once the worker is back in service.
TEST_F(OrdersEndToEnd, ADrainKeepsTheJobThatFits) {
  const std::string brief =
      submit(job("brief", "max_runtime = \"2m\"\n[test.sleep]\nduration = \"3s\""));
  const std::string lengthy = submit_steps("10h");
  await_state(brief, "running");
  await_checkpoint(lengthy);
  const std::string worker = worker_name();
  const Ran ran = quasi({"admin", "drain", worker, "--within", "10m", "--reason", "new fan"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("end there: 1, that go back to the queue with a checkpoint: 1"),
            std::string::npos)
      << ran.out;
  await_state(lengthy, "queued");
  ASSERT_EQ(quasi({"wait", brief}).status, 0);
  EXPECT_EQ(shown(brief)["attempt_history"].size(), 1u);
  EXPECT_EQ(shown(lengthy)["state"], "queued") << "a drained worker takes no job";
  EXPECT_NE(quasi({"devices"}).out.find(": new fan"), std::string::npos);
  ASSERT_EQ(quasi({"admin", "undrain", worker}).status, 0);
  expect_went_on(lengthy);

  const Ran unknown = quasi({"admin", "drain", "nobody"});
  EXPECT_EQ(unknown.status, 5) << unknown.err;
  EXPECT_NE(unknown.err.find("quasi devices -o wide"), std::string::npos) << unknown.err;
  EXPECT_EQ(quasi({"admin", "drain", worker, "--within", "soon"}).status, 2);
}

}  // namespace
}  // namespace quasi::client
