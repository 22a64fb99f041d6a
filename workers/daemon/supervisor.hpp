#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "workers/daemon/attempt/attempt_runner.hpp"
#include "workers/daemon/devices/device_board.hpp"

namespace quasi {

/// Who the daemon is and how it behaves towards the server.
struct SupervisorSettings {
  std::string worker_id;    ///< kept in the state directory
  std::string incarnation;  ///< new at each start
  std::string name;
  std::string pool;
  std::string version;
  std::vector<std::string> kinds;
  Milliseconds acquire_wait{20'000};
  Milliseconds retry_first{200};
  Milliseconds retry_most{5'000};
  Milliseconds keep_fenced{std::chrono::hours(24)};
  Milliseconds device_interval{5'000};
  Milliseconds last_ask_limit{10'000};  ///< of a drain, for grants whose answer was lost
  Milliseconds stray_patience{5'000};   ///< at the start, for what SIGKILL has not ended yet; later
                                        ///< a look each device_interval
  Milliseconds heartbeat_limit_least{1'000};  ///< a loaded machine answers within this, too
  Milliseconds heartbeat_limit_most{10'000};  ///< as of every other call
  /// Why the disk has no room for new work, or "".
  std::function<std::string()> scratch_shortage = [] { return std::string(); };
  std::function<std::string()> make_uuid;
  std::function<double()> jitter = [] { return 0.0; };  ///< in [-1, 1]
};

/// The daemon without its I/O: takes leases for free slots, keeps them alive, owns the attempts.
/// Lives on one thread; told of time by tick() and of answers by the ports' callbacks.
class Supervisor {
 public:
  Supervisor(SupervisorSettings settings, const EngineSettings& engine, const WorkerPorts& ports,
             DeviceBoard& devices);

  /// Takes up what earlier incarnations left, then registers.
  void start();
  void tick();
  std::optional<MonotonicTime> next_deadline() const;

  /// No new work; attempts are checkpointed, given time, then released.
  void drain();
  /// As drain, but children are killed now.
  void stop_now();
  /// True after drain() or stop_now() once nothing is left to do. Without a server only reports are
  /// left after the drain's time: they are recorded, and the next start makes them.
  bool finished() const;

  bool registered() const { return registered_; }
  std::size_t attempts() const { return runners_.size(); }
  bool in_contact() const;
  const std::map<std::uint64_t, std::shared_ptr<AttemptRunner>>& runners() const {
    return runners_;
  }

 private:
  /// Repeats a call with growing pauses.
  struct Pacer {
    std::optional<MonotonicTime> at;
    Milliseconds delay{0};
  };
  struct Poll {
    std::string id;
    std::size_t n_slots = 0;
    bool in_flight = false;
    bool broken_off = false;  ///< by us; anything else that ends it early is a trouble
  };

  /// An engine of an earlier daemon that is still there, in the kernel as a rule; its devices are
  /// held for it.
  struct Stray {
    ProcessIdentity child;
    std::uint64_t fence = 0;
    std::vector<WorkerDevice> devices;
    std::string why() const;
  };

  MonotonicTime now() const { return ports_.clock.now(); }
  AttemptRunner::Hooks hooks(const std::vector<WorkerDevice>& devices, std::uint64_t fence);
  void recover();
  void end_strays();
  void register_now();
  void registered(MonotonicTime sent, const std::vector<std::uint64_t>& listed,
                  const grpc::Status& status, const v1::RegisterResponse& response);
  void take_up_salvage(const v1::RegisterResponse& response);
  void acquire();
  void break_off_poll();
  /// A drain asks only to learn what a poll without an answer was granted.
  bool asks_last() const { return draining_ && !poll_.id.empty(); }
  void acquired(const grpc::Status& status, const v1::AcquireLeasesResponse& response);
  void take(const v1::Grant& grant);
  void decline(const v1::Grant& grant, std::vector<WorkerDevice> devices, Ending ending);
  void adopt(std::shared_ptr<AttemptRunner> runner);
  void heartbeat();
  /// Half of the lease: after one answer that never comes there is time for another.
  Milliseconds heartbeat_limit() const;
  void heard(MonotonicTime sent, const grpc::Status& status, const v1::HeartbeatResponse& response);
  /// Another process has registered under this worker's id: this one has no rights any more.
  void superseded(const std::string& why);
  void watch_contact();
  bool leaves_reports_to_next_start() const;
  /// Gives a lease back whose grant cannot be recorded here. The answer is not waited for.
  void release_unrecorded(const v1::Grant& grant, const std::string& why);
  void collect();
  void again_later(Pacer& pacer);
  void contact(MonotonicTime sent) { last_contact_ = std::max(last_contact_, sent); }
  /// Takes a duration of the server over, unless it names none.
  static void adopt_duration(const google::protobuf::Duration& told, Milliseconds* value);
  bool due(const std::optional<MonotonicTime>& time) const { return time && now() >= *time; }

  SupervisorSettings settings_;
  const EngineSettings& engine_;
  WorkerPorts ports_;
  DeviceBoard& devices_;
  std::map<std::uint64_t, std::shared_ptr<AttemptRunner>> runners_;
  std::vector<AttemptStore::Recovered> salvage_;
  std::vector<Stray> strays_;
  std::vector<std::pair<MonotonicTime, std::uint64_t>> kept_;

  bool registered_ = false;
  bool registering_ = false;
  Pacer register_again_;
  Poll poll_;
  Pacer acquire_again_;
  bool heartbeat_in_flight_ = false;
  std::optional<MonotonicTime> next_heartbeat_;
  std::optional<MonotonicTime> next_device_look_;
  MonotonicTime last_contact_{};
  Milliseconds lease_ttl_{60'000};
  Milliseconds heartbeat_interval_{20'000};
  Milliseconds orphan_grace_{600'000};
  Milliseconds orphan_limit_{86'400'000};
  bool grace_over_ = false;
  bool draining_ = false;
  MonotonicTime stop_asking_{};
  MonotonicTime drain_over_{};  ///< From then on a drain waits for engines alone.
};

}  // namespace quasi
