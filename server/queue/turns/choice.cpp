#include "server/queue/turns/choice.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace quasi::server {
namespace {

constexpr std::int32_t kHeads = 32;
/// Jobs after the heads of one queue, and of all queues together, that one choice reads.
constexpr std::int32_t kFurtherOfQueue = 1'024;
constexpr std::int32_t kFurther = 4'096;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// Factor of the memory that jobs of a kind need at least: a correction may be above 1, but a job
/// may have a device for itself (memory_fits).
double least_factor(const std::string& kind, const Fleet& fleet, const Fleet::Member& member) {
  return std::min(1.0, fleet.corrections().factor(Quantity::kGpuMemory, kind, member.worker.pool));
}

bool placement_may_fit(const Placement& placement, const Fleet& fleet, const Fleet::Member& member,
                       const std::vector<UsableSlot>& slots) {
  if (!runs_kind(member, placement.kind)) return false;
  const double stated = placement.memory_class == 0
                            ? 0.0
                            : static_cast<double>(std::int64_t{1} << placement.memory_class);
  const auto least =
      static_cast<std::int64_t>(stated * least_factor(placement.kind, fleet, member));
  for (const UsableSlot& slot : slots)
    if (backend_fits(placement.device, placement.gpus, slot.backend) && least <= slot.free_bytes)
      return true;
  return false;
}

bool comes_before(const JobRow& a, const JobRow& b) {
  return a.priority != b.priority ? a.priority > b.priority : a.id < b.id;
}

/// A job of several GPUs that waits for this worker.
struct Reservation {
  JobRow job;
  std::int64_t start_ms = 0;         ///< when it can start at the latest
  std::vector<AttemptRow> attempts;  ///< those that may still run then
};

/// Makes one choice.
class Chooser {
 public:
  Chooser(Store& store, const Fleet& fleet, const Fleet::Member& member,
          const std::vector<UsableSlot>& slots, const TurnRules& rules)
      : store_(store),
        fleet_(fleet),
        member_(member),
        slots_(slots),
        rules_(rules),
        quotas_(store, rules.quotas, rules.now) {
    for (const UsableSlot& slot : slots) most_bytes_ = std::max(most_bytes_, slot.free_bytes);
  }

  std::optional<Choice> choose() {
    const std::string& pool = member_.worker.pool;
    // Mostly the whole queue waits for something else; then no owner is looked at.
    const auto keys = store_.ready_placements(pool);
    if (std::none_of(keys.begin(), keys.end(), [&](const std::string& key) {
          const Placement placement = decode_placement(key);
          return placement_may_fit(placement, fleet_, member_, slots_);
        }))
      return std::nullopt;
    const std::vector<std::string> tenants = tenants_in_turn();
    for (const std::string& tenant : tenants)
      if (auto choice = old_job_of(tenant)) return choice;
    for (const std::string& tenant : tenants)
      for (const std::int64_t owner : owners_in_turn(tenant))
        if (auto choice = choose_of({.pool = pool, .tenant = tenant, .owner_id = owner}))
          return choice;
    return std::nullopt;
  }

 private:
  std::vector<std::string> tenants_in_turn() {
    std::vector<std::pair<double, std::string>> ranked;
    for (const std::string& tenant : store_.ready_tenants(member_.worker.pool))
      ranked.emplace_back(rules_.shares.rank_of(store_, tenant), tenant);
    std::sort(ranked.begin(), ranked.end());
    std::vector<std::string> tenants;
    for (auto& [rank, tenant] : ranked) tenants.push_back(std::move(tenant));
    return tenants;
  }
  std::vector<std::int64_t> owners_in_turn(const std::string& tenant) {
    std::vector<std::pair<double, std::int64_t>> ranked;
    for (const std::int64_t owner : store_.ready_owners(member_.worker.pool, tenant))
      ranked.emplace_back(rules_.shares.rank_of(store_, tenant, owner), owner);
    std::sort(ranked.begin(), ranked.end());
    std::vector<std::int64_t> owners;
    for (const auto& [rank, owner] : ranked) owners.push_back(owner);
    return owners;
  }

  /// Returns the oldest job that fits and has waited for a day, of a member of the tenant for whom
  /// nothing ran in that time.
  std::optional<Choice> old_job_of(const std::string& tenant) {
    const std::string& pool = member_.worker.pool;
    if (!rules_.ageing.is_due(pool, tenant, rules_.now)) return std::nullopt;
    std::vector<JobRow> old;
    for (const std::int64_t owner : store_.ready_owners(pool, tenant)) {
      if (!rules_.shares.has_been_idle(tenant, owner, Ageing::kOldMs, rules_.now)) continue;
      const OwnerQueue queue{.pool = pool, .tenant = tenant, .owner_id = owner};
      for (const std::string& key : store_.ready_placements_of(queue))
        for (JobRow& job : store_.oldest_ready(queue, key))
          if (std::max(job.created_ms, job.not_before_ms) <= rules_.now.wall_ms - Ageing::kOldMs)
            old.push_back(std::move(job));
    }
    if (old.empty()) rules_.ageing.found_none(pool, tenant, rules_.now);
    std::sort(old.begin(), old.end(), [](const JobRow& a, const JobRow& b) { return a.id < b.id; });
    for (const JobRow& job : old) {
      if (!runs_kind(member_, job.kind)) continue;
      auto choice = try_job(job);
      if (!choice) continue;
      choice->is_aged = true;
      return choice;
    }
    return std::nullopt;
  }

  std::optional<Choice> choose_of(const OwnerQueue& queue) {
    if (is_out_of_gpus(queue)) return std::nullopt;
    const auto keys = store_.ready_placements_of(queue);
    auto best = best_of(queue, keys);
    if (reservation_ || !reserve_for(queue, keys, best)) return best;
    return best_of(queue, keys);
  }

  /// True if the slots are GPUs, and the quotas permit the owner no further one.
  bool is_out_of_gpus(const OwnerQueue& queue) {
    if (slots_.empty() || slots_.back().backend != Backend::kCuda) return false;
    JobRow least;
    least.owner_id = queue.owner_id;
    least.tenant = queue.tenant;
    least.max_runtime_ms = 1;
    return !quotas_.why_not(least, 1).empty();
  }

  /// Returns the owner's first job that fits.
  std::optional<Choice> best_of(const OwnerQueue& queue, const std::vector<std::string>& keys) {
    std::optional<Choice> best;
    for (const std::string& key : keys) {
      if (!placement_may_fit(decode_placement(key), fleet_, member_, slots_)) continue;
      auto choice = first_of(queue, key);
      if (choice && (!best || comes_before(choice->job, best->job))) best = std::move(choice);
    }
    return best;
  }

  /// Returns the first job of a queue that fits. Mostly it is the head.
  std::optional<Choice> first_of(const OwnerQueue& queue, const std::string& key) {
    std::size_t n_heads = 0;
    for (const std::int32_t limit : {1, kHeads}) {
      const auto heads = store_.ready_heads(queue, key, limit);
      for (const JobRow& job : heads)
        if (auto choice = try_job(job)) return choice;
      n_heads = heads.size();
    }
    if (n_heads < kHeads || further_left_ <= 0) return std::nullopt;
    further_left_ -= kFurtherOfQueue;
    const std::string kind = decode_placement(key).kind;
    const double factor = least_factor(kind, fleet_, member_);
    const std::int64_t time_left_ms = rules_.time_left_ms.value_or(kNever);
    const HeadFilter filter{
        .most_bytes = static_cast<std::int64_t>(static_cast<double>(most_bytes_) / factor) + 1,
        .most_runtime_ms = most_runtime_ms_,
        .most_stated_ms = longest_stated(kind, time_left_ms),
        .time_left_ms = time_left_ms,
        .most_read = kFurtherOfQueue};
    for (const JobRow& job : store_.ready_heads_within(queue, key, filter))
      if (auto choice = try_job(job)) return choice;
    return std::nullopt;
  }

  /// Returns the longest time limit of a job of this kind that is expected to end in time.
  std::int64_t longest_stated(const std::string& kind, std::int64_t time_left_ms) const {
    const double factor = fleet_.corrections().factor(Quantity::kTime, kind, member_.worker.pool);
    const double stated = static_cast<double>(time_left_ms) / factor + 1.0;
    return stated < static_cast<double>(kNever) ? static_cast<std::int64_t>(stated) : kNever;
  }

  std::optional<Choice> try_job(const JobRow& job) {
    if (job.max_runtime_ms > most_runtime_ms_ || !has_time_for(job, fleet_, rules_.time_left_ms))
      return std::nullopt;
    std::vector<std::size_t> chosen = slots_for(job, fleet_, member_, slots_);
    if (chosen.empty() || delays_reservation(job, chosen)) return std::nullopt;
    const auto gpus = std::count_if(chosen.begin(), chosen.end(), [&](std::size_t index) {
      return slots_[index].backend == Backend::kCuda;
    });
    if (!quotas_.why_not(job, static_cast<std::int32_t>(gpus)).empty()) return std::nullopt;
    return Choice{.job = job, .slots = std::move(chosen)};
  }

  /// Reserves this worker if a job of several GPUs comes before `best` and can start here first.
  bool reserve_for(const OwnerQueue& queue, const std::vector<std::string>& keys,
                   const std::optional<Choice>& best) {
    for (const std::string& key : keys) {
      const Placement placement = decode_placement(key);
      if (placement.gpus <= 1 || !runs_kind(member_, placement.kind)) continue;
      const auto heads = store_.ready_heads(queue, key, 1);
      if (heads.empty() || (best && !comes_before(heads.front(), best->job))) continue;
      const JobRow& job = heads.front();
      if (!quotas_.why_not(job, job.gpus).empty()) continue;
      reservation_ = start_on_this_worker(job);
      if (!reservation_) continue;
      if (!spares_a_slot())
        most_runtime_ms_ = std::min(most_runtime_ms_, reservation_->start_ms - rules_.now.wall_ms);
      return true;
    }
    return false;
  }

  /// True if the reserved job can start in time although another one keeps these slots.
  bool fits_beside(const std::vector<std::size_t>& slots) {
    std::vector<AttemptRow> attempts = reservation_->attempts;
    AttemptRow& other = attempts.emplace_back();
    for (const std::size_t index : slots) other.device_ids.push_back(slots_[index].device_id);
    const auto left = usable_slots(member_, all_slots(member_), attempts);
    return !slots_for(reservation_->job, fleet_, member_, left).empty();
  }

  bool spares_a_slot() {
    for (std::size_t index = 0; index < slots_.size(); ++index)
      if (fits_beside({index})) return true;
    return false;
  }

  /// True if the job may still run in slots that the reserved job then needs.
  bool delays_reservation(const JobRow& job, const std::vector<std::size_t>& slots) {
    if (!reservation_ || job.max_runtime_ms <= reservation_->start_ms - rules_.now.wall_ms)
      return false;
    return !fits_beside(slots);
  }

  /// Reserves this worker for the time at which the job can start on it, by the time limits of
  /// running jobs. Returns nothing if another worker can take the job at that time or earlier.
  std::optional<Reservation> start_on_this_worker(const JobRow& job) {
    auto here = start_on(job, member_);
    if (!here) return std::nullopt;
    for (const auto& [id, other] : fleet_.members()) {
      if (id == member_.worker.id || !other.takes_jobs() || other.worker.pool != job.pool) continue;
      if (!runs_kind(other, job.kind)) continue;
      if (rules_.now.monotonic_ms - other.last_seen_ms > rules_.lease_ttl_ms) continue;
      const auto there = start_on(job, other);
      if (!there || there->start_ms > here->start_ms) continue;
      if (there->start_ms < here->start_ms || id < member_.worker.id) return std::nullopt;
    }
    return here;
  }

  std::optional<Reservation> start_on(const JobRow& job, const Fleet::Member& worker) {
    std::vector<std::pair<std::int64_t, AttemptRow>> open;
    for (AttemptRow& attempt : store_.open_attempts_of(worker.worker.id)) {
      const auto other = store_.job(attempt.job_id);
      if (!other) continue;
      const std::int64_t began = attempt.started_ms > 0 ? attempt.started_ms : attempt.granted_ms;
      open.emplace_back(began + other->max_runtime_ms, std::move(attempt));
    }
    std::sort(open.begin(), open.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    const std::vector<FreeSlot> offered = all_slots(worker);
    std::int64_t start_ms = rules_.now.wall_ms;
    for (std::size_t ended = 0; ended <= open.size(); ++ended) {
      std::vector<AttemptRow> left;
      for (std::size_t i = ended; i < open.size(); ++i) left.push_back(open[i].second);
      if (ended > 0) start_ms = std::max(start_ms, open[ended - 1].first);
      if (!slots_for(job, fleet_, worker, usable_slots(worker, offered, left)).empty())
        return Reservation{.job = job, .start_ms = start_ms, .attempts = std::move(left)};
    }
    return std::nullopt;
  }

  Store& store_;
  const Fleet& fleet_;
  const Fleet::Member& member_;
  const std::vector<UsableSlot>& slots_;
  const TurnRules& rules_;
  RunningQuotas quotas_;
  std::int64_t most_runtime_ms_ = kNever;
  std::int64_t most_bytes_ = 0;
  std::int32_t further_left_ = kFurther;
  std::optional<Reservation> reservation_;
};

}  // namespace

bool has_time_for(const JobRow& job, const Fleet& fleet,
                  const std::optional<std::int64_t>& time_left_ms) {
  if (!time_left_ms || fleet.expected_ms(job) <= *time_left_ms) return true;
  return job.resume && job.checkpoint_ms > 0 && job.checkpoint_ms <= *time_left_ms / 2;
}

std::vector<FreeSlot> all_slots(const Fleet::Member& member) {
  std::vector<FreeSlot> slots;
  for (const auto& [id, status] : member.devices)
    for (std::int32_t i = 0; i < status.device.slots; ++i)
      slots.push_back({.device_id = id, .free_bytes = status.free_bytes});
  return slots;
}

std::optional<Choice> choose_job(Store& store, const Fleet& fleet, const Fleet::Member& member,
                                 const std::vector<UsableSlot>& slots, const TurnRules& rules) {
  return Chooser(store, fleet, member, slots, rules).choose();
}

}  // namespace quasi::server
