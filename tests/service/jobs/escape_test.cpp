// Tests that hostile jobs reach nothing: decks and HDF5 files of strangers go through a real server
// to a real worker, whose engines run in the cage. Afterwards no byte of another's data lies in the
// server, and the worker takes the next job.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "proto/wire/chunks.hpp"
#include "tests/service/support/deck_jobs.hpp"
#include "tests/service/support/hostile_decks.hpp"

namespace quasi::test {
namespace {

namespace fs = std::filesystem;

class Escape : public testing::Test {
 protected:
  void SetUp() override {
    service.start_server();
    host.folder = service.directory() / "foreign";
    host.database = service.directory() / "data/quasi.db";
    host.socket = service.address().substr(5);
    host.worker_key = service.worker_state("w") / "identity";
    write_host_files(host);
  }
  void TearDown() override {
    if (HasFailure())
      std::cerr << service.server().output() << "--- worker\n" << service.worker_log("w") << '\n';
  }
  v1::JobSpec spec_of(const HostileJob& hostile) {
    v1::JobSpec spec;
    spec.set_name(hostile.name);
    spec.mutable_retry()->set_max_attempts(1);
    v1::DeckWork& work = *(hostile.kind == "mosfet"    ? spec.mutable_mosfet()
                           : hostile.kind == "thermal" ? spec.mutable_thermal()
                                                       : spec.mutable_gw());
    work.set_deck("deck.toml");
    if (!hostile.setting.first.empty()) {
      v1::Setting& setting = *work.add_settings();
      setting.set_key(hostile.setting.first);
      setting.set_value(hostile.setting.second);
    }
    const fs::path deck = service.directory() / "deck.toml";
    std::ofstream(deck) << "kind = \"" << hostile.kind << "\"\n" << hostile.deck;
    add_input(service, &spec, "deck.toml", deck);
    for (const auto& [slot, path] : hostile.inputs) add_input(service, &spec, slot, path);
    return spec;
  }
  /// A job that holds a slot, with kSecret in its inputs. Returns its deck in the worker's folder.
  fs::path start_neighbour() {
    v1::JobSpec spec = hang(false);
    add_input(service, &spec, "deck.toml", host.folder / "profile.csv");
    neighbour = service.submit(spec);
    service.wait_state(neighbour, v1::JOB_STATE_RUNNING);
    for (const auto& entry : fs::directory_iterator(service.worker_state("w") / "attempts"))
      if (fs::exists(entry.path() / "in/deck.toml")) return entry.path() / "in/deck.toml";
    return {};
  }
  /// Forms of kSecret in a text, separated by commas.
  static std::string secrets_in(const std::string& text) {
    std::string found;
    for (const std::string& form : forms_of_secret())
      if (text.find(form) != std::string::npos) found += form + ",";
    return found;
  }
  static bool probe_says(const std::string& words) {
    const TemporaryDirectory directory;
    Program probe("quasi-cage", {"--probe"}, directory.path() / "probe");
    probe.wait();
    return probe.output().find(words) != std::string::npos;
  }
  static bool whole_cage_is_possible() { return probe_says("\"whole\": true"); }

  Service service;
  HostFiles host;
  std::string neighbour;
};

TEST_F(Escape, HostileDecksAndFilesReadNothingAndTheWorkerGoesOn) {
  service.start_worker("w", {"--slots", "3"});
  host.neighbour = start_neighbour();
  ASSERT_FALSE(host.neighbour.empty());
  std::vector<HostileJob> jobs = hostile_paths(host);
  for (HostileJob& job : hostile_hdf5_files(host, service.directory() / "scratch"))
    jobs.push_back(std::move(job));
  EXPECT_GE(jobs.size(), 40U);
  std::vector<v1::JobSpec> specs;
  for (const HostileJob& job : jobs) specs.push_back(spec_of(job));
  const std::vector<std::string> ids = service.submit(specs);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    SCOPED_TRACE(jobs[i].name);
    const v1::Job job = service.wait_end(ids[i]);
    EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
    EXPECT_EQ(job.failure().reason(), v1::FAILURE_REASON_INVALID_INPUT) << job.failure().message();
    EXPECT_EQ(job.artifacts_size(), 0);
    EXPECT_EQ(secrets_in(job.failure().message()), "") << job.failure().message();
    EXPECT_EQ(secrets_in(service.log_of(ids[i])), "");
    EXPECT_LT(job.attempt_history(0).usage().peak_ram_bytes(), std::uint64_t{1} << 30);
  }
  EXPECT_EQ(service.get(neighbour).state(), v1::JOB_STATE_RUNNING);
  service.cancel(neighbour);
  EXPECT_EQ(service.wait_end(service.submit(noop())).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_FALSE(service.worker("w").wait(within(0)).has_value()) << "the worker has ended";
  std::cout << jobs.size() << " hostile jobs\n";
}

TEST_F(Escape, SlotsOutsideTheInputsAreRefused) {
  for (const std::string& slot : hostile_slots()) {
    grpc::ClientContext context;
    v1::SubmitJobsRequest request;
    request.set_request_id(wire::make_uuid());
    v1::JobSpec& spec = *request.add_jobs();
    spec.mutable_test()->mutable_noop();
    add_input(service, &spec, slot, host.folder / "profile.csv");
    v1::SubmitJobsResponse response;
    const grpc::Status status = service.jobs().SubmitJobs(&context, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << slot;
    EXPECT_NE(status.error_message().find("slot"), std::string::npos) << status.error_message();
  }
}

// An engine that a deck has taken over calls the system as it likes.
TEST_F(Escape, AnEngineThatWasTakenOverReachesNothing) {
  if (!whole_cage_is_possible())
    GTEST_SKIP() << "this system does not permit the whole cage: quasi-cage --probe";
  for (const char* name : {"secret", "spare", "second"})
    std::ofstream(host.folder / name) << kSecret;
  fs::create_symlink(host.socket, host.folder / "socket");
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  setenv("QUASI_TRUE_ENGINE", Program::path_of("quasi-engine").c_str(), 1);
  const std::string prison = host.folder.string() + " " + std::to_string(ntohs(address.sin_port)) +
                             " " + std::to_string(service.server().pid());
  setenv("QUASI_PRISON", prison.c_str(), 1);
  service.start_worker("w", {"--engine", Program::path_of("hostile_engine").string(),
                             "--environment", "QUASI_PRISON"});
  v1::JobSpec spec = noop();
  spec.mutable_retry()->set_max_attempts(1);
  const std::string id = service.submit(spec);
  const v1::Job taken_over = service.wait_end(id);
  EXPECT_EQ(taken_over.state(), v1::JOB_STATE_FAILED);
  close(listener);
  const std::string log = service.log_of(id);
  EXPECT_EQ(log.find("reached: "), std::string::npos) << log;
  const auto tried = log.find("tried ");
  ASSERT_NE(tried, std::string::npos) << taken_over.failure().ShortDebugString() << log;
  EXPECT_GE(std::stoi(log.substr(tried + 6)), 40) << log;
  EXPECT_NE(log.find(", reached 0\n"), std::string::npos) << log;
  std::ifstream secret(host.folder / "secret");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(secret), {}), kSecret);
  EXPECT_TRUE(service.server_runs());

  service.kill_worker("w");
  service.start_worker("w");
  EXPECT_EQ(service.wait_end(service.submit(noop())).state(), v1::JOB_STATE_SUCCEEDED);
}

// A worker whose system lacks a wall serves no job if its operator requires the whole cage. The
// attempts of the others tell which walls stood.
TEST_F(Escape, TheOperatorDecidesIfALackingWallIsAccepted) {
  if (!whole_cage_is_possible())
    GTEST_SKIP() << "this system does not permit the whole cage: quasi-cage --probe";
  const std::string id = service.submit(noop());
  service.start_worker("strict", {"--require-cage", "true", "--isolate-network", "false"});
  const auto status = service.worker("strict").wait(within(60));
  ASSERT_TRUE(status.has_value()) << service.worker_log("strict");
  EXPECT_NE(*status, 0);
  EXPECT_NE(service.worker_log("strict").find("require_cage"), std::string::npos)
      << service.worker_log("strict");
  EXPECT_EQ(service.get(id).state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(service.get(id).attempt_history_size(), 0);

  service.start_worker("w", {"--isolate-network", "false"});
  const v1::Job trusted = service.wait_end(id);
  EXPECT_EQ(trusted.state(), v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(trusted.attempt_history_size(), 1);
  EXPECT_FALSE(trusted.attempt_history(0).isolation().whole());
  service.kill_worker("w");

  service.start_worker("caged", {"--require-cage", "true"});
  const v1::Job caged = service.wait_end(service.submit(noop()));
  EXPECT_EQ(caged.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_TRUE(caged.attempt_history(0).isolation().whole());
  const std::string& walls = caged.attempt_history(0).isolation().walls();
  for (const char* wall : {"network closed", "files closed", "system calls closed"})
    EXPECT_NE(walls.find(wall), std::string::npos) << walls;
  EXPECT_NE(walls.find(probe_says("mounts closed") ? "mounts closed" : "mounts open"),
            std::string::npos)
      << walls;
}

}  // namespace
}  // namespace quasi::test
