// The drill of docs/reference/operations.md with real programs: a backup while jobs run, the loss
// of the server with its disk, the restoration, and the work that goes on. Nothing that the backup
// held may be lost, no fence may be granted twice, and workers of the lost server are fenced.

#include <grpcpp/client_context.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "server/store/backup/files_lock.hpp"
#include "server/store/sqlite.hpp"
#include "tests/service/support/service_fixture.hpp"
#include "tests/support/reference_data.hpp"

namespace quasi::test {
namespace {

namespace fs = std::filesystem;

/// Attempts of a store by their ids, with their fences.
std::map<std::string, std::int64_t> fences_of(const fs::path& data) {
  server::Database database((data / "quasi.db").string(), server::Database::Mode::kReader);
  server::Statement rows(database, "SELECT uid, fence FROM attempts");
  std::map<std::string, std::int64_t> fences;
  while (rows.step()) fences[rows.text(0)] = rows.integer(1);
  return fences;
}

class Drill : public testing::Test {
 protected:
  fs::path data() const { return service_.directory() / "data"; }
  fs::path folder() const { return service_.directory() / "backups"; }
  /// Runs `quasi-server` with these arguments. @return its exit status
  int run(const std::vector<std::string>& arguments) {
    const fs::path log = service_.directory() / "command.log";
    Program program("quasi-server", arguments, log);
    const auto status = program.wait();
    said_ = program.output();
    return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
  }
  grpc::StatusCode code_of(const std::string& id) {
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_job_id(id);
    v1::GetJobResponse response;
    return service_.jobs().GetJob(&context, request, &response).error_code();
  }

  Service service_;
  std::string said_;
};

TEST_F(Drill, AKilledServerGoesOnFromItsBackup) {
  service_.start_server();
  for (const char* worker : {"a", "b"}) service_.start_worker(worker, {"--slots", "2"});
  const std::string hanging = service_.submit(hang(false));
  service_.wait_state(hanging, v1::JOB_STATE_RUNNING);
  std::vector<std::string> held = service_.submit(std::vector(20, sleep_for(0.05)));
  const auto waiting = service_.submit(std::vector(10, checkpointing(3, 0.05)));
  held.insert(held.end(), waiting.begin(), waiting.end());

  // Jobs are submitted and run while the backup is made.
  std::atomic<bool> stop{false};
  std::thread load([&] {
    const auto stub = v1::JobService::NewStub(service_.channel());
    while (!stop) service_.submit({noop()}, *stub);
  });
  const int backed_up = run({"backup", folder().string(), "--data-directory", data().string()});
  stop = true;
  load.join();
  ASSERT_EQ(backed_up, 0) << said_;
  const std::string late = service_.submit(noop());
  service_.wait_end(late);

  service_.kill_server();
  const fs::path lost = service_.directory() / "lost";
  fs::rename(data(), lost);
  const auto lost_fences = fences_of(lost);
  std::int64_t newest_lost = 0;
  for (const auto& [uid, fence] : lost_fences) newest_lost = std::max(newest_lost, fence);
  ASSERT_EQ(run({"restore", folder().string(), "--data-directory", data().string()}), 0) << said_;
  EXPECT_TRUE(std::regex_search(said_, std::regex("\n[1-4] attempts? of that time released")))
      << said_;
  service_.start_server();

  for (const std::string& id : held)
    EXPECT_EQ(service_.wait_end(id).state(), v1::JOB_STATE_SUCCEEDED) << id;
  EXPECT_EQ(code_of(late), grpc::StatusCode::NOT_FOUND) << "it came after the backup";
  // The job that ran through it all has lost its attempt and got another one.
  const v1::Job job = service_.wait(hanging, [](const v1::Job& view) {
    return view.state() == v1::JOB_STATE_RUNNING && view.attempt_history_size() > 1;
  });
  EXPECT_EQ(job.attempt_history(0).outcome(), v1::ATTEMPT_OUTCOME_RELEASED);
  EXPECT_TRUE(wait_for([&] {
    return (service_.worker_log("a") + service_.worker_log("b")).find("fenced") !=
           std::string::npos;
  }));
  service_.cancel(hanging);
  EXPECT_EQ(service_.wait_end(hanging).state(), v1::JOB_STATE_CANCELLED);
  for (const auto& [uid, fence] : fences_of(data())) {
    if (lost_fences.contains(uid)) continue;
    EXPECT_GT(fence, newest_lost) << "a fence of the lost server was granted again";
  }
  EXPECT_EQ(run({"check", "--deep", "--data-directory", data().string()}), 0) << said_;
}

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The commands of docs/reference/operations.md and of the unit, with the folders of this test.
TEST_F(Drill, TheStepsOfThePageAndOfTheUnitWork) {
  service_.start_server();
  const std::string id = service_.submit(noop());
  const std::string page = text_of(source_dir() / "docs/reference/operations.md");
  const std::size_t begin = page.find("### Back the server up each night");
  ASSERT_NE(begin, std::string::npos);
  std::istringstream steps(page.substr(begin, page.find("\n### ", begin + 5) - begin));
  std::vector<std::string> commands;
  const std::string prefix = "sudo -u quasi quasi-server ";
  for (std::string line; std::getline(steps, line);)
    if (line.starts_with(prefix)) commands.push_back(line.substr(prefix.size()));
  ASSERT_EQ(commands.size(), 5u) << "backup, two of the rehearsal, two of the restoration";
  // systemd joins a line that ends with a backslash to the next line.
  const std::string unit = std::regex_replace(
      text_of(source_dir() / "deploy/systemd/quasi-backup.service"), std::regex("\\\\\n *"), "");
  std::smatch start;
  ASSERT_TRUE(
      std::regex_search(unit, start, std::regex("ExecStart=/usr/local/bin/quasi-server (.*)")));
  commands.insert(commands.begin(), start[1].str());
  const std::vector<std::pair<std::string, std::string>> places = {
      {"/var/backups/quasi", folder().string()},
      {"/var/lib/quasi/server", data().string()},
      {"/var/lib/quasi/rehearsal", (service_.directory() / "rehearsal").string()}};
  for (const std::string& command : commands) {
    SCOPED_TRACE(command);
    std::istringstream words(command);
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) {
      for (const auto& [place, here] : places)
        if (word == place) word = here;
      arguments.push_back(word);
    }
    if (command.starts_with("restore") && arguments.back() == data()) {
      service_.kill_server();
      fs::rename(data(), service_.directory() / "lost");
    }
    EXPECT_EQ(run(arguments), 0) << said_;
  }
  service_.start_server();
  EXPECT_EQ(service_.get(id).id(), id);
}

TEST_F(Drill, AKilledBackupLeavesTheOthersAndKeepsNoFile) {
  service_.start_server();
  service_.submit(noop());
  const std::vector<std::string> backup{"backup", folder().string(), "--data-directory",
                                        data().string()};
  ASSERT_EQ(run(backup), 0) << said_;
  std::vector<std::string> slow = backup;
  slow.insert(slow.end(), {"--bytes-per-second", "1000"});
  {
    Program program("quasi-server", slow, service_.directory() / "slow.log");
    ASSERT_TRUE(wait_for([&] {
      return server::FilesLock::for_removal(data().string()) == nullptr;
    })) << "the backup keeps the files of the store while it runs";
    EXPECT_EQ(run(backup), 73) << "two backups do not write to one folder: " << said_;
  }
  EXPECT_NE(server::FilesLock::for_removal(data().string()), nullptr);
  ASSERT_EQ(run(backup), 0) << said_;
  int n_backups = 0;
  for (const auto& entry : fs::directory_iterator(folder())) {
    EXPECT_FALSE(entry.path().string().ends_with(".part")) << entry.path();
    n_backups += fs::exists(entry.path() / "BACKUP.json");
  }
  EXPECT_EQ(n_backups, 2);
  EXPECT_EQ(run({"backup", folder().string(), "--data-directory", "/no/such"}), 78);
  EXPECT_NE(said_.find("/no/such/quasi.db does not exist"), std::string::npos) << said_;
}

}  // namespace
}  // namespace quasi::test
