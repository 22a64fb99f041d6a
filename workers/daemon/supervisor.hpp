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

/// Identity of the daemon and its timing towards the server.
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
  Milliseconds last_ask_limit{10'000};  ///< time during a drain to ask for grants whose answer was
                                        ///< lost
  Milliseconds stray_patience{5'000};   ///< time at the start for processes that SIGKILL has not
                                        ///< ended; later one check each device_interval
  Milliseconds heartbeat_limit_least{1'000};  ///< a loaded machine answers within this time
  Milliseconds heartbeat_limit_most{10'000};  ///< limit of every other call
  Milliseconds self_test_interval{0};         ///< between self-tests of an idle GPU; 0: none
  Milliseconds retest_interval{60'000};       ///< between self-tests of a quarantined GPU
  std::optional<MonotonicTime> drain_at;      ///< when this worker drains, e.g. by its allocation
  Milliseconds idle_timeout{0};               ///< time without an attempt until it drains; 0: never
  /// Returns the reason why the disk has no room for new work, or "".
  std::function<std::string()> scratch_shortage = [] { return std::string(); };
  std::function<std::string()> make_uuid;
  std::function<double()> jitter = [] { return 0.0; };  ///< in [-1, 1]
};

/// Decisions of the daemon without I/O. It takes leases for free slots, keeps them alive and owns
/// the attempts. It lives on one thread. tick() gives it the time, and callbacks of the ports give
/// it answers.
class Supervisor {
 public:
  Supervisor(SupervisorSettings settings, const EngineSettings& engine, const WorkerPorts& ports,
             DeviceBoard& devices);

  /// Continues the attempts that earlier daemons left behind, then registers with the server.
  void start();
  /// Handles all deadlines that have passed: polls, heartbeats, repeated calls and attempts.
  void tick();
  std::optional<MonotonicTime> next_deadline() const;

  /// Takes no new work. Attempts whose time limit ends in time go on. The others are checkpointed,
  /// given time and then released.
  void drain();
  /// Takes no new work and kills the children without a grace period.
  void stop_now();
  /// Returns true after drain() or stop_now() when nothing is left to do. If the drain's time is
  /// over and the server does not answer, the reports remain recorded and the next start sends
  /// them.
  bool finished() const;

  bool registered() const { return registered_; }
  std::size_t attempts() const { return runners_.size(); }
  /// Returns true while the server has answered recently enough for the leases to be valid.
  bool in_contact() const;
  const std::map<std::uint64_t, std::shared_ptr<AttemptRunner>>& runners() const {
    return runners_;
  }

 private:
  /// Repeats a call with growing pauses between the tries.
  struct Pacer {
    std::optional<MonotonicTime> at;
    Milliseconds delay{0};
  };
  struct Poll {
    std::string id;
    std::size_t n_slots = 0;
    bool in_flight = false;
    bool broken_off = false;  ///< true if this daemon cancelled the poll; any other early end is an
                              ///< error
  };

  /// Engine of an earlier daemon that still exists, usually stuck in the kernel. Its devices are
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
  /// Returns true during a drain that polls only to learn the grants of an unanswered poll.
  bool asks_last() const { return draining_ && !poll_.id.empty(); }
  void acquired(const grpc::Status& status, const v1::AcquireLeasesResponse& response);
  void take(const v1::Grant& grant);
  void decline(const v1::Grant& grant, std::vector<WorkerDevice> devices, Ending ending);
  void adopt(std::shared_ptr<AttemptRunner> runner);
  void heartbeat();
  /// Returns half of the lease, so that after one lost answer there is time for another heartbeat.
  Milliseconds heartbeat_limit() const;
  void heard(MonotonicTime sent, const grpc::Status& status, const v1::HeartbeatResponse& response);
  /// Handles another process that registered under this worker's id: this daemon loses all its
  /// rights.
  void superseded(const std::string& why);
  void watch_contact();
  /// Drains at the end of the worker's time, and after a long time without an attempt.
  void watch_end();
  /// Looks at the devices: health, memory of attempts, self-tests that are due.
  void look_at_devices();
  void test_devices();
  bool leaves_reports_to_next_start() const;
  /// Gives back a lease whose grant cannot be recorded here. It does not wait for the answer.
  void release_unrecorded(const v1::Grant& grant, const std::string& why);
  void collect();
  void again_later(Pacer& pacer);
  void contact(MonotonicTime sent) { last_contact_ = std::max(last_contact_, sent); }
  /// Adopts a duration that the server sent, unless it is absent.
  static void adopt_duration(const google::protobuf::Duration& duration, Milliseconds* value);
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
  MonotonicTime idle_since_{};
  MonotonicTime stop_asking_{};
  MonotonicTime drain_over_{};  ///< From this time on a drain waits for engines alone.
};

}  // namespace quasi
