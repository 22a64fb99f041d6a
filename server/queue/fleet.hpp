#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/queue/commands.hpp"

namespace quasi::server {

/// The workers that have registered since this process started, as they last described themselves.
/// They are kept in memory only: after a restart of the server each live worker registers again.
class Fleet {
 public:
  struct Member {
    WorkerRow worker;
    std::map<std::string, DeviceStatus> devices;
    bool draining = false;
    std::int64_t last_seen_ms = 0;  ///< monotonic
  };

  void put(const RegisterWorker& command, std::int64_t monotonic_ms);
  Member* find(const std::string& worker_id);
  /// @throws Refused NOT_FOUND / WORKER or ABORTED / FENCED for another incarnation.
  Member& require(const std::string& worker_id, const std::string& incarnation);
  void update(Member& member, const std::vector<DeviceStatus>& devices);
  const std::map<std::string, Member>& members() const { return members_; }

 private:
  std::map<std::string, Member> members_;
};

/// True if a job with this preference and number of GPUs may run on such a device.
bool backend_fits(Preference wanted, std::int32_t gpus, Backend backend);

/// Room on a device for one more attempt, according to both server and worker.
struct UsableSlot {
  std::string device_id;
  Backend backend = Backend::kCpu;
  std::int64_t free_bytes = 0;
};

/// The slots that the worker offers, without devices that are not ready and without slots that open
/// attempts occupy (I6). CUDA devices come first, and smaller memory first, so that the best fit
/// comes first.
std::vector<UsableSlot> usable_slots(const Fleet::Member& member,
                                     const std::vector<FreeSlot>& offered,
                                     const std::vector<AttemptRow>& open_attempts);

/// True if the worker runs jobs of this kind.
bool runs_kind(const Fleet::Member& member, const std::string& kind);

/// The slots that a job would get of a worker that runs its kind, by index; empty if it does not
/// fit.
std::vector<std::size_t> slots_for(const JobRow& job, const Fleet& fleet,
                                   const Fleet::Member& member,
                                   const std::vector<UsableSlot>& slots);

}  // namespace quasi::server
