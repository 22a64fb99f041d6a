#include "tests/service/support/worker_world.hpp"

#include <algorithm>

#include "proto/wire/digest.hpp"
#include "tests/service/support/worker_world_engines.hpp"
#include "tests/service/support/worker_world_link.hpp"

namespace quasi::test {

namespace {

const std::string kState = "/state";

class FakeDevice : public DeviceSource {
 public:
  FakeDevice(const WorkerWorld& world, int n_slots) : world_(world), n_slots_(n_slots) {}
  std::vector<WorkerDevice> devices() override {
    return {{.uuid = "cpu",
             .model = "fake",
             .memory_bytes = std::int64_t{8} << 30,
             .cuda = world_.device_is_gpu,
             .slots = n_slots_}};
  }
  DeviceHealth health(const WorkerDevice&) override {
    return {.free_bytes = std::int64_t{8} << 30};
  }
  std::string self_test(const WorkerDevice&) override { return world_.device_trouble; }

 private:
  const WorkerWorld& world_;
  int n_slots_;
};

}  // namespace

struct WorkerWorld::Daemon {
  Daemon(WorkerWorld& world, FakeDevice& source)
      : board(source, world.log),
        store((world.files.make_directory(kState), world.files), kState),
        inputs(world.files, kState + "/cache", 1 << 20),
        engines(world),
        blobs(world),
        background(world),
        link(world) {}
  DeviceBoard board;
  AttemptStore store;
  InputCache inputs;
  Engines engines;
  Blobs blobs;
  Later background;
  Link link;
  std::unique_ptr<Supervisor> supervisor;
};

WorkerWorld::WorkerWorld(int n_slots)
    : n_slots_(n_slots), devices_(std::make_unique<FakeDevice>(*this, n_slots)) {}

WorkerWorld::~WorkerWorld() { events_.clear(); }

WorkerWorld::Job& WorkerWorld::submit(const std::string& work, const std::string& input) {
  const std::string id = "j_" + std::to_string(jobs_.size() + 1);
  Job& job = jobs_[id];
  job.id = id;
  job.work = work;
  job.input = input;
  if (!input.empty()) blobs_[wire::sha256_hex(input)] = input;
  return job;
}

void WorkerWorld::cancel(const std::string& id) {
  Job& job = jobs_.at(id);
  if (job.state == JobState::kQueued) job.state = JobState::kCancelled;
  if (job.state == JobState::kLeased || job.state == JobState::kRunning)
    job.state = JobState::kCancelling;
}

void WorkerWorld::start_daemon() {
  ++incarnation_;
  daemon_ = std::make_unique<Daemon>(*this, static_cast<FakeDevice&>(*devices_));
  SupervisorSettings settings;
  settings.worker_id = "w_1";
  settings.incarnation = "incarnation-" + std::to_string(incarnation_);
  settings.scratch_shortage = [this] { return scratch_shortage; };
  if (time_left) settings.drain_at = clock.now() + *time_left;
  settings.idle_timeout = idle_timeout;
  settings.self_test_interval = self_test_interval;
  settings.make_uuid = [this] { return "uuid-" + std::to_string(++uuids_); };
  daemon_->supervisor = std::make_unique<Supervisor>(settings, engine,
                                                     WorkerPorts{.clock = clock,
                                                                 .files = files,
                                                                 .store = daemon_->store,
                                                                 .inputs = daemon_->inputs,
                                                                 .spawner = daemon_->engines,
                                                                 .server = daemon_->link,
                                                                 .blobs = daemon_->blobs,
                                                                 .background = daemon_->background,
                                                                 .log = log},
                                                     daemon_->board);
  supervisor_ = daemon_->supervisor.get();
  supervisor_->start();
}

void WorkerWorld::kill_daemon(Loss loss, std::mt19937_64& random) {
  supervisor_ = nullptr;
  points.never();
  // Open calls, transfers and the next reports of the children are lost.
  events_.clear();
  daemon_.reset();
  files.lose(loss, random);
}

void WorkerWorld::step() {
  expire();
  daemon_->link.answer_poll();
  if (!events_.empty()) {
    const auto event = std::move(events_.front());
    events_.pop_front();
    event();
  } else {
    auto next = supervisor_->next_deadline();
    if (const auto server = next_server_event()) next = next ? std::min(*next, *server) : *server;
    if (next) clock.set(std::max(clock.now() + Milliseconds(1), *next));
  }
  supervisor_->tick();
}

bool WorkerWorld::run_until(const std::function<bool()>& done) {
  for (int i = 0; i < 100'000; ++i) {
    if (done()) return true;
    step();
  }
  return false;
}

bool WorkerWorld::all_over() const {
  return std::all_of(jobs_.begin(), jobs_.end(), [](const auto& entry) {
    const JobState state = entry.second.state;
    return state == JobState::kSucceeded || state == JobState::kFailed ||
           state == JobState::kCancelled;
  });
}

bool WorkerWorld::run_until_all_over() {
  return run_until(
      [this] { return supervisor_->registered() && all_over() && supervisor_->attempts() == 0; });
}

}  // namespace quasi::test
