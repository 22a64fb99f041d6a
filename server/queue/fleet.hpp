#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/queue/commands.hpp"
#include "server/queue/estimates/correction.hpp"

namespace quasi::server {

/// The workers that have registered since this process started, as they last described themselves.
/// They are kept in memory only: after a restart of the server each live worker registers again.
class Fleet {
 public:
  struct Member {
    WorkerRow worker;
    std::map<std::string, DeviceStatus> devices;
    bool draining = false;
    std::string closed;             ///< why an operator took it out of service; "": in service
    std::int64_t last_seen_ms = 0;  ///< monotonic
    std::optional<std::int64_t> ends_ms;  ///< when it has to end, monotonic; absent: unlimited

    bool takes_jobs() const { return !draining && closed.empty(); }
  };

  void put(const RegisterWorker& command, std::int64_t monotonic_ms);
  Member* find(const std::string& worker_id);
  /// @throws Refused NOT_FOUND / WORKER or ABORTED / FENCED for another incarnation.
  Member& require(const std::string& worker_id, const std::string& incarnation);
  void update(Member& member, const std::vector<DeviceStatus>& devices);
  const std::map<std::string, Member>& members() const { return members_; }

  /// Replaces all orders that keep workers and devices out of service.
  void set_orders(std::vector<ServiceOrder> orders);
  /// The orders about this worker and its devices.
  std::vector<ServiceOrder> orders_of(const std::string& worker_id) const;

  /// Replaces the measured over stated values of all kinds.
  void set_ratios(const std::vector<EstimateRatios>& measured);
  /// Replaces those of one quantity of one kind in one pool.
  void learn(const EstimateRatios& measured) { corrections_.set(measured); }
  const Corrections& corrections() const { return corrections_; }
  /// Memory that the job needs on each GPU: the stated one, corrected by what was measured.
  std::int64_t needed_bytes(const JobRow& job) const {
    if (job.gpus == 0) return job.memory_bytes;
    return corrections_.corrected(Quantity::kGpuMemory, job.memory_bytes, job.kind, job.pool);
  }
  /// Time within which 95 of 100 jobs of its kind in its pool end, from their time limits.
  std::int64_t expected_ms(const JobRow& job) const {
    return corrections_.corrected(Quantity::kTime, job.max_runtime_ms, job.kind, job.pool);
  }

 private:
  Corrections corrections_;
  void close_by_orders(Member& member) const;

  std::vector<ServiceOrder> orders_;
  std::map<std::string, Member> members_;
};

/// Says who gave an order and why, e.g. "drained by otto: new fan".
std::string sentence_of(const ServiceOrder& order);

/// True if a job with this preference and number of GPUs may run on such a device.
bool backend_fits(Preference wanted, std::int32_t gpus, Backend backend);

/// True if attempts may begin on the device, as far as worker and operator say.
bool is_usable(const DeviceStatus& status);

/// True for an instance of a partitioned GPU. A process can use one such instance at most, so a job
/// of several GPUs gets none.
bool is_mig_instance(const std::string& device_id);

/// Room on a device for one more attempt, according to both server and worker.
struct UsableSlot {
  std::string device_id;
  Backend backend = Backend::kCpu;
  std::int64_t free_bytes = 0;
  bool is_alone = true;  ///< no attempt has a slot of the device
};

/// Takes the memory of an attempt from the other slots of its devices.
void reserve(std::vector<UsableSlot>& slots, const AttemptRow& attempt);

/// The slots that the worker offers, without devices that are not ready and without slots that open
/// attempts occupy (I6). CUDA devices come first, and smaller memory first, so that the best fit
/// comes first.
///
/// The free memory of a GPU with attempts is the smaller of two values: its total less what each
/// attempt got or was measured to hold, and the measured free memory less what the attempts may
/// still take.
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
