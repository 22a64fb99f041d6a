#include "tests/service/simulator/operator_process.hpp"

namespace quasi::sim {
namespace {

constexpr char kHost[] = "operator";
constexpr std::int64_t kOrderLimitMs = 8'000;

struct Done {};

}  // namespace

void OperatorProcess::give_order() {
  const Place& place = places_[around_.dice.draw(places_.size())];
  order(place, around_.dice.one_in(2));
}

void OperatorProcess::end_all_orders() {
  for (const Place& place : places_) order(place, true);
}

void OperatorProcess::order(const Place& place, bool end) {
  server::OrderService command{.order = {.worker_id = place.worker,
                                         .device_id = place.device,
                                         .evicts = place.device.empty() || around_.dice.one_in(2),
                                         .by = "otto",
                                         .reason = "order " + std::to_string(++orders_)},
                               .end = end};
  const std::int64_t within_ms = around_.dice.draw(0, 90'000);
  if (!around_.network.is_calm())
    around_.timeline.record("the operator " + std::string(end ? "puts back " : "orders out ") +
                            place.worker + "/" + place.device);
  around_.network.call<Done>(
      kHost, alive_, kOrderLimitMs,
      [&server = around_.server, &judge = around_.judge, command, within_ms](auto back,
                                                                             const Awaited&) {
        server.write(
            "OrderService",
            [&judge, command, within_ms](WriteContext& write) {
              server::OrderService dated = command;
              dated.order.since_ms = write.now.wall_ms;
              dated.order.until_ms = write.now.wall_ms + within_ms;
              dated.order.worker_id = write.queue.apply(dated, write.now).worker_id;
              judge.note_order(dated.order, dated.end);
            },
            [back](const grpc::Status& status) { back(status, Done()); });
      },
      [](const grpc::Status&, const Done&) {});
}

void OperatorProcess::preempt() {
  const std::vector<std::string> jobs = around_.judge.uids_with_workers();
  if (jobs.empty()) return;
  const std::string uid = jobs[around_.dice.draw(jobs.size())];
  around_.timeline.record("the operator preempts a job");
  around_.network.call<Done>(
      kHost, alive_, kOrderLimitMs,
      [&server = around_.server, uid](auto back, const Awaited&) {
        server.write(
            "PreemptJobs",
            [uid](WriteContext& write) {
              write.queue.apply(
                  server::PreemptJobs{.uids = {uid}, .by = "otto", .reason = "a deadline"},
                  write.now);
            },
            [back](const grpc::Status& status) { back(status, Done()); });
      },
      [](const grpc::Status&, const Done&) {});
}

}  // namespace quasi::sim
