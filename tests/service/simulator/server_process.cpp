#include "tests/service/simulator/server_process.hpp"

#include "server/api/convert.hpp"
#include "server/api/status.hpp"
#include "server/api/workers/worker_calls.hpp"

namespace quasi::sim {
namespace {

const std::string kRoot = "/data";
/// Length of the write-ahead log from which on it is copied into the database. The server waits for
/// a longer one.
constexpr std::int64_t kCheckpointPages = 200;
constexpr std::uint64_t kTicksPerCollection = 8;

grpc::Status no_connection() { return {grpc::StatusCode::UNAVAILABLE, "no connection"}; }

server::QueueOptions queue_options(const Rules& rules) {
  return server::with_actions({.lease_ttl_ms = rules.lease_ttl_ms,
                               .restart_grace_ms = rules.restart_grace_ms,
                               .requeue_delay_ms = rules.requeue_delay_ms,
                               .retry_back_off_ms = rules.retry_back_off_ms,
                               .default_max_runtime_ms = 120'000,
                               .quotas = {.user = {.unfinished_jobs = rules.unfinished_jobs_of_user,
                                                   .running_gpus = rules.gpus_of_user},
                                          .tenant = {.running_gpus = rules.gpus_of_tenant}},
                               .results = {.version = "simulated"}});
}

server::ApiOptions api_options(const Rules& rules) {
  server::ApiOptions options;
  options.enable_test_work = true;
  options.lease_ttl_ms = rules.lease_ttl_ms;
  options.heartbeat_interval_ms = rules.lease_ttl_ms / 3;
  options.stage_timeout_ms = 30'000;
  options.orphan_grace_ms = 15'000;
  options.orphan_limit_ms = 40'000;
  return options;
}

server::test::ServerDisk disk_of(PowerCutDisk& disk) {
  return {.files = disk, .root = kRoot, .database = kRoot + "/quasi.db", .vfs = disk.vfs_name()};
}

/// The files of a server that was stopped after its first start, by name. Every story begins with
/// them, because the schema takes a tenth of the time of a story.
const std::map<std::string, std::string>& first_files(const Rules& rules) {
  static const auto files = [&] {
    PowerCutDisk disk(kRoot);
    server::test::FakeClock clock;
    server::SeededRandom random(1);
    QueueWorld(disk_of(disk), clock, random, queue_options(rules)).engine.close();
    std::map<std::string, std::string> found;
    for (const std::string& name : disk.list(kRoot))
      if (const auto node = disk.find(kRoot + "/" + name); !node->directory)
        found[name] = node->bytes;
    return found;
  }();
  return files;
}

}  // namespace

ServerProcess::ServerProcess(Timeline& timeline, Dice& dice, Judge& judge)
    : timeline_(timeline),
      dice_(dice),
      judge_(judge),
      options_(api_options(judge.rules())),
      disk_(kRoot),
      random_(dice.engine()()) {
  for (const auto& [name, bytes] : first_files(judge.rules())) {
    const auto file = disk_.open(kRoot + "/" + name, PowerCutDisk::Open::kCreate);
    file->write(0, bytes);
    file->sync();
  }
  disk_.sync_directory(kRoot);
}

ServerProcess::~ServerProcess() { judge_.note_stop(); }

void ServerProcess::set_clock() {
  clock_.time = {.wall_ms = wall_offset_ms_ + timeline_.now(),
                 .monotonic_ms = monotonic_offset_ms_ + timeline_.now()};
}

bool ServerProcess::start() {
  set_clock();
  ++life_;
  ++restarts_;
  timeline_.record("the server starts");
  if (!guarded([&] {
        world_ = std::make_unique<QueueWorld>(disk_of(disk_), clock_, random_,
                                              queue_options(judge_.rules()));
        judge_.note_start(*world_);
      }))
    return false;
  timeline_.plan_timeout(judge_.rules().tick_ms, [this, life = life_] {
    if (life == life_) tick();
  });
  return true;
}

void ServerProcess::die(PowerCutDisk::Loss loss, const std::string& why) {
  if (!world_) return;
  timeline_.record("the server dies: " + why);
  ++life_;
  judge_.note_stop();
  // From here on nothing reaches the disk, not even what SQLite does when it closes a file.
  if (!disk_.is_cut()) disk_.cut_at(1);
  world_.reset();
  disk_.restart(loss, dice_.engine()());
  if (loss != PowerCutDisk::Loss::kNothing) monotonic_offset_ms_ = dice_.draw(1, 1 << 20);
  // The callers notice that the connection is gone.
  auto waiting = std::exchange(waiting_, {});
  for (const Waiting& call : waiting) call.done(no_connection());
  auto parked = std::exchange(parked_, {});
  for (const auto& poll : parked) poll->done(no_connection(), {});
  group_is_planned_ = false;
}

void ServerProcess::stop() {
  if (!world_) return;
  timeline_.record("the server is told to stop");
  if (guarded([&] { world_->engine.close(); }))
    die(PowerCutDisk::Loss::kNothing, "it has closed its database");
}

void ServerProcess::jump(std::int64_t by_ms) {
  timeline_.record("the wall clock jumps by " + std::to_string(by_ms) + " ms");
  wall_offset_ms_ += by_ms;
}

bool ServerProcess::guarded(const std::function<void()>& work) {
  std::string why;
  try {
    set_clock();
    work();
    return true;
  } catch (const server::StorageFatal& error) {
    why = error.what();
  } catch (const server::FileError& error) {
    why = error.what();
  } catch (const server::SqliteError& error) {
    why = error.what();
  }
  if (!disk_.is_cut()) judge_.report_violation("I1", "the store failed without a fault: " + why);
  static constexpr PowerCutDisk::Loss kLosses[] = {PowerCutDisk::Loss::kNothing,
                                                   PowerCutDisk::Loss::kEverything,
                                                   PowerCutDisk::Loss::kRandomPart};
  // A constructor that failed has left no world to destroy.
  if (world_) {
    die(kLosses[dice_.draw(3)], "the power is cut");
  } else {
    ++life_;
    judge_.note_stop();
    disk_.restart(kLosses[dice_.draw(3)], dice_.engine()());
  }
  return false;
}

void ServerProcess::write(const char* method, std::function<void(WriteContext&)> body, Done done) {
  if (!world_) return done(no_connection());
  waiting_.push_back({.method = method, .body = std::move(body), .done = std::move(done)});
  if (std::exchange(group_is_planned_, true)) return;
  timeline_.plan_timeout(dice_.draw(0, 3), [this, life = life_] {
    if (life == life_) run_group();
  });
}

void ServerProcess::run_group() {
  group_is_planned_ = false;
  if (!world_ || waiting_.empty()) return;
  auto group = std::exchange(waiting_, {});
  std::vector<grpc::Status> statuses(group.size());
  std::vector<server::WriteTask> tasks;
  for (std::size_t i = 0; i < group.size(); ++i)
    tasks.push_back(
        {.body = group[i].body, .done = [&statuses, &group, i](const std::exception_ptr& error) {
           statuses[i] = server::to_status(error, group[i].method);
         }});
  bool is_ready = false;
  const bool survived = guarded([&] {
    is_ready = world_->engine.run_group(tasks).jobs_ready;
    judge_.follow_commit();
    if (world_->engine.wal_pages() > kCheckpointPages)
      world_->engine.checkpoint(server::Database::Checkpoint::kPassive);
  });
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (statuses[i].error_code() == grpc::StatusCode::INTERNAL)
      judge_.report_violation("internal error",
                              std::string(group[i].method) + ": " + statuses[i].error_message());
    group[i].done(survived ? statuses[i] : no_connection());
  }
  if (!is_ready || !world_) return;
  const auto parked = std::exchange(parked_, {});
  for (const auto& poll : parked) ask(poll);
}

void ServerProcess::acquire(
    const v1::AcquireLeasesRequest& request, Awaited awaited,
    std::function<void(const grpc::Status&, const v1::AcquireLeasesResponse&)> done) {
  auto poll = std::make_shared<Poll>();
  poll->request = request;
  poll->awaited = std::move(awaited);
  poll->begun_ms = timeline_.now();
  poll->until_ms = timeline_.now() + server::to_milliseconds(request.wait());
  poll->done = std::move(done);
  ask(poll);
}

void ServerProcess::ask(const std::shared_ptr<Poll>& poll) {
  auto acquired = std::make_shared<server::Acquired>();
  write(
      "AcquireLeases",
      [this, poll, acquired](WriteContext& write) {
        if (!poll->awaited()) return;
        const auto command = server::to_command(poll->request, timeline_.now() - poll->begun_ms);
        *acquired = write.queue.apply(command, write.now);
        for (const server::Grant& grant : acquired->grants) {
          judge_.note_prolonged_lease(grant.attempt.fence);
          judge_.check_grant(command, grant);
        }
      },
      [this, poll, acquired](const grpc::Status& status) {
        v1::AcquireLeasesResponse response;
        if (status.ok() && acquired->grants.empty() && timeline_.now() < poll->until_ms)
          return parked_.push_back(poll);
        if (status.ok()) server::add_grants(*acquired, options_, response);
        poll->done(status, response);
      });
}

void ServerProcess::tick() {
  write(
      "tick", [](WriteContext& write) { write.queue.tick(write.now); },
      [this](const grpc::Status& status) {
        if (status.ok()) judge_.check_times();
      });
  auto parked = std::exchange(parked_, {});
  for (const auto& poll : parked) {
    if (timeline_.now() < poll->until_ms && poll->awaited())
      parked_.push_back(poll);
    else
      poll->done(grpc::Status::OK, {});
  }
  timeline_.plan_timeout(judge_.rules().tick_ms, [this, life = life_] {
    if (life == life_) tick();
  });
  if (dice_.one_in(kTicksPerCollection)) collect_garbage();
}

grpc::Status ServerProcess::put_blob(const std::string& bytes) {
  if (!world_) return no_connection();
  // The upload call is refused, too, while an old copy is being removed.
  const auto state = world_->engine.store().blob_state(wire::sha256_hex(bytes));
  if (state == server::BlobState::kDeleting)
    return {grpc::StatusCode::UNAVAILABLE, "an old copy of this blob is being removed"};
  grpc::Status status;
  const bool survived = guarded([&] {
    try {
      world_->put_blob(bytes);
    } catch (const server::Refused& refused) {
      status = server::to_status(refused);
    }
  });
  return survived ? status : no_connection();
}

grpc::Status ServerProcess::get_blob(const std::string& digest, std::string* bytes) {
  if (!world_) return no_connection();
  const auto size = world_->engine.store().blob_size(server::Scope::everything(), digest);
  if (!size || !world_->blobs.has(digest)) return {grpc::StatusCode::NOT_FOUND, "no such blob"};
  const auto file = world_->blobs.open(digest);
  bytes->assign(file->size(), '\0');
  file->read(0, bytes->data(), bytes->size());
  if (wire::sha256_hex(*bytes) != digest)
    judge_.report_violation("I10", "other bytes of " + digest);
  return grpc::Status::OK;
}

void ServerProcess::keep_house() {
  if (!world_) return;
  if (dice_.one_in(3)) {
    guarded([&] {
      world_->engine.checkpoint(dice_.one_in(2) ? server::Database::Checkpoint::kPassive
                                                : server::Database::Checkpoint::kTruncate);
    });
    return;
  }
  if (dice_.one_in(2)) {
    timeline_.record("logs move into their files");
    guarded([&] {
      std::vector<server::SqliteStore::LogToFold> logs;
      world_->run([&](WriteContext& write) { logs = write.store.logs_to_fold(0, 16); });
      for (const auto& log : logs) world_->logs.write(log.uid, log.folded_bytes, log.data);
      world_->run([&](WriteContext& write) { server::forget_folded(write.store, logs); });
    });
    return;
  }
  collect_garbage();
}

void ServerProcess::collect_garbage() {
  auto garbage = std::make_shared<server::Garbage>();
  const server::RetentionOptions options{.blob_grace_ms = 1'000};
  if (!guarded([&] {
        world_->run([&](WriteContext& write) { server::choose_garbage(write, options, *garbage); });
      }))
    return;
  if (garbage->blobs.empty() && garbage->jobs.empty() && garbage->uploads.empty()) return;
  timeline_.record(std::to_string(garbage->blobs.size()) + " blobs are garbage");
  // Calls come between the steps.
  timeline_.plan_event(dice_.draw(1, 200), [this, garbage, life = life_] {
    if (life != life_) return;
    guarded([&] {
      server::remove_files(*garbage, world_->blobs, world_->logs);
      world_->run([&](WriteContext& write) {
        server::forget_removed(write.store, world_->blobs, *garbage);
      });
    });
  });
}

}  // namespace quasi::sim
