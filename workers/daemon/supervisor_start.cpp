// Start of the supervisor: it continues what earlier daemons left behind and registers with the
// server.

#include <algorithm>

#include "proto/wire/status.hpp"
#include "workers/daemon/supervisor.hpp"

namespace quasi {

void Supervisor::recover() {
  for (const std::uint64_t fence : ports_.store.kept())
    kept_.emplace_back(now() + settings_.keep_fenced, fence);
  salvage_ = ports_.store.recover();
  std::vector<AttemptStore::Recovered> earlier = ports_.store.kept_engines();
  earlier.insert(earlier.end(), salvage_.begin(), salvage_.end());
  for (const auto& left : earlier) {
    if (!left.child || ports_.spawner.end_stray(*left.child, settings_.stray_patience)) continue;
    const std::vector<std::string> ids(left.grant.device_ids().begin(),
                                       left.grant.device_ids().end());
    strays_.push_back({.child = *left.child,
                       .fence = left.grant.attempt().fence(),
                       .devices = devices_.take(ids)});
    ports_.log.error("device_stuck",
                     {{"fence", strays_.back().fence}, {"why", strays_.back().why()}});
    devices_.stuck(strays_.back().devices, strays_.back().why());
  }
  if (!salvage_.empty()) ports_.log.info("attempts_found", {{"count", salvage_.size()}});
}

std::string Supervisor::Stray::why() const {
  return "process " + std::to_string(child.pid) + " of an earlier daemon outlived SIGKILL";
}

void Supervisor::end_strays() {
  const auto gone = std::stable_partition(strays_.begin(), strays_.end(), [&](const Stray& stray) {
    return !ports_.spawner.end_stray(stray.child, Milliseconds(0));
  });
  for (auto stray = gone; stray != strays_.end(); ++stray) {
    ports_.log.info("stray_ended", {{"fence", stray->fence}, {"pid", stray->child.pid}});
    devices_.give_back(stray->devices);
    // A device of several slots stays stuck while another of its engines is stuck.
    devices_.unstuck(stray->devices);
  }
  if (gone == strays_.end()) return;
  strays_.erase(gone, strays_.end());
  for (const Stray& stray : strays_) devices_.stuck(stray.devices, stray.why());
}

void Supervisor::register_now() {
  if (registering_) return;
  registering_ = true;
  register_again_.at.reset();
  v1::RegisterRequest request;
  request.set_worker_id(settings_.worker_id);
  request.set_incarnation(settings_.incarnation);
  request.set_name(settings_.name);
  request.set_version(settings_.version);
  request.set_pool(settings_.pool);
  for (auto& device : devices_.describe()) *request.add_devices() = std::move(device);
  for (const auto& kind : settings_.kinds) request.add_kinds(kind);
  // Open attempts are listed too. The answer says which of them still hold their lease.
  std::vector<std::uint64_t> listed;
  for (const auto& left : salvage_) *request.add_salvage() = left.grant.attempt();
  for (const auto& [fence, runner] : runners_) {
    *request.add_salvage() = runner->grant().attempt();
    listed.push_back(fence);
  }
  ports_.server.register_worker(request,
                                [this, sent = now(), listed](const grpc::Status& status,
                                                             const v1::RegisterResponse& response) {
                                  registered(sent, listed, status, response);
                                });
}

void Supervisor::registered(MonotonicTime sent, const std::vector<std::uint64_t>& listed,
                            const grpc::Status& status, const v1::RegisterResponse& response) {
  registering_ = false;
  if (!status.ok()) {
    ports_.log.warning("register_failed", {{"code", wire::code_name(status.error_code())},
                                           {"why", status.error_message()}});
    return again_later(register_again_);
  }
  registered_ = true;
  register_again_ = {};
  contact(sent);
  adopt_duration(response.lease_ttl(), &lease_ttl_);
  heartbeat_interval_ = lease_ttl_ / 3;
  adopt_duration(response.heartbeat_interval(), &heartbeat_interval_);
  adopt_duration(response.orphan_grace(), &orphan_grace_);
  adopt_duration(response.orphan_limit(), &orphan_limit_);
  ports_.log.info("registered", {{"worker", settings_.worker_id},
                                 {"incarnation", settings_.incarnation},
                                 {"lease_ttl_ms", lease_ttl_.count()}});
  const auto first_listed = static_cast<int>(salvage_.size());
  take_up_salvage(response);
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const int answer = first_listed + static_cast<int>(i);
    const auto found = runners_.find(listed[i]);
    if (found != runners_.end() && answer < response.salvage_size())
      found->second->obey(response.salvage(answer).directive());
  }
  collect();
  next_heartbeat_ = now();
  acquire();
}

void Supervisor::take_up_salvage(const v1::RegisterResponse& response) {
  const auto salvage = std::exchange(salvage_, {});
  for (std::size_t i = 0; i < salvage.size(); ++i) {
    const auto& left = salvage[i];
    const std::uint64_t fence = left.grant.attempt().fence();
    const auto directive = static_cast<int>(i) < response.salvage_size()
                               ? response.salvage(static_cast<int>(i)).directive()
                               : v1::DIRECTIVE_FENCED;
    ports_.log.info("salvage", {{"fence", fence}, {"directive", v1::Directive_Name(directive)}});
    auto runner = std::make_shared<AttemptRunner>(ports_, engine_, left.grant,
                                                  std::vector<WorkerDevice>{}, hooks({}, fence));
    adopt(runner);
    runner->recover(left);
    runner->obey(directive);
  }
}

}  // namespace quasi
