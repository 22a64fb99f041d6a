#include "tests/service/simulator/worker_machine.hpp"

#include <cctype>

#include "tests/service/simulator/engines.hpp"
#include "tests/service/simulator/worker_ports.hpp"

namespace quasi::sim {
namespace {

using quasi::test::Crash;
using quasi::test::Loss;

const std::string kState = "/state";

class TimelineClock : public Clock {
 public:
  TimelineClock(const Timeline& timeline, std::int64_t offset_ms)
      : timeline_(timeline), offset_ms_(offset_ms) {}
  MonotonicTime now() const override {
    return MonotonicTime{} + Milliseconds(offset_ms_ + timeline_.now());
  }

 private:
  const Timeline& timeline_;
  std::int64_t offset_ms_;
};

class SilentLog : public WorkerLog {
 public:
  void event(Level, std::string_view, const nlohmann::json&) override {}
};

AttemptTimes short_times() {
  return {.start_timeout = Milliseconds(10'000),
          .cancel_grace = Milliseconds(2'000),
          .terminate_grace = Milliseconds(1'000),
          .kill_grace = Milliseconds(1'000),
          .drain_timeout = Milliseconds(6'000)};
}

}  // namespace

struct WorkerMachine::Daemon {
  explicit Daemon(WorkerMachine& machine)
      : clock(machine.around_.timeline, machine.boot_offset_ms_),
        source(machine),
        board(source, log),
        store((machine.files_.make_directory(kState), machine.files_), kState),
        inputs(machine.files_, kState + "/cache", 1 << 16),
        engines(machine),
        blobs(machine),
        background(machine),
        link(machine, alive) {}

  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  TimelineClock clock;
  SilentLog log;
  Devices source;
  DeviceBoard board;
  AttemptStore store;
  InputCache inputs;
  Engines engines;
  Blobs blobs;
  Later background;
  Link link;
  std::unique_ptr<Supervisor> supervisor;
};

WorkerMachine::WorkerMachine(const Surroundings& around, std::string name,
                             std::vector<SimulatedDevice> devices)
    : around_(around),
      name_(std::move(name)),
      devices_(std::move(devices)),
      boot_offset_ms_(around.dice.draw(1, 1 << 30)) {
  engine_settings_.times = short_times();
}

WorkerMachine::~WorkerMachine() { daemon_.reset(); }

void WorkerMachine::start() {
  if (daemon_) return;
  around_.timeline.record("the daemon of " + name_ + " starts");
  ++life_;
  ++incarnation_;
  std::erase_if(strays_,
                [&](const auto& stray) { return stray.second.until_ms <= around_.timeline.now(); });
  try {
    daemon_ = std::make_unique<Daemon>(*this);
  } catch (const Crash&) {
    return lose(Loss::kNothing);
  }
  SupervisorSettings settings;
  // An id as the worker makes it; hexadecimal digits are digits of its base32 as well.
  settings.worker_id = "w_";
  for (const char digit : wire::sha256_hex(name_).substr(0, 26))
    settings.worker_id += static_cast<char>(std::toupper(static_cast<unsigned char>(digit)));
  settings.incarnation = server::test::uuid_of(around_.dice.engine()());
  settings.name = name_;
  settings.version = "simulated";
  settings.kinds = {"test"};
  settings.stray_patience = Milliseconds(1'000);
  settings.self_test_interval = Milliseconds(45'000);
  settings.retest_interval = Milliseconds(8'000);
  // Some daemons run in an allocation that ends, and some leave when they have nothing to do.
  if (!around_.network.is_calm() && around_.dice.one_in(6))
    settings.drain_at = daemon_->clock.now() + Milliseconds(around_.dice.draw(10'000, 120'000));
  if (!around_.network.is_calm() && around_.dice.one_in(8))
    settings.idle_timeout = Milliseconds(20'000);
  settings.make_uuid = [this] { return server::test::uuid_of(around_.dice.engine()()); };
  settings.jitter = [this] { return static_cast<double>(around_.dice.draw(2'001)) / 1'000 - 1; };
  Daemon& daemon = *daemon_;
  daemon.supervisor = std::make_unique<Supervisor>(settings, engine_settings_,
                                                   WorkerPorts{.clock = daemon.clock,
                                                               .files = files_,
                                                               .store = daemon.store,
                                                               .inputs = daemon.inputs,
                                                               .spawner = daemon.engines,
                                                               .server = daemon.link,
                                                               .blobs = daemon.blobs,
                                                               .background = daemon.background,
                                                               .log = daemon.log},
                                                   daemon.board);
  run([&] { daemon.supervisor->start(); });
  if (!around_.network.is_calm()) plan_relapse();
}

void WorkerMachine::plan_relapse() {
  const auto plan = [this](std::int64_t delay_ms, std::function<void()> fault) {
    around_.timeline.plan_event(delay_ms, [this, life = life_, fault = std::move(fault)] {
      if (life == life_ && !around_.network.is_calm()) fault();
    });
  };
  // A second daemon dies while an engine of the first one is still stuck in the kernel.
  if (!strays_.empty()) plan(around_.dice.draw(500, 4'000), [this] { kill(); });
  // The connection may break while the daemon still reports the attempts of the last one, for a
  // little longer than their lease.
  breaks_at_poll_ = around_.dice.one_in(2);
}

void WorkerMachine::run(const std::function<void()>& part) {
  if (!daemon_) return;
  try {
    part();
    daemon_->supervisor->tick();
  } catch (const Crash&) {
    const bool power = around_.dice.one_in(2);
    around_.timeline.record("the daemon of " + name_ + " dies in its work" +
                            (power ? " with its machine" : ""));
    return power ? lose(around_.dice.one_in(2) ? Loss::kSome : Loss::kEverything)
                 : lose(Loss::kNothing);
  }
  if (daemon_->supervisor->finished()) {
    around_.timeline.record("the daemon of " + name_ + " has ended");
    return lose(Loss::kNothing);
  }
  wake_in_time();
}

void WorkerMachine::wake_in_time() {
  const auto deadline = daemon_->supervisor->next_deadline();
  if (!deadline) return;
  const auto now = daemon_->clock.now();
  const std::int64_t delay_ms =
      std::max<std::int64_t>(std::chrono::duration_cast<Milliseconds>(*deadline - now).count(), 1);
  const std::int64_t at_ms = around_.timeline.now() + delay_ms;
  if (wake_at_ms_ && *wake_at_ms_ > around_.timeline.now() && *wake_at_ms_ <= at_ms) return;
  wake_at_ms_ = at_ms;
  around_.timeline.plan_timeout(delay_ms, [this, life = life_, at_ms] {
    if (life != life_ || wake_at_ms_ != at_ms) return;
    wake_at_ms_.reset();
    run([] {});
  });
}

void WorkerMachine::later(std::int64_t delay_ms, std::function<void()> part) {
  around_.timeline.plan_event(delay_ms, [this, life = life_, part = std::move(part)] {
    if (life == life_) run(part);
  });
}

void WorkerMachine::lose(quasi::test::Loss loss, std::int64_t further_pause_ms) {
  ++life_;
  points_.never();
  wake_at_ms_.reset();
  if (loss == Loss::kNothing && !around_.network.is_calm()) {
    leave_strays();
  } else if (loss != Loss::kNothing) {
    strays_.clear();
    boot_offset_ms_ = around_.dice.draw(1, 1 << 30);
  }
  daemon_.reset();
  files_.lose(loss, around_.dice.engine());
  around_.timeline.plan_event(further_pause_ms + around_.dice.draw(200, 4'000),
                              [this, life = life_] {
                                if (life == life_) start();
                              });
}

void WorkerMachine::note_poll() {
  if (!std::exchange(breaks_at_poll_, false) || around_.network.is_calm()) return;
  if (daemon_->supervisor->attempts() == 0) return;
  around_.timeline.plan_event(around_.dice.draw(18, 40), [this] {
    if (around_.network.is_calm()) return;
    around_.network.cut(name_,
                        around_.judge.rules().lease_ttl_ms + around_.dice.draw(1'500, 5'000));
  });
}

void WorkerMachine::leave_strays() {
  // An engine may be stuck in the kernel, so that it outlives its daemon.
  for (const Engine* engine : engines_)
    if (!engine->is_gone() && around_.dice.one_in(2))
      strays_[engine->pid()] = {.devices = engine->devices(),
                                .until_ms = around_.timeline.now() + around_.dice.draw(1, 20'000)};
}

void WorkerMachine::kill() {
  if (!daemon_) return;
  around_.timeline.record("the daemon of " + name_ + " is killed");
  lose(Loss::kNothing);
}

void WorkerMachine::cut_power() {
  if (!daemon_) return;
  around_.timeline.record("the machine of " + name_ + " loses its power");
  lose(around_.dice.one_in(2) ? Loss::kSome : Loss::kEverything);
}

void WorkerMachine::fade() {
  if (!daemon_) return;
  around_.network.slow_down(name_, 4'000);
  around_.timeline.plan_event(around_.dice.draw(1'000, 4'000), [this, life = life_] {
    if (life != life_ || around_.network.is_calm()) return;
    around_.timeline.record("the machine of " + name_ + " loses its power for long");
    lose(Loss::kSome, around_.dice.draw(16'000, 30'000));
  });
}

void WorkerMachine::drain() {
  if (!daemon_) return;
  around_.timeline.record("the daemon of " + name_ + " drains");
  run([this] { daemon_->supervisor->drain(); });
}

void WorkerMachine::crash_an_engine() {
  for (Engine* engine : engines_)
    if (!engine->is_gone()) return engine->crash();
}

void WorkerMachine::toggle_fault() {
  SimulatedDevice& device = devices_[around_.dice.draw(devices_.size())];
  device.fault = device.fault.empty() ? "Xid 79" : "";
  around_.timeline.record("the device " + name_ + "/" + device.device.uuid +
                          (device.fault.empty() ? " is well again" : " fails"));
}

void WorkerMachine::heal() {
  for (SimulatedDevice& device : devices_) device.fault.clear();
}

void WorkerMachine::mend() {
  if (!daemon_) return;
  for (const v1::Device& device : daemon_->board.describe())
    if (device.state() == v1::DEVICE_STATE_QUARANTINED &&
        device.backend() != v1::DEVICE_BACKEND_CUDA)
      return kill();
}

bool WorkerMachine::is_idle() const {
  return daemon_ && daemon_->supervisor->registered() && daemon_->supervisor->attempts() == 0;
}

}  // namespace quasi::sim
