#include "workers/daemon/supervisor.hpp"

#include <google/protobuf/util/time_util.h>

#include <algorithm>

#include "proto/wire/limits.hpp"
#include "proto/wire/status.hpp"
#include "workers/daemon/attempt/one_line.hpp"
#include "workers/daemon/error.hpp"

namespace quasi {
namespace {

using google::protobuf::util::TimeUtil;

}  // namespace

void Supervisor::adopt_duration(const google::protobuf::Duration& duration, Milliseconds* value) {
  const Milliseconds milliseconds(TimeUtil::DurationToMilliseconds(duration));
  if (milliseconds.count() > 0) *value = milliseconds;
}

Supervisor::Supervisor(SupervisorSettings settings, const EngineSettings& engine,
                       const WorkerPorts& ports, DeviceBoard& devices)
    : settings_(std::move(settings)), engine_(engine), ports_(ports), devices_(devices) {}

void Supervisor::start() {
  recover();
  next_device_look_ = now() + settings_.device_interval;
  idle_since_ = now();
  test_devices();
  register_now();
}

AttemptRunner::Hooks Supervisor::hooks(const std::vector<WorkerDevice>& devices,
                                       std::uint64_t fence) {
  return {.in_contact = [this] { return in_contact(); },
          .contacted = [this] { contact(now()); },
          .device_stuck =
              [this, devices, fence](const std::string& reason) {
                ports_.log.error("device_stuck", {{"fence", fence}, {"why", reason}});
                devices_.stuck(devices, reason);
              },
          .child_ended =
              [this, devices](const Ending& ending) {
                devices_.unstuck(devices);
                devices_.record(devices, ending);
              },
          .has_stray =
              [this, fence] {
                return std::any_of(strays_.begin(), strays_.end(),
                                   [&](const Stray& stray) { return stray.fence == fence; });
              }};
}

void Supervisor::adopt(std::shared_ptr<AttemptRunner> runner) {
  runners_[runner->fence()] = std::move(runner);
}

void Supervisor::acquire() {
  if (!registered_ || poll_.in_flight || acquire_again_.at) return;
  v1::AcquireLeasesRequest request;
  devices_.hold(settings_.scratch_shortage());
  if (!draining_)
    for (auto& slot : devices_.free_slots()) *request.add_slots() = std::move(slot);
  const bool last = asks_last();
  if (last) {
    // This poll only learns the grants of an unanswered poll. Every grant is given back.
    for (const auto& device : devices_.describe())
      if (request.slots_size() == 0) request.add_slots()->set_device_id(device.id());
  } else if (request.slots_size() == 0) {
    return;
  }
  if (poll_.id.empty()) poll_.id = settings_.make_uuid();
  poll_.in_flight = true;
  poll_.broken_off = false;
  poll_.n_slots = static_cast<std::size_t>(request.slots_size());
  if (settings_.drain_at) {
    const auto left = std::chrono::duration_cast<Milliseconds>(*settings_.drain_at - now());
    *request.mutable_time_left() =
        TimeUtil::MillisecondsToDuration(std::max<std::int64_t>(0, left.count()));
  }
  request.set_worker_id(settings_.worker_id);
  request.set_incarnation(settings_.incarnation);
  request.set_acquire_id(poll_.id);
  *request.mutable_wait() =
      TimeUtil::MillisecondsToDuration(last ? 0 : settings_.acquire_wait.count());
  ports_.server.acquire(
      request, [this](const grpc::Status& status, const v1::AcquireLeasesResponse& response) {
        acquired(status, response);
      });
}

void Supervisor::acquired(const grpc::Status& status, const v1::AcquireLeasesResponse& response) {
  poll_.in_flight = false;
  if (status.ok()) {
    poll_ = {};
    acquire_again_ = {};
    for (const auto& grant : response.grants()) take(grant);
    collect();
    return acquire();
  }
  if (wire::reason_of(status) == wire::reason::kFenced) return superseded(status.error_message());
  // The id is repeated, so the server repeats the grants of an answer that was lost.
  if (wire::reason_of(status) == wire::reason::kWorker) {
    registered_ = false;
    return register_now();
  }
  if (status.error_code() == grpc::StatusCode::CANCELLED && poll_.broken_off) return acquire();
  again_later(acquire_again_);
}

void Supervisor::take(const v1::Grant& grant) {
  const std::uint64_t fence = grant.attempt().fence();
  if (runners_.contains(fence)) return;  // a repeated call returned the grant again
  std::vector<std::string> ids(grant.device_ids().begin(), grant.device_ids().end());
  auto devices = devices_.take(ids);
  ports_.log.info("granted", {{"job", grant.job_id()}, {"fence", fence}});
  if (devices.empty())
    return decline(grant, {},
                   Ending::released(v1::RELEASE_REASON_UNWANTED,
                                    "no slot is free on the device of the grant"));
  if (draining_)
    return decline(grant, devices,
                   Ending::released(v1::RELEASE_REASON_UNWANTED, "the worker is shutting down"));
  // The server reserves less than the job states if measured jobs took less.
  auto bytes = static_cast<std::int64_t>(grant.spec().resources().gpu_mem_bytes());
  if (const auto reserved = static_cast<std::int64_t>(grant.reserved_gpu_bytes()); reserved > 0)
    bytes = std::min(bytes, reserved);
  if (const auto why = devices_.shortage(devices, bytes); !why.empty())
    return decline(grant, devices, Ending::released(v1::RELEASE_REASON_BUSY_FOREIGN, why));
  auto runner =
      std::make_shared<AttemptRunner>(ports_, engine_, grant, devices, hooks(devices, fence));
  adopt(runner);
  try {
    runner->begin();
  } catch (const StorageFailure& failure) {
    runners_.erase(fence);
    devices_.give_back(devices);
    release_unrecorded(grant, failure.what());
  }
}

void Supervisor::decline(const v1::Grant& grant, std::vector<WorkerDevice> devices, Ending ending) {
  const std::uint64_t fence = grant.attempt().fence();
  ports_.log.info("declined", {{"fence", fence}, {"why", ending.message}});
  auto runner =
      std::make_shared<AttemptRunner>(ports_, engine_, grant, std::move(devices), hooks({}, fence));
  adopt(runner);
  try {
    runner->decline(std::move(ending));
  } catch (const StorageFailure& failure) {
    devices_.give_back(runner->devices());
    runners_.erase(fence);
    release_unrecorded(grant, failure.what());
  }
}

void Supervisor::release_unrecorded(const v1::Grant& grant, const std::string& why) {
  ports_.log.error("attempt_not_recorded", {{"fence", grant.attempt().fence()}, {"why", why}});
  v1::ReleaseLeaseRequest request;
  *request.mutable_attempt() = grant.attempt();
  // The server waits before it grants the device again, as for a device that another program uses.
  request.set_reason(v1::RELEASE_REASON_BUSY_FOREIGN);
  request.set_message(one_line(why, limits::kReasonBytes));
  ports_.server.release(request, [](const grpc::Status&, const v1::ReleaseLeaseResponse&) {});
}

void Supervisor::heartbeat() {
  if (!registered_ || heartbeat_in_flight_) return;
  const auto spread =
      std::chrono::duration_cast<Milliseconds>(heartbeat_interval_ * 0.1 * settings_.jitter());
  next_heartbeat_ = now() + heartbeat_interval_ + spread;
  v1::HeartbeatRequest request;
  request.set_worker_id(settings_.worker_id);
  request.set_incarnation(settings_.incarnation);
  request.set_draining(draining_);
  for (const auto& [fence, runner] : runners_) {
    auto* attempt = request.add_attempts();
    attempt->set_attempt_id(runner->grant().attempt().attempt_id());
    attempt->set_fence(fence);
    attempt->set_gpu_bytes(static_cast<std::uint64_t>(runner->peak_gpu_bytes()));
    if (auto progress = runner->take_progress())
      *attempt->mutable_progress() = std::move(*progress);
  }
  for (auto& device : devices_.describe()) *request.add_devices() = std::move(device);
  heartbeat_in_flight_ = true;
  ports_.server.heartbeat(
      request, heartbeat_limit(),
      [this, sent = now()](const grpc::Status& status, const v1::HeartbeatResponse& response) {
        heard(sent, status, response);
      });
}

Milliseconds Supervisor::heartbeat_limit() const {
  return std::clamp(lease_ttl_ / 2, settings_.heartbeat_limit_least,
                    settings_.heartbeat_limit_most);
}

void Supervisor::heard(MonotonicTime sent, const grpc::Status& status,
                       const v1::HeartbeatResponse& response) {
  heartbeat_in_flight_ = false;
  if (!status.ok()) {
    ports_.log.warning("heartbeat_failed", {{"code", wire::code_name(status.error_code())},
                                            {"why", status.error_message()}});
    if (wire::reason_of(status) == wire::reason::kFenced) return superseded(status.error_message());
    // A server that was down may have forgotten this worker's devices.
    const bool unknown = wire::reason_of(status) == wire::reason::kWorker;
    if (unknown || status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      registered_ = false;
      if (unknown)
        register_now();
      else
        again_later(register_again_);
    }
    return;
  }
  contact(sent);
  grace_over_ = false;
  adopt_duration(response.lease_ttl(), &lease_ttl_);
  for (const auto& directive : response.attempts()) {
    const auto found = runners_.find(directive.fence());
    if (found != runners_.end()) found->second->obey(directive.directive());
  }
  collect();
}

void Supervisor::superseded(const std::string& why) {
  ports_.log.error("superseded", {{"why", why}});
  draining_ = true;
  poll_ = {};
  const auto runners = runners_;
  for (const auto& [fence, runner] : runners) runner->obey(v1::DIRECTIVE_FENCED);
  collect();
}

bool Supervisor::in_contact() const { return now() < last_contact_ + lease_ttl_; }

void Supervisor::watch_contact() {
  if (in_contact() || runners_.empty()) return;
  const auto silence = now() - last_contact_;
  if (silence >= orphan_limit_) {
    for (const auto& [fence, runner] : runners_) runner->orphaned();
  } else if (silence >= orphan_grace_ && !grace_over_) {
    grace_over_ = true;
    ports_.log.warning("without_contact", {{"limit_ms", orphan_limit_.count()}});
    for (const auto& [fence, runner] : runners_) runner->checkpoint_now();
  }
}

void Supervisor::collect() {
  bool freed = false;
  for (auto entry = runners_.begin(); entry != runners_.end();) {
    if (!entry->second->over()) {
      ++entry;
      continue;
    }
    devices_.give_back(entry->second->devices());
    freed = freed || !entry->second->devices().empty();
    if (entry->second->kept()) kept_.emplace_back(now() + settings_.keep_fenced, entry->first);
    entry = runners_.erase(entry);
  }
  if (!freed) return;
  // A poll under way names only the slots that were free when it began.
  if (poll_.in_flight && !draining_)
    break_off_poll();
  else
    acquire();
}

void Supervisor::tick() {
  if (asks_last() && now() >= stop_asking_) poll_ = {};  // remaining leases expire on the server
  if (due(register_again_.at)) register_now();
  if (due(acquire_again_.at)) {
    acquire_again_.at.reset();
    acquire();
  }
  if (due(next_heartbeat_)) {
    next_heartbeat_ = now() + heartbeat_interval_;
    heartbeat();
  }
  if (due(next_device_look_)) {
    next_device_look_ = now() + settings_.device_interval;
    look_at_devices();
  }
  // The loop uses a copy, because attempts may end in tick().
  const auto runners = runners_;
  for (const auto& [fence, runner] : runners) runner->tick();
  watch_contact();
  watch_end();
  while (!kept_.empty() && now() >= kept_.front().first) {
    ports_.store.remove_kept(kept_.front().second);
    kept_.erase(kept_.begin());
  }
  collect();
}

std::optional<MonotonicTime> Supervisor::next_deadline() const {
  std::optional<MonotonicTime> next;
  const auto consider = [&](const std::optional<MonotonicTime>& time) {
    if (time) next = next ? std::min(*next, *time) : *time;
  };
  consider(register_again_.at);
  consider(acquire_again_.at);
  if (registered_) consider(next_heartbeat_);
  consider(next_device_look_);
  if (asks_last()) consider(stop_asking_);
  if (draining_ && now() < drain_over_) consider(drain_over_);
  if (!draining_) consider(settings_.drain_at);
  if (!draining_ && settings_.idle_timeout.count() > 0 && runners_.empty())
    consider(idle_since_ + settings_.idle_timeout);
  for (const auto& [fence, runner] : runners_) consider(runner->next_deadline());
  return next;
}

void Supervisor::drain() {
  if (draining_) return;
  draining_ = true;
  drain_over_ = now() + engine_.times.drain_timeout;
  next_heartbeat_ = now();  // a full device is then not shown as ready
  ports_.log.info("draining", {{"attempts", runners_.size()}});
  // The grants of the last poll may have been lost on the way. The daemon repeats the poll, and the
  // server repeats the grants. The daemon gives them back, so they need not wait for the end of
  // their lease.
  stop_asking_ = now() + std::min(lease_ttl_, settings_.last_ask_limit);
  acquire_again_ = {};
  if (poll_.in_flight)
    break_off_poll();
  else
    acquire();
  const auto runners = runners_;
  for (const auto& [fence, runner] : runners) runner->drain(true);
  collect();
}

void Supervisor::stop_now() {
  drain();
  const auto runners = runners_;
  for (const auto& [fence, runner] : runners) runner->stop_now();
  collect();
}

bool Supervisor::finished() const {
  return draining_ && poll_.id.empty() && (runners_.empty() || leaves_reports_to_next_start());
}

bool Supervisor::leaves_reports_to_next_start() const {
  return now() >= drain_over_ && !in_contact() &&
         std::ranges::none_of(runners_, [](const auto& entry) {
           return entry.second->child_alive() || entry.second->may_still_start();
         });
}

void Supervisor::break_off_poll() {
  poll_.broken_off = true;
  ports_.server.cancel_acquire();
}

void Supervisor::again_later(Pacer& pacer) {
  pacer.delay = std::clamp(pacer.delay * 2, settings_.retry_first, settings_.retry_most);
  const auto spread =
      std::chrono::duration_cast<Milliseconds>(pacer.delay * 0.2 * settings_.jitter());
  pacer.at = now() + pacer.delay + spread;
}

}  // namespace quasi
