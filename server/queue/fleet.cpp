#include "server/queue/fleet.hpp"

#include <algorithm>
#include <set>

#include "server/queue/refused.hpp"

namespace quasi::server {

void Fleet::put(const RegisterWorker& command, std::int64_t monotonic_ms) {
  Member member;
  member.worker = command.worker;
  member.last_seen_ms = monotonic_ms;
  for (const DeviceStatus& status : command.devices) member.devices[status.device.id] = status;
  close_by_orders(member);
  members_[command.worker.id] = std::move(member);
}

std::string sentence_of(const ServiceOrder& order) {
  return std::string(order.device_id.empty() ? "drained" : "cordoned") + " by " + order.by +
         (order.reason.empty() ? "" : ": " + order.reason);
}

void Fleet::close_by_orders(Member& member) const {
  member.closed.clear();
  for (auto& [id, status] : member.devices) status.closed.clear();
  for (const ServiceOrder& order : orders_of(member.worker.id)) {
    const auto device = member.devices.find(order.device_id);
    if (order.device_id.empty())
      member.closed = sentence_of(order);
    else if (device != member.devices.end())
      device->second.closed = sentence_of(order);
  }
}

void Fleet::set_orders(std::vector<ServiceOrder> orders) {
  orders_ = std::move(orders);
  for (auto& [id, member] : members_) close_by_orders(member);
}

std::vector<ServiceOrder> Fleet::orders_of(const std::string& worker_id) const {
  std::vector<ServiceOrder> found;
  for (const ServiceOrder& order : orders_)
    if (order.worker_id == worker_id) found.push_back(order);
  return found;
}

Fleet::Member* Fleet::find(const std::string& worker_id) {
  const auto found = members_.find(worker_id);
  return found == members_.end() ? nullptr : &found->second;
}

Fleet::Member& Fleet::require(const std::string& worker_id, const std::string& incarnation) {
  Member* member = find(worker_id);
  if (member == nullptr)
    throw Refused(Refusal::kNotFound, "WORKER",
                  "worker " + worker_id + " is not known to this server process; register again");
  if (member->worker.incarnation != incarnation)
    throw Refused(Refusal::kAborted, "FENCED",
                  "another process has registered as worker " + worker_id +
                      "; this incarnation has no rights any more");
  return *member;
}

void Fleet::update(Member& member, const std::vector<DeviceStatus>& devices) {
  for (const DeviceStatus& status : devices) {
    const auto found = member.devices.find(status.device.id);
    if (found == member.devices.end()) continue;
    DeviceStatus& known = found->second;
    if (status.free_bytes > 0) known.free_bytes = status.free_bytes;
    if (status.state != DeviceState::kUnsaid) {
      known.state = status.state;
      known.state_reason = status.state_reason;
    }
    known.utilization = status.utilization;
    known.temperature_c = status.temperature_c;
    known.power_watts = status.power_watts;
  }
}

bool is_mig_instance(const std::string& device_id) { return device_id.starts_with("MIG-"); }

bool is_usable(const DeviceStatus& status) {
  return status.state == DeviceState::kReady && status.closed.empty();
}

void Fleet::set_ratios(const std::vector<EstimateRatios>& measured) {
  corrections_.clear();
  for (const EstimateRatios& each : measured) corrections_.set(each);
}

namespace {

bool uses(const AttemptRow& attempt, const std::string& device_id) {
  const auto& ids = attempt.device_ids;
  return std::find(ids.begin(), ids.end(), device_id) != ids.end();
}

/// Memory of the slot's device for one more attempt beside the open ones.
void count_memory(UsableSlot& slot, std::int64_t total_bytes,
                  const std::vector<AttemptRow>& open_attempts) {
  std::int64_t held = 0, growth = 0;
  for (const AttemptRow& attempt : open_attempts) {
    if (!uses(attempt, slot.device_id)) continue;
    slot.is_alone = false;
    held += std::max(attempt.reserved_bytes, attempt.usage.peak_gpu_bytes);
    growth += std::max<std::int64_t>(0, attempt.reserved_bytes - attempt.usage.peak_gpu_bytes);
  }
  if (slot.backend != Backend::kCuda) return;
  slot.free_bytes =
      std::max<std::int64_t>(0, std::min(total_bytes - held, slot.free_bytes - growth));
}

}  // namespace

void reserve(std::vector<UsableSlot>& slots, const AttemptRow& attempt) {
  for (UsableSlot& slot : slots) {
    if (!uses(attempt, slot.device_id)) continue;
    slot.is_alone = false;
    if (slot.backend == Backend::kCuda)
      slot.free_bytes = std::max<std::int64_t>(0, slot.free_bytes - attempt.reserved_bytes);
  }
}

std::vector<UsableSlot> usable_slots(const Fleet::Member& member,
                                     const std::vector<FreeSlot>& offered,
                                     const std::vector<AttemptRow>& open_attempts) {
  std::map<std::string, std::int32_t> room;
  for (const auto& [id, status] : member.devices) room[id] = status.device.slots;
  for (const AttemptRow& attempt : open_attempts)
    for (const std::string& id : attempt.device_ids) --room[id];
  std::vector<UsableSlot> slots;
  for (const FreeSlot& offer : offered) {
    const auto found = member.devices.find(offer.device_id);
    if (found == member.devices.end() || !is_usable(found->second)) continue;
    if (room[offer.device_id]-- <= 0) continue;
    const DeviceStatus& status = found->second;
    slots.push_back(
        {.device_id = offer.device_id,
         .backend = status.device.backend,
         .free_bytes = offer.free_bytes > 0 ? offer.free_bytes : status.device.memory_bytes});
    count_memory(slots.back(), status.device.memory_bytes, open_attempts);
  }
  std::stable_sort(slots.begin(), slots.end(), [](const UsableSlot& a, const UsableSlot& b) {
    if (a.backend != b.backend) return a.backend == Backend::kCuda;
    return a.free_bytes < b.free_bytes;
  });
  return slots;
}

bool backend_fits(Preference wanted, std::int32_t gpus, Backend backend) {
  if (gpus > 0) return backend == Backend::kCuda;
  if (wanted == Preference::kCpu) return backend == Backend::kCpu;
  if (wanted == Preference::kCuda) return backend == Backend::kCuda;
  return true;
}

namespace {

/// True if the slot has the memory that the job needs. A job whose stated memory fits a device that
/// it has for itself is not kept from it by a correction.
bool memory_fits(const JobRow& job, const Fleet& fleet, const UsableSlot& slot) {
  std::int64_t needed = fleet.needed_bytes(job);
  if (slot.is_alone) needed = std::min(needed, job.memory_bytes);
  return needed <= slot.free_bytes || needed == 0;
}

/// A job avoids the device where it had a GPU_FAULT as long as one online worker has enough other
/// ready devices that fit.
bool must_avoid(const JobRow& job, const Fleet& fleet, const std::string& device) {
  if (job.avoid_device.empty() || job.avoid_device != device) return false;
  for (const auto& [worker_id, member] : fleet.members()) {
    if (!member.takes_jobs() || member.worker.pool != job.pool) continue;
    std::int32_t others = 0;
    for (const auto& [id, status] : member.devices) {
      if (worker_id + "/" + id == device || !is_usable(status)) continue;
      if (backend_fits(job.device, job.gpus, status.device.backend) &&
          job.memory_bytes <= status.device.memory_bytes)
        ++others;
    }
    if (others >= std::max(job.gpus, 1)) return true;
  }
  return false;
}

}  // namespace

bool runs_kind(const Fleet::Member& member, const std::string& kind) {
  const auto& kinds = member.worker.kinds;
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

std::vector<std::size_t> slots_for(const JobRow& job, const Fleet& fleet,
                                   const Fleet::Member& member,
                                   const std::vector<UsableSlot>& slots) {
  const auto wanted = static_cast<std::size_t>(std::max(job.gpus, 1));
  std::vector<std::size_t> chosen;
  std::set<std::string> devices;
  for (std::size_t i = 0; i < slots.size() && chosen.size() < wanted; ++i) {
    const UsableSlot& slot = slots[i];
    if (!backend_fits(job.device, job.gpus, slot.backend)) continue;
    if (wanted > 1 && is_mig_instance(slot.device_id)) continue;
    if (!memory_fits(job, fleet, slot) || devices.count(slot.device_id) > 0) continue;
    if (must_avoid(job, fleet, member.worker.id + "/" + slot.device_id)) continue;
    chosen.push_back(i);
    devices.insert(slot.device_id);
  }
  if (chosen.size() < wanted) chosen.clear();
  return chosen;
}

}  // namespace quasi::server
