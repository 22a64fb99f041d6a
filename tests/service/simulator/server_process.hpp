#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quasi/v1/worker_service.pb.h"
#include "server/api/services.hpp"
#include "tests/service/simulator/judge.hpp"
#include "tests/service/simulator/network.hpp"
#include "tests/service/support/power_cut_disk.hpp"
#include "tests/service/support/queue_world.hpp"

namespace quasi::sim {

using server::WriteContext;
using server::test::PowerCutDisk;
using server::test::QueueWorld;

/// The server: its queue, store and blobs on a disk whose power can be cut. Calls wait for the next
/// group as they do for the writer's thread.
class ServerProcess {
 public:
  using Done = std::function<void(const grpc::Status&)>;

  ServerProcess(Timeline& timeline, Dice& dice, Judge& judge);
  ~ServerProcess();

  bool is_up() const { return world_ != nullptr; }
  /// Opens the database and serves. @return false if the power was cut meanwhile
  bool start();
  /// Ends the process at once. `loss` tells which unsynced bytes survive: all of them if the
  /// process alone was killed.
  void die(PowerCutDisk::Loss loss, const std::string& why);
  /// Cuts the power before one of the next changes of the disk.
  void cut_power_soon(std::int64_t points) { disk_.cut_at(points); }
  /// Closes the database properly, as SIGTERM does.
  void stop();
  /// Lets the wall clock jump; the monotonic clock goes on.
  void jump(std::int64_t by_ms);

  /// Queues a write. Its answer comes after the commit of its group, or never if the server dies
  /// first. A server that is down answers at once.
  void write(const char* method, std::function<void(WriteContext&)> body, Done done);
  /// Runs a request for jobs as write() does. It waits until a job is granted to it or its time is
  /// over. A request whose caller has gone gets nothing.
  void acquire(const v1::AcquireLeasesRequest& request, Awaited awaited,
               std::function<void(const grpc::Status&, const v1::AcquireLeasesResponse&)> done);

  grpc::Status put_blob(const std::string& bytes);
  /// The bytes of a blob that may be served.
  grpc::Status get_blob(const std::string& digest, std::string* bytes);
  /// One step of the collection of garbage, of the moving of logs, or of the write-ahead log.
  void keep_house();

  QueueWorld& world() { return *world_; }
  const server::ApiOptions& options() const { return options_; }
  int restarts() const { return restarts_; }

 private:
  struct Waiting {
    const char* method;
    std::function<void(WriteContext&)> body;
    Done done;
  };
  struct Poll {
    v1::AcquireLeasesRequest request;
    Awaited awaited;
    std::int64_t begun_ms = 0, until_ms = 0;
    std::function<void(const grpc::Status&, const v1::AcquireLeasesResponse&)> done;
  };

  void set_clock();
  void run_group();
  void ask(const std::shared_ptr<Poll>& poll);
  void tick();
  void collect_garbage();
  /// Runs work on the disk. The process dies if the power is cut meanwhile. @return false then
  bool guarded(const std::function<void()>& work);

  Timeline& timeline_;
  Dice& dice_;
  Judge& judge_;
  server::ApiOptions options_;
  PowerCutDisk disk_;
  server::test::FakeClock clock_;
  std::int64_t wall_offset_ms_ = 1'700'000'000'000;
  std::int64_t monotonic_offset_ms_ = 1'000;
  server::SeededRandom random_;
  std::vector<Waiting> waiting_;
  std::vector<std::shared_ptr<Poll>> parked_;
  bool group_is_planned_ = false;
  std::uint64_t life_ = 0;
  int restarts_ = 0;
  std::unique_ptr<QueueWorld> world_;
};

/// The parts of the simulation that workers, clients and operators use.
struct Surroundings {
  Timeline& timeline;
  Dice& dice;
  Network& network;
  ServerProcess& server;
  Judge& judge;
};

}  // namespace quasi::sim
