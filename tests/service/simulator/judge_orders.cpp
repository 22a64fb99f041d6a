// Judges orders of operators, and the memory of GPUs that several attempts share.

#include <algorithm>

#include "tests/service/simulator/judge.hpp"

namespace quasi::sim {

using server::Rows;

void Judge::note_order(const server::ServiceOrder& order, bool end) {
  const std::pair place(order.worker_id, order.device_id);
  if (end)
    orders_.erase(place);
  else
    orders_[place] = {order.evicts, order.reason};
  orders_changed_ms_[order.worker_id] = timeline_.now();
  ++counts_[end ? "orders ended" : "orders"];
}

std::int64_t Judge::expected_time_ms(const server::JobRow& job) {
  std::vector<double> ratios;
  Rows rows(sql("SELECT ratio FROM estimate_ratios WHERE quantity=2 AND kind=? AND pool=? "
                "ORDER BY ratio")
                .bind(job.kind, job.pool));
  while (rows.next()) ratios.push_back(rows->real(0));
  if (ratios.size() < 5) return job.max_runtime_ms;
  std::size_t below = 0;  // the first ratio that at least 95 % of them do not exceed
  while (100 * (below + 1) < 95 * ratios.size()) ++below;
  const double correction = std::clamp(ratios[below], 0.01, 1.0);
  return static_cast<std::int64_t>(correction * static_cast<double>(job.max_runtime_ms));
}

bool Judge::is_closed(const std::string& worker, const std::string& device) const {
  return orders_.contains({worker, device});
}

bool Judge::is_evicting(const std::string& worker) const {
  const auto changed = orders_changed_ms_.find(worker);
  if (changed != orders_changed_ms_.end() && changed->second == timeline_.now()) return true;
  for (const auto& [place, order] : orders_)
    if (place.first == worker && order.first) return true;
  return false;
}

void Judge::check_orders() {
  Orders stored;
  Rows rows(sql("SELECT worker_id, device_id, evicts, reason FROM service_orders"));
  while (rows.next())
    stored[{rows->text(0), rows->text(1)}] = {rows->integer(2) != 0, rows->text(3)};
  // The group whose commit was cut off took effect as a whole or not at all.
  if (stored != committed_orders_ && stored != orders_)
    report_violation("I1", "a restart of the server changed the orders of the operator");
  if (stored != orders_)
    for (const auto& [worker, machine] : machines_) orders_changed_ms_[worker] = timeline_.now();
  orders_ = committed_orders_ = stored;
}

void Judge::check_memory(std::int64_t fence) {
  const Open& granted = open_.at(fence);
  if (granted.reserved == 0) return;
  for (const std::string& id : granted.devices) {
    std::int64_t reserved = 0, n_attempts = 0;
    for (const auto& [other, open] : open_) {
      if (open.worker != granted.worker ||
          std::count(open.devices.begin(), open.devices.end(), id) == 0)
        continue;
      reserved += open.reserved;
      ++n_attempts;
    }
    // An attempt that has a GPU for itself may reserve more than the GPU has.
    if (n_attempts > 1) ++counts_["shared GPUs"];
    if (n_attempts > 1 && reserved > machines_[granted.worker].devices[id].memory)
      report_violation("memory", "the attempts on " + granted.worker + "/" + id + " reserve " +
                                     std::to_string(reserved >> 20) + " MiB");
  }
}

}  // namespace quasi::sim
