#include "tests/service/support/worker_world.hpp"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <csignal>

#include "proto/wire/digest.hpp"
#include "proto/wire/status.hpp"
#include "workers/daemon/error.hpp"

namespace quasi::test {

using google::protobuf::util::TimeUtil;

namespace {

grpc::Status unavailable() { return {grpc::StatusCode::UNAVAILABLE, "no connection"}; }

const std::string kState = "/state";

class FakeDevice : public DeviceSource {
 public:
  explicit FakeDevice(int n_slots) : n_slots_(n_slots) {}
  std::vector<WorkerDevice> devices() override {
    return {
        {.uuid = "cpu", .model = "fake", .memory_bytes = std::int64_t{8} << 30, .slots = n_slots_}};
  }
  DeviceHealth health(const WorkerDevice&) override {
    return {.free_bytes = std::int64_t{8} << 30};
  }

 private:
  int n_slots_;
};

}  // namespace

/// The engine as a script: each event is one step of the world.
class WorkerWorld::Child : public EngineChild {
 public:
  Child(WorkerWorld& world, const LaunchPlan& plan, ChildEvents& events)
      : world_(world), root_(plan.working_directory), events_(events), pid_(++next_pid_) {
    world_.children_.push_back(this);
  }
  ~Child() override { std::erase(world_.children_, this); }

  ProcessIdentity identity() const override { return {pid_, 1}; }

  bool send(const v1::EngineCommand& command) override {
    if (command.has_start()) begin(command.start());
    if (command.has_cancel() && work_ != "hang")
      later([this] { leave(v1::ENGINE_EXIT_CANCELLED); });
    return true;
  }
  void signal_group(int signal) override {
    if (signal != SIGKILL && work_ == "hang") return;
    later([this, signal] { die(signal); });
  }

 private:
  /// Runs unless the child is gone by then.
  void later(std::function<void()> function) {
    world_.events_.push_back([alive = std::weak_ptr<bool>(alive_), function] {
      if (alive.lock()) function();
    });
  }
  void begin(const v1::EngineStart& start) {
    // The world's jobs are named by their work; the attempt's grant tells which.
    v1::Grant grant;
    grant.ParseFromString(world_.files.read_file(root_ / "grant.pb").value_or(""));
    Job& job = world_.jobs_.at(grant.job_id());
    ++job.executions;
    work_ = job.work;
    if (!job.input.empty() && world_.files.read_file(root_ / "in" / "deck") != job.input)
      world_.violations.push_back("job " + job.id + " was started without its input");
    later([this] {
      v1::EngineReport report;
      report.mutable_started()->set_version("fake");
      events_.on_report(report);
    });
    later([this] {
      v1::EngineReport report;
      report.mutable_log()->set_line("working on " + work_);
      events_.on_report(report);
    });
    if (work_ == "noop") finish("the result of " + job.id);
    if (work_ == "steps") later([this, grant, start] { steps(grant, start); });
    if (work_ == "invalid") later([this] { leave(v1::ENGINE_EXIT_INVALID_INPUT); });
    if (work_ == "crash") later([this] { die(SIGSEGV); });
    if (work_ == "silent") later([this] { write_without_a_word(); });
  }
  void steps(const v1::Grant& grant, const v1::EngineStart& start) {
    std::int64_t first = 1;
    for (const auto& name : world_.files.list(root_ / start.checkpoint_directory()))
      if (name.starts_with("ckpt-"))
        first = std::max<std::int64_t>(first, std::stoll(name.substr(5)) + 1);
    if (first <= grant.checkpoint().step())
      world_.violations.push_back("a checkpoint was granted but not placed");
    for (std::int64_t step = first; step <= 5; ++step)
      later([this, step] {
        const auto name = "ckpt/ckpt-" + std::to_string(step);
        world_.files.write_from_outside(root_ / name, "state " + std::to_string(step));
        v1::EngineReport report;
        report.mutable_checkpoint_ready()->set_path(name);
        report.mutable_checkpoint_ready()->set_step(step);
        events_.on_report(report);
      });
    finish("five steps");
  }
  /// A checkpoint is complete on the disk, and the engine dies before it has said so.
  void write_without_a_word() {
    if (!world_.files.list(root_ / "ckpt").empty()) return finish("resumed");
    world_.files.write_from_outside(root_ / "ckpt" / "ckpt-7", "state 7");
    world_.files.write_from_outside(root_ / "ckpt" / "next-checkpoint.tmp", "half of state 8");
    die(SIGKILL);
  }
  void finish(const std::string& result) {
    later([this, result] {
      world_.files.write_from_outside(root_ / "out" / "result.txt", result);
      world_.files.write_from_outside(root_ / "out" / "T300K" / "BTE.kappa", "of 300 K");
      world_.files.write_from_outside(root_ / "out" / "summary.json",
                                      R"({"summary":{"done":true}})");
      v1::EngineReport report;
      report.mutable_result_ready();
      events_.on_report(report);
    });
    later([this] { leave(v1::ENGINE_EXIT_OK); });
  }
  void leave(int status) {
    if (!std::exchange(gone_, true)) events_.on_exit({.exit_status = status}, {});
  }
  void die(int signal) {
    if (!std::exchange(gone_, true)) events_.on_exit({.signal = signal}, {});
  }

  static inline std::int64_t next_pid_ = 0;
  WorkerWorld& world_;
  std::filesystem::path root_;
  ChildEvents& events_;
  std::int64_t pid_;
  std::string work_;
  bool gone_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class WorkerWorld::Engines : public Spawner {
 public:
  explicit Engines(WorkerWorld& world) : world_(world) {}
  std::unique_ptr<EngineChild> spawn(const LaunchPlan& plan, ChildEvents& events) override {
    world_.points.pass();
    auto child = std::make_unique<Child>(world_, plan, events);
    if (static_cast<int>(world_.children_.size()) > world_.n_slots_)
      world_.violations.push_back("more engines than slots");
    return child;
  }
  bool end_stray(const ProcessIdentity& child, Milliseconds patience) override {
    world_.stray_looks.emplace_back(child.pid, patience);
    return !world_.strays_outlive_sigkill;
  }

 private:
  WorkerWorld& world_;
};

class WorkerWorld::Later : public Background {
 public:
  explicit Later(WorkerWorld& world) : world_(world) {}
  void run(std::function<void()> work, std::function<void()> done) override {
    world_.events_.push_back([work, done] {
      work();
      done();
    });
  }

 private:
  WorkerWorld& world_;
};

class WorkerWorld::Blobs : public BlobTransfer {
 public:
  explicit Blobs(WorkerWorld& world) : world_(world) {}
  grpc::Status download(const std::string& digest, std::uint64_t, const std::filesystem::path& to,
                        const std::atomic<bool>&) override {
    if (!world_.server_reachable) return unavailable();
    world_.points.pass();
    const auto blob = world_.blobs_.find(digest);
    if (blob == world_.blobs_.end())
      return refused(grpc::StatusCode::NOT_FOUND, wire::reason::kBlob);
    world_.files.write_file(to, blob->second);
    return grpc::Status::OK;
  }
  grpc::Status upload(const std::filesystem::path& from, const std::string& digest, std::uint64_t,
                      const std::atomic<bool>&) override {
    if (!world_.server_reachable) return unavailable();
    if (const auto died = world_.take_connection(); !died.ok()) return died;
    world_.points.pass();
    const auto bytes = world_.files.read_file(from);
    if (!bytes) return refused(grpc::StatusCode::UNKNOWN, "LOCAL_FILE");
    if (wire::sha256_hex(*bytes) != digest)
      world_.violations.push_back("'" + from.string() + "' was uploaded under another's digest");
    world_.blobs_[digest] = *bytes;
    world_.points.pass();
    return grpc::Status::OK;
  }

 private:
  WorkerWorld& world_;
};

/// The lease rules, literally: every call about an attempt counts only under the current fence.
class WorkerWorld::Link : public ServerLink {
 public:
  explicit Link(WorkerWorld& world) : world_(world) {}

  void register_worker(const v1::RegisterRequest& request,
                       Then<v1::RegisterResponse> then) override {
    call<v1::RegisterResponse>(then, [this, request](v1::RegisterResponse& response) {
      *response.mutable_lease_ttl() = TimeUtil::MillisecondsToDuration(world_.lease_ttl.count());
      std::set<std::uint64_t> salvaged;
      for (const auto& ref : request.salvage()) {
        Job* job = nullptr;
        auto* answer = response.add_salvage();
        answer->set_fence(ref.fence());
        answer->set_directive(v1::DIRECTIVE_FENCED);
        if (!world_.stands(ref, &job)) continue;
        salvaged.insert(ref.fence());
        world_.reopen(*job, request.incarnation());
        answer->set_directive(job->state == JobState::kCancelling ? v1::DIRECTIVE_CANCEL
                                                                  : v1::DIRECTIVE_CONTINUE);
      }
      for (auto& [id, job] : world_.jobs_)
        if (job.open && !salvaged.contains(job.fence) &&
            world_.lease_incarnation_[job.fence] != request.incarnation())
          world_.requeue(job);
      return grpc::Status::OK;
    });
  }

  void acquire(const v1::AcquireLeasesRequest& request,
               Then<v1::AcquireLeasesResponse> then) override {
    poll_ = {request, then};
    answer_poll();
  }
  void cancel_acquire() override {
    if (!poll_.then) return;
    auto then = std::exchange(poll_.then, nullptr);
    world_.events_.push_back([then] {
      then({grpc::StatusCode::CANCELLED, "cancelled"}, v1::AcquireLeasesResponse());
    });
  }
  /// Answers the poll under way if there is something to grant.
  void answer_poll() {
    if (!poll_.then || answering_) return;
    const auto known = world_.acquires_.find(poll_.request.acquire_id());
    const bool work = std::any_of(world_.jobs_.begin(), world_.jobs_.end(), [&](const auto& entry) {
      return entry.second.state == JobState::kQueued &&
             world_.clock.now() >= entry.second.requeue_at;
    });
    const bool at_once = TimeUtil::DurationToMilliseconds(poll_.request.wait()) == 0;
    if (!work && known == world_.acquires_.end() && !at_once && world_.server_reachable) return;
    answering_ = true;
    const auto poll = std::exchange(poll_, {});
    call<v1::AcquireLeasesResponse>(
        [this, then = poll.then](const grpc::Status& status,
                                 const v1::AcquireLeasesResponse& response) {
          then(status, response);
        },
        [this, request = poll.request](v1::AcquireLeasesResponse& response) {
          answering_ = false;
          world_.grant(request, response);
          if (response.grants().empty() || !world_.lose_next_grants) return grpc::Status::OK;
          world_.lose_next_grants = false;
          response.Clear();
          return unavailable();
        },
        [this] { answering_ = false; });
  }

  void heartbeat(const v1::HeartbeatRequest& request, Milliseconds limit,
                 Then<v1::HeartbeatResponse> then) override {
    world_.heartbeat_limit = limit;
    world_.shown_state = request.devices(0).state();
    world_.shown_reason = request.devices(0).state_reason();
    call<v1::HeartbeatResponse>(then, [this, request](v1::HeartbeatResponse& response) {
      for (const auto& attempt : request.attempts()) {
        v1::AttemptRef ref;
        ref.set_fence(attempt.fence());
        Job* job = nullptr;
        auto* answer = response.add_attempts();
        answer->set_fence(attempt.fence());
        answer->set_directive(v1::DIRECTIVE_FENCED);
        if (!world_.stands(ref, &job)) continue;
        world_.reopen(*job, request.incarnation());
        answer->set_directive(job->state == JobState::kCancelling ? v1::DIRECTIVE_CANCEL
                                                                  : v1::DIRECTIVE_CONTINUE);
      }
      return grpc::Status::OK;
    });
  }

  void start_attempt(const v1::StartAttemptRequest& request,
                     Then<v1::StartAttemptResponse> then) override {
    call<v1::StartAttemptResponse>(then, [this, request](v1::StartAttemptResponse&) {
      Job* job = nullptr;
      if (!world_.current(request.attempt(), &job)) return fenced();
      if (job->state == JobState::kLeased) job->state = JobState::kRunning;
      return job->state == JobState::kRunning
                 ? grpc::Status::OK
                 : refused(grpc::StatusCode::FAILED_PRECONDITION, wire::reason::kWrongState);
    });
  }

  void append_log(const v1::AppendLogRequest& request, Then<v1::AppendLogResponse> then) override {
    call<v1::AppendLogResponse>(then, [this, request](v1::AppendLogResponse& response) {
      if (const auto died = world_.take_connection(); !died.ok()) return died;
      Job* job = nullptr;
      if (!world_.current(request.attempt(), &job)) return fenced();
      std::string& log = world_.logs_[job->fence];
      const std::size_t overlap =
          std::min(log.size(), static_cast<std::size_t>(request.offset())) == request.offset()
              ? log.size() - request.offset()
              : std::string::npos;
      if (overlap == std::string::npos ||
          log.compare(request.offset(), std::min(overlap, request.data().size()), request.data(), 0,
                      std::min(overlap, request.data().size())) != 0)
        return refused(grpc::StatusCode::ABORTED, wire::reason::kOffsetMismatch,
                       {{"length", std::to_string(log.size())}});
      if (request.data().size() > overlap) log += request.data().substr(overlap);
      job->log = log;
      response.set_length(log.size());
      return grpc::Status::OK;
    });
  }

  void record_checkpoint(const v1::RecordCheckpointRequest& request,
                         Then<v1::RecordCheckpointResponse> then) override {
    call<v1::RecordCheckpointResponse>(then, [this, request](v1::RecordCheckpointResponse&) {
      if (const auto died = world_.take_connection(); !died.ok()) return died;
      Job* job = nullptr;
      if (!world_.current(request.attempt(), &job)) return fenced();
      v1::Checkpoint& newest = job->checkpoint;
      if (request.sequence() == newest.sequence() && request.digest() == newest.digest())
        return grpc::Status::OK;
      if (request.sequence() <= newest.sequence() || !world_.blobs_.contains(request.digest()))
        return refused(grpc::StatusCode::FAILED_PRECONDITION, wire::reason::kWrongState);
      newest.set_sequence(request.sequence());
      newest.set_step(request.step());
      newest.set_digest(request.digest());
      newest.set_size_bytes(request.size_bytes());
      return grpc::Status::OK;
    });
  }

  void complete(const v1::CompleteAttemptRequest& request,
                Then<v1::CompleteAttemptResponse> then) override {
    call<v1::CompleteAttemptResponse>(
        then, [this, request](v1::CompleteAttemptResponse&) { return world_.complete(request); });
  }

  void release(const v1::ReleaseLeaseRequest& request,
               Then<v1::ReleaseLeaseResponse> then) override {
    call<v1::ReleaseLeaseResponse>(then, [this, request](v1::ReleaseLeaseResponse&) {
      Job* job = nullptr;
      if (!world_.current(request.attempt(), &job)) return fenced();
      job->releases.push_back(request.reason());
      world_.requeue(*job);
      return grpc::Status::OK;
    });
  }

 private:
  /// Two events, each with a crash point before it: the server acts, and its answer arrives.
  template <typename Response, typename Handle>
  void call(Then<Response> then, Handle handle, std::function<void()> lost = {}) {
    world_.events_.push_back([this, then, handle, lost] {
      world_.points.pass();
      auto response = std::make_shared<Response>();
      const bool reachable = world_.server_reachable;
      if (!reachable && lost) lost();
      const grpc::Status status = reachable ? handle(*response) : unavailable();
      if (wire::reason_of(status) == wire::reason::kFenced) ++world_.fenced_answers;
      world_.events_.push_back([this, then, status, response] {
        world_.points.pass();
        then(status, *response);
      });
    });
  }
  struct Poll {
    v1::AcquireLeasesRequest request;
    Then<v1::AcquireLeasesResponse> then;
  };
  WorkerWorld& world_;
  Poll poll_;
  bool answering_ = false;
};

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
    : n_slots_(n_slots), devices_(std::make_unique<FakeDevice>(n_slots)) {}

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
  events_.clear();  // calls under way, transfers, and the children's next words
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
