#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/wire/digest.hpp"
#include "server/queue/refused.hpp"
#include "server/service/housekeeping.hpp"
#include "server/service/queue_engine.hpp"
#include "server/service/uploads.hpp"
#include "server/store/blob_store.hpp"

namespace quasi::server::test {

class FakeClock : public Clock {
 public:
  Now now() const override { return time; }
  void advance(std::int64_t ms) {
    time.wall_ms += ms;
    time.monotonic_ms += ms;
  }
  Now time{.wall_ms = 1'700'000'000'000, .monotonic_ms = 1'000};
};

/// The places where a server keeps its data.
struct ServerDisk {
  FileSystem& files;
  std::string root;                   ///< folder of blobs and logs
  std::string database = ":memory:";  ///< path of the database
  std::string vfs = "";               ///< SQLite's file system; "" is the default
};

/// A server's queue, database and files on any file system, without threads and network.
struct QueueWorld {
  QueueWorld(const ServerDisk& disk, FakeClock& clock_, RandomSource& random,
             const QueueOptions& options)
      : clock(clock_),
        logs(disk.files, disk.root),
        blobs(disk.files, disk.root),
        uploads(blobs),
        mark(disk.files, disk.root),
        engine(
            {.database_path = disk.database,
             .vfs = disk.vfs,
             .files = disk.files,
             .mark = &mark,
             .before_writing = [this](SqliteStore& store) { reconcile_files(store, blobs, mark); }},
            logs, random, options, clock_) {
    finish_deletions(engine.store(), blobs);
  }

  /// Runs one command in a group of its own and rethrows its refusal. `checks_first` is the one of
  /// WriteTask.
  void run(std::function<void(WriteContext&)> body, bool checks_first = false) {
    std::exception_ptr failure;
    WriteTask task{.body = std::move(body),
                   .done = [&](std::exception_ptr error) { failure = std::move(error); },
                   .checks_first = checks_first};
    engine.run_group({&task, 1});
    if (failure) std::rethrow_exception(failure);
  }
  /// Applies one command and returns its result; throws its refusal.
  template <class Command>
  auto apply(const Command& command) {
    using Result = decltype(engine.queue().apply(command, clock.now()));
    if constexpr (std::is_void_v<Result>) {
      run([&](WriteContext& write) { write.queue.apply(command, write.now); });
    } else {
      Result result{};
      run([&](WriteContext& write) { result = write.queue.apply(command, write.now); });
      return result;
    }
  }
  /// Stores bytes as the upload calls do: stages, syncs, renames and records them.
  /// @return the digest
  std::string put_blob(const std::string& bytes) {
    const std::string digest = wire::sha256_hex(bytes);
    const std::string id = "upload-" + digest.substr(0, 12);
    const auto session = uploads.open(
        {.upload_id = id, .digest = digest, .size_bytes = bytes.size(), .known = std::nullopt},
        std::int64_t{1} << 40, this);
    session->append(0, bytes);
    uploads.publish(*session);
    uploads.close(session, this);
    run([&](WriteContext& write) {
      write.store.insert_blob(digest, static_cast<std::int64_t>(bytes.size()), write.now.wall_ms);
    });
    return digest;
  }

  FakeClock& clock;
  LogStore logs;
  BlobStore blobs;
  Uploads uploads;
  NewestMark mark;
  QueueEngine engine;
};

inline std::string uuid_of(std::uint64_t number) {
  const std::string hex = wire::sha256_hex(std::to_string(number)).substr(0, 32);
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20);
}

inline NewJob simple_job(const std::string& name, std::int32_t max_attempts = 3) {
  NewJob job;
  job.row.name = name;
  job.row.kind = "test";
  job.row.pool = "default";
  job.row.max_attempts = max_attempts;
  job.spec = "spec of " + name;
  return job;
}

/// The scope of a user.
inline Scope user_scope(std::int64_t principal_id, const std::string& tenant) {
  return {.is_everything = false, .principal_id = principal_id, .tenant = tenant};
}

/// A request of one of three users of two tenants, by its number. From 60 on the jobs are equal.
inline SubmitJobs story_submission(const std::string& request, int number) {
  const int user = number % 3;
  NewJob job = simple_job(std::to_string(number));
  if (number >= 60) {
    job.row.action = std::string(64, 'e');
    job.row.cache = CachePolicy::kUse;
  }
  return {.scope = user_scope(1 + user, user == 0 ? "phonons" : "devices"),
          .request_id = request,
          .body_sha256 = "body",
          .jobs = {job}};
}

inline RegisterWorker simple_worker(const std::string& id, std::uint64_t incarnation,
                                    std::int32_t slots) {
  RegisterWorker command;
  const DeviceRow device{.id = "cpu",
                         .backend = Backend::kCpu,
                         .model = "fake",
                         .memory_bytes = std::int64_t{1} << 34,
                         .slots = slots};
  command.worker = {.id = id,
                    .incarnation = uuid_of(incarnation),
                    .name = id,
                    .version = "test",
                    .pool = "default",
                    .kinds = {"test"},
                    .devices = {device}};
  command.devices = {{.device = device}};
  return command;
}

/// The same worker with a GPU as its device.
inline RegisterWorker simple_gpu_worker(const std::string& id, std::uint64_t incarnation,
                                        std::int32_t slots) {
  RegisterWorker command = simple_worker(id, incarnation, slots);
  command.worker.devices.at(0).backend = Backend::kCuda;
  command.devices.at(0).device.backend = Backend::kCuda;
  return command;
}

inline AcquireLeases simple_acquire(const RegisterWorker& worker, std::uint64_t acquire,
                                    std::size_t slots) {
  AcquireLeases command{.worker_id = worker.worker.id,
                        .incarnation = worker.worker.incarnation,
                        .acquire_id = uuid_of(acquire)};
  command.slots.assign(slots, {.device_id = "cpu"});
  return command;
}

inline AttemptKey key_of(const Grant& grant) {
  return {.worker_id = grant.attempt.worker_id,
          .attempt_uid = grant.attempt.uid,
          .fence = grant.attempt.fence};
}

}  // namespace quasi::server::test
