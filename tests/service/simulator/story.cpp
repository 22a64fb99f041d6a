#include "tests/service/simulator/story.hpp"

#include "client/failure.hpp"

namespace quasi::sim {
namespace {

const std::string kJournals = "/journals";
/// Number of events that a story may take to finish all jobs after its last fault.
constexpr std::int64_t kCalmEvents = 30'000;
/// Time on the clock of the story within which all jobs finish after its last fault.
constexpr std::int64_t kCalmMs = 900'000;

SimulatedDevice device(const std::string& uuid, bool cuda, int slots, int memory_gib,
                       int attempt_gib = 0) {
  return {.device = {.uuid = uuid,
                     .model = "simulated",
                     .memory_bytes = std::int64_t{memory_gib} << 30,
                     .cuda = cuda,
                     .slots = slots},
          .fault = "",
          .attempt_bytes = std::int64_t{attempt_gib} << 30};
}

}  // namespace

Story::Story(std::uint64_t seed, const std::filesystem::path& folder)
    : dice_(seed),
      judge_(timeline_, Rules{}),
      network_(timeline_, dice_),
      journal_disk_(kJournals),
      journals_(journal_disk_, folder, kJournals),
      server_(timeline_, dice_, judge_) {
  const Surroundings around{timeline_, dice_, network_, server_, judge_};
  const auto add = [&](const std::string& name, std::vector<SimulatedDevice> devices) {
    machines_.push_back(std::make_unique<WorkerMachine>(around, name, std::move(devices)));
  };
  add("w_north", {device("GPU-0", true, 1, 80, 12), device("GPU-1", true, 1, 24)});
  add("w_south", {device("GPU-2", true, 2, 40, 10), device("cpu", false, 1, 16)});
  add("w_west", {device("cpu", false, 2, 16), device("GPU-3", true, 1, 80)});
  for (const Person& person : {Person{1, "phonons"}, Person{2, "phonons"}, Person{3, "devices"}})
    people_.push_back(std::make_unique<ClientProcess>(around, person, folder));
  std::vector<OperatorProcess::Place> places;
  for (const auto& machine : machines_) {
    places.push_back({.worker = machine->name(), .device = ""});
    for (const SimulatedDevice& each : machine->devices())
      places.push_back({.worker = machine->name(), .device = each.device.uuid});
  }
  operator_ = std::make_unique<OperatorProcess>(around, std::move(places));
}

Verdict Story::run(std::int64_t n_events) {
  revive_server();
  for (auto& machine : machines_)
    timeline_.plan_event(dice_.draw(1, 500), [&machine = *machine] { machine.start(); });
  plan_act();
  while (timeline_.events() < n_events && judge_.violation().empty()) step();
  if (judge_.violation().empty()) calm_down();
  const std::int64_t calm_since_ms = timeline_.now();
  const std::int64_t last = timeline_.events() + kCalmEvents;
  while (judge_.violation().empty() && !is_done()) {
    if (timeline_.events() < last && timeline_.now() < calm_since_ms + kCalmMs) {
      step();
      continue;
    }
    for (const std::string& job : judge_.unfinished())
      judge_.report_violation("I1", "although all faults have stopped, " + job);
    judge_.report_violation("I1", "the work does not end");
  }
  if (judge_.violation().empty()) judge_.judge_end();
  return {.violation = judge_.violation(),
          .last_lines = timeline_.last_lines(),
          .digest = timeline_.digest(),
          .events = timeline_.events(),
          .virtual_ms = timeline_.now(),
          .calm_ms = timeline_.now() - calm_since_ms,
          .jobs = judge_.jobs(),
          .server_starts = server_.restarts(),
          .counts = judge_.counts()};
}

void Story::step() {
  timeline_.step();
  if (!server_.is_up()) revive_server();
}

void Story::revive_server() {
  if (std::exchange(server_is_awaited_, true)) return;
  timeline_.plan_event(dice_.draw(100, 5'000), [this] {
    server_is_awaited_ = false;
    if (!server_.is_up()) server_.start();
  });
}

void Story::plan_act() {
  timeline_.plan_event(dice_.draw(50, 1'000), [this] {
    if (is_calm_) return;
    act();
    plan_act();
  });
}

void Story::act() {
  const std::uint64_t kind = dice_.draw(100);
  if (kind < 62) return act_of_people();
  if (kind < 68) return act_of_operator();
  if (kind < 88) return fault_of_workers();
  fault_of_server();
}

void Story::command(const std::function<void()>& action) {
  try {
    action();
  } catch (const client::Failure&) {
    if (!journal_disk_.is_cut())
      judge_.report_violation("I1", "the journal failed without a fault");
  }
  if (journal_disk_.is_cut()) restart_people();
}

void Story::restart_people() {
  using Loss = server::test::PowerCutDisk::Loss;
  static constexpr Loss kLosses[] = {Loss::kNothing, Loss::kEverything, Loss::kRandomPart};
  timeline_.record("the machine of the people loses its power");
  for (auto& person : people_) person->kill();
  journal_disk_.restart(kLosses[dice_.draw(3)], dice_.engine()());
  journals_.restore();
}

void Story::act_of_people() {
  ClientProcess& person = *people_[dice_.draw(people_.size())];
  const std::uint64_t kind = dice_.draw(66);
  command([&] {
    if (kind < 20) return person.submit();
    if (kind < 31) return person.cancel();
    if (kind < 34) return person.cancel_set();
    if (kind < 41) return person.change_turn();
    if (kind < 46) return person.pause_retry();
    if (kind < 52) return person.fetch();
    if (kind < 58) return person.resume();
    if (kind < 61) return person.reach_for_job_of(*people_[dice_.draw(people_.size())]);
    if (kind < 64) return person.kill();
    // Two lines of a submission's writes and syncs are cut off.
    journal_disk_.cut_at(dice_.draw(1, 12));
  });
}

void Story::act_of_operator() {
  if (dice_.one_in(3)) return operator_->preempt();
  operator_->give_order();
}

void Story::fault_of_workers() {
  WorkerMachine& machine = *machines_[dice_.draw(machines_.size())];
  switch (dice_.draw(11)) {
    case 0:
      return machine.kill();
    case 1:
      return dice_.one_in(3) ? machine.fade() : machine.cut_power();
    case 2:
    case 3:
      return machine.die_at(dice_.draw(1, 40));
    case 4:
      return machine.drain();
    case 5:
      return machine.crash_an_engine();
    case 6:
      return machine.toggle_fault();
    case 7:
      return network_.slow_down(machine.name(), dice_.draw(500, 12'000));
    default:
      return network_.cut(machine.name(), dice_.draw(500, 25'000));
  }
}

void Story::fault_of_server() {
  static constexpr std::int64_t kHourMs = 3'600'000;
  static constexpr std::int64_t kJumps[] = {kHourMs, -kHourMs, 24 * kHourMs, -24 * kHourMs};
  switch (dice_.draw(16)) {
    case 0:
      return server_.die(PowerCutDisk::Loss::kNothing, "it is killed");
    case 1:
      return server_.die(
          dice_.one_in(2) ? PowerCutDisk::Loss::kEverything : PowerCutDisk::Loss::kRandomPart,
          "its machine loses the power");
    case 2:
    case 3:
      return server_.cut_power_soon(dice_.draw(1, 60));
    case 4:
      return server_.stop();
    case 5:
      return server_.jump(kJumps[dice_.draw(4)]);
    case 6:
      server_.jump(kJumps[dice_.draw(4)]);
      return server_.die(PowerCutDisk::Loss::kNothing, "its clock was set");
    case 7:
      return network_.cut("person " + std::to_string(dice_.draw(1, 3)), dice_.draw(500, 20'000));
    default:
      return server_.keep_house();
  }
}

void Story::calm_down() {
  timeline_.record("all faults stop");
  is_calm_ = true;
  network_.calm_down();
  server_.cut_power_soon(0);
  journal_disk_.cut_at(0);
  for (auto& machine : machines_) {
    machine->die_at(-1);
    machine->heal();
  }
  timeline_.plan_timeout(1'000, [this] { tend(); });
}

void Story::tend() {
  for (auto& person : people_)
    command([&] {
      person->resume();
      person->release_all();
    });
  if (server_.is_up() && judge_.has_orders()) operator_->end_all_orders();
  for (auto& machine : machines_) machine->mend();
  timeline_.plan_timeout(10'000, [this] { tend(); });
}

bool Story::is_done() {
  if (!server_.is_up() || judge_.jobs() == 0 || judge_.has_unfinished()) return false;
  for (const auto& machine : machines_)
    if (!machine->is_idle()) return false;
  for (const auto& person : people_)
    if (person->has_pending()) return false;
  return true;
}

}  // namespace quasi::sim
