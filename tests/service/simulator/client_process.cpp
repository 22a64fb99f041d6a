#include "tests/service/simulator/client_process.hpp"

#include <google/protobuf/util/json_util.h>

#include "client/failure.hpp"
#include "client/session/connection.hpp"
#include "proto/wire/validate.hpp"
#include "server/api/convert.hpp"
#include "server/api/status.hpp"
#include "server/api/sweeps/job_parts.hpp"
#include "tests/service/simulator/set_plan.hpp"

namespace quasi::sim {
namespace {

constexpr std::int64_t kLimitMs = 8'000;
/// Label of jobs that count as equal to each other. Test work has no action of its own.
constexpr char kEqual[] = "equal";

server::JobSetRow set_of(const SetPlan& plan) {
  server::JobSetRow set{.name = "set",
                        .max_concurrent = plan.max_concurrent,
                        .stop_after_failures = plan.stop_after_failures};
  if (plan.rule_jobs > 0)
    set.stop_rules.push_back({.condition = {.figure = kFigure,
                                            .comparison = wire::Comparison::kBelow,
                                            .value = static_cast<double>(plan.rule_below),
                                            .jobs = plan.rule_jobs}});
  return set;
}

/// Prepares a submission as the server does before the queue gets it.
server::SubmitJobs command_of(const v1::SubmitJobsRequest& request, const server::Scope& scope) {
  v1::SubmitJobsRequest body = request;
  body.clear_request_id();
  server::SubmitJobs command{.scope = scope,
                             .request_id = request.request_id(),
                             .body_sha256 = wire::sha256_hex(server::canonical_bytes(body)),
                             .jobs = {}};
  server::add_jobs(request, command);
  for (server::NewJob& job : command.jobs)
    for (const auto& [key, value] : job.labels)
      if (key == kEqual) job.row.action = wire::sha256_hex(value);
  if (const auto plan = SetPlan::of(request.jobs(0))) command.set = set_of(*plan);
  return command;
}

std::string to_json(const v1::SubmitJobsRequest& request) {
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  (void)google::protobuf::util::MessageToJsonString(request, &text, options);
  return text;
}

/// True for an answer after which the client forgets the submission.
bool is_refusal(const grpc::Status& status) {
  return !status.ok() && !client::is_transient(status) &&
         status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED;
}

}  // namespace

ClientProcess::ClientProcess(const Surroundings& around, Person person,
                             const std::filesystem::path& folder)
    : around_(around),
      person_(std::move(person)),
      state_(folder / ("person" + std::to_string(person_.id))) {}

server::Scope ClientProcess::scope() const {
  return {.principal_id = person_.id, .tenant = person_.tenant};
}

std::string ClientProcess::some_job() const {
  return jobs_.empty() ? "" : jobs_[around_.dice.draw(jobs_.size())];
}

std::string ClientProcess::some_set() const {
  return sets_.empty() ? "" : sets_[around_.dice.draw(sets_.size())];
}

v1::JobSpec ClientProcess::random_job(int place, bool may_wait) {
  Dice& dice = around_.dice;
  v1::JobSpec spec;
  spec.set_name("p" + std::to_string(person_.id) + "-" + std::to_string(submissions_) + "-" +
                std::to_string(place));
  v1::TestWork& work = *spec.mutable_test();
  const std::uint64_t kind = dice.draw(20);
  if (kind < 9)
    work.mutable_sleep()->mutable_duration()->set_seconds(1);
  else if (kind < 14)
    work.mutable_checkpointing()->set_steps(static_cast<std::uint32_t>(dice.draw(2, 5)));
  else if (kind < 17)
    work.mutable_exit()->set_status(static_cast<int>(dice.draw(10, 13)));
  else if (kind < 18)
    work.mutable_signal()->set_number(11);
  else if (kind < 19)
    work.mutable_hang()->set_ignore_sigterm(true);
  else
    work.mutable_garbage_ipc()->set_bytes(9);
  v1::Resources& resources = *spec.mutable_resources();
  resources.set_gpus(static_cast<std::uint32_t>(dice.one_in(2) ? dice.draw(1, 2) : 0));
  // Only one machine has two GPUs, and its smaller one has 24 GiB.
  const std::int64_t most_gib = resources.gpus() > 1 ? 20 : 36;
  if (dice.one_in(3))
    resources.set_gpu_mem_bytes(static_cast<std::uint64_t>(dice.draw(4, most_gib)) << 30);
  spec.mutable_max_runtime()->set_seconds(work.has_hang() ? 3 : 60);
  spec.mutable_retry()->set_max_attempts(static_cast<std::uint32_t>(dice.draw(2, 6)));
  if (dice.one_in(6)) spec.mutable_retry()->set_resume(false);
  if (work.has_checkpointing() && dice.one_in(2))
    spec.mutable_checkpoint()->mutable_interval()->set_seconds(3);
  spec.set_priority(static_cast<std::int32_t>(dice.draw(-3, 0)));
  if (dice.one_in(3)) spec.set_visibility(v1::VISIBILITY_TENANT);
  if (work.has_sleep() && dice.one_in(2)) {
    (*spec.mutable_labels())[kEqual] = std::to_string(dice.draw(3));
    spec.clear_resources();
    if (dice.one_in(6)) spec.set_cache(v1::CACHE_POLICY_REFRESH);
  } else if (may_wait && dice.one_in(3)) {
    add_waits(spec, place);
  }
  return spec;
}

void ClientProcess::add_waits(v1::JobSpec& spec, int place) {
  const std::string earlier = some_job();
  if (place == 0 && earlier.empty()) return;
  if (around_.dice.one_in(2)) {
    v1::Input& input = *spec.add_inputs();
    input.set_slot("deck");
    input.mutable_from()->set_artifact("result.txt");
    if (place > 0)
      input.mutable_from()->set_index(static_cast<std::uint32_t>(place - 1));
    else
      input.mutable_from()->set_job_id(earlier);
    return;
  }
  const auto add = [&](v1::Dependency& dependency) {
    dependency.set_condition(around_.dice.one_in(2) ? v1::Dependency::CONDITION_SUCCESS
                                                    : v1::Dependency::CONDITION_FINISHED);
    return &dependency;
  };
  if (place > 0)
    add(*spec.add_depends_on())->set_index(static_cast<std::uint32_t>(place - 1));
  else
    add(*spec.add_depends_on())->set_job_id(earlier);
  if (place > 1 && around_.dice.one_in(2)) add(*spec.add_depends_on())->set_index(0);
}

void ClientProcess::submit() {
  Dice& dice = around_.dice;
  ++submissions_;
  v1::SubmitJobsRequest request;
  request.set_request_id(server::test::uuid_of(dice.engine()()));
  const bool is_set = dice.one_in(8);
  const int n_jobs = static_cast<int>(is_set ? dice.draw(4, 6) : dice.draw(1, 3));
  for (int i = 0; i < n_jobs; ++i) *request.add_jobs() = random_job(i, !is_set);
  if (is_set)
    SetPlan{.max_concurrent = dice.draw(0, 2),
            .stop_after_failures = dice.draw(0, 2),
            .rule_jobs = dice.draw(0, 2),
            .rule_below = dice.draw(1, 3)}
        .write_to(*request.mutable_jobs(0));
  around_.timeline.record("person " + std::to_string(person_.id) + " submits " +
                          std::to_string(n_jobs) + " jobs: " + request.jobs(0).name());
  state_.add_pending({.request_id = request.request_id(),
                      .created_ms = around_.timeline.now(),
                      .address = "simulated",
                      .store_id = "",
                      .request_json = to_json(request)});
  send(request);
}

void ClientProcess::resume() {
  for (const client::PendingSubmission& entry : state_.pending()) {
    v1::SubmitJobsRequest request;
    const auto status = google::protobuf::util::JsonStringToMessage(entry.request_json, &request);
    if (!status.ok() || request.request_id() != entry.request_id)
      around_.judge.report_violation("I1",
                                     "an entry of the journal is damaged: " + entry.request_id);
    send(request);
  }
}

void ClientProcess::send(const v1::SubmitJobsRequest& request) {
  around_.judge.note_submission(
      request.request_id(),
      {.owner = person_.id, .jobs = static_cast<std::size_t>(request.jobs_size())});
  wire::Violations violations;
  wire::validate(request, {.enable_test_work = true}, violations);
  if (!violations.empty())
    around_.judge.report_violation(
        "requests", violations.list().front().field + ": " + violations.list().front().description);
  around_.network.call<v1::SubmitJobsResponse>(
      "person " + std::to_string(person_.id), alive_, kLimitMs,
      [&server = around_.server, request, scope = scope()](auto back, const Awaited&) {
        auto response = std::make_shared<v1::SubmitJobsResponse>();
        server.write(
            "SubmitJobs",
            [request, scope, response](WriteContext& write) {
              response->Clear();
              const auto submitted = write.queue.apply(command_of(request, scope), write.now);
              for (const std::string& uid : submitted.uids) response->add_job_ids(uid);
              response->set_job_set_id(submitted.set_uid);
            },
            [back, response](const grpc::Status& status) { back(status, *response); });
      },
      [this, request, was_acknowledged = around_.judge.is_acknowledged(request.request_id())](
          const grpc::Status& status, const v1::SubmitJobsResponse& response) {
        try {
          if (is_refusal(status))
            around_.judge.note_refusal(request.request_id(), was_acknowledged);
          answered(request, status, response);
        } catch (const client::Failure&) {
          // The disk of the journal has failed, and the command ends. The entry stays.
        }
      });
}

void ClientProcess::answered(const v1::SubmitJobsRequest& request, const grpc::Status& status,
                             const v1::SubmitJobsResponse& response) {
  if (!status.ok()) {
    if (!is_refusal(status)) return;
    around_.timeline.record("a submission is refused: " + status.error_message());
    return state_.remove_pending(request.request_id());
  }
  const std::vector<std::string> uids(response.job_ids().begin(), response.job_ids().end());
  around_.judge.note_submission_answer(request.request_id(), uids, response.job_set_id());
  jobs_.insert(jobs_.end(), uids.begin(), uids.end());
  if (!response.job_set_id().empty()) sets_.push_back(response.job_set_id());
  state_.remember_last(uids);
  state_.remove_pending(request.request_id());
}

template <class Command, class Then>
void ClientProcess::command(const char* method, const Command& command, Then then) {
  using Answer =
      decltype(std::declval<server::QueueCore&>().apply(command, std::declval<server::Now>()));
  around_.network.call<Answer>(
      "person " + std::to_string(person_.id), alive_, kLimitMs,
      [&server = around_.server, method, command](auto back, const Awaited&) {
        auto answer = std::make_shared<Answer>();
        server.write(
            method,
            [command, answer](WriteContext& write) {
              *answer = write.queue.apply(command, write.now);
            },
            [back, answer](const grpc::Status& status) { back(status, *answer); });
      },
      then);
}

void ClientProcess::cancel() {
  const std::string uid = some_job();
  if (uid.empty()) return;
  around_.timeline.record("person " + std::to_string(person_.id) + " cancels a job");
  around_.judge.note_cancel(uid);
  command("CancelJobs",
          server::CancelJobs{.scope = scope(),
                             .request_id = server::test::uuid_of(around_.dice.engine()()),
                             .body_sha256 = "cancel",
                             .uids = {uid},
                             .reason = "not wanted"},
          [this, uid](const grpc::Status& status, const server::Cancelled& answer) {
            if (status.ok()) around_.judge.note_cancel_answer(uid, answer.states.at(0));
          });
}

void ClientProcess::cancel_set() {
  const std::string uid = some_set();
  if (uid.empty()) return cancel();
  around_.timeline.record("person " + std::to_string(person_.id) + " cancels a set");
  around_.judge.note_cancel(uid);
  command("CancelJobs",
          server::CancelJobs{.scope = scope(),
                             .request_id = server::test::uuid_of(around_.dice.engine()()),
                             .body_sha256 = "cancel of a set",
                             .uids = {},
                             .reason = "not wanted",
                             .set_uid = uid},
          [this, uid](const grpc::Status& status, const server::Cancelled& answer) {
            if (!status.ok()) return;
            for (std::size_t i = 0; i < answer.uids.size(); ++i)
              around_.judge.note_cancel_answer(answer.uids[i], answer.states.at(i));
            around_.judge.note_set_cancel_answer(uid);
          });
}

void ClientProcess::send_turn(const std::string& uid, server::ChangeTurns::Act act) {
  command("ChangeTurns",
          server::ChangeTurns{.scope = scope(),
                              .request_id = {},
                              .body_sha256 = {},
                              .uids = {uid},
                              .act = act,
                              .reason = "turns",
                              .priority = -1},
          [](const grpc::Status&, const server::TurnsChanged&) {});
}

void ClientProcess::change_turn() {
  using Act = server::ChangeTurns::Act;
  static constexpr Act kActs[] = {Act::kHold, Act::kRelease, Act::kRelease, Act::kReprioritise};
  const std::string uid = some_job();
  if (uid.empty()) return;
  const Act act = kActs[around_.dice.draw(4)];
  around_.timeline.record("person " + std::to_string(person_.id) +
                          (act == Act::kHold ? " holds" : " releases or ranks") + " a job");
  send_turn(uid, act);
}

void ClientProcess::pause_retry() {
  if (!around_.server.is_up()) return;
  server::Statement row(around_.server.world().engine.database(),
                        "SELECT uid FROM jobs WHERE owner_id=? AND state=3 AND grants>0 "
                        "ORDER BY set_id IS NULL, id LIMIT 1");
  row.bind(person_.id);
  if (!row.step()) return;
  const std::string uid = row.text(0);
  around_.timeline.record("person " + std::to_string(person_.id) + " holds a job for a while");
  send_turn(uid, server::ChangeTurns::Act::kHold);
  around_.timeline.plan_event(around_.dice.draw(300, 6'000),
                              [this, uid] { send_turn(uid, server::ChangeTurns::Act::kRelease); });
}

void ClientProcess::release_all() {
  if (!around_.server.is_up()) return;
  for (const std::string& uid : jobs_) {
    const auto job = around_.server.world().engine.store().find_job(scope(), uid);
    if (job && job->state == JobState::kHeld) send_turn(uid, server::ChangeTurns::Act::kRelease);
  }
}

void ClientProcess::fetch() {
  const std::string uid = some_job();
  if (uid.empty() || !around_.server.is_up()) return;
  auto& engine = around_.server.world().engine;
  const auto job = engine.store().find_job(scope(), uid);
  if (!job) return around_.judge.report_violation("I1", "its owner does not find the job " + uid);
  if (job->state != JobState::kSucceeded) return;
  server::Statement rows(engine.database(), "SELECT digest FROM artifacts WHERE job_id=?");
  rows.bind(job->id);
  while (rows.step()) {
    std::string bytes;
    if (!around_.server.get_blob(rows.text(0), &bytes).ok())
      around_.judge.report_violation("I11", "the result of " + uid + " cannot be fetched");
  }
}

void ClientProcess::reach_for_job_of(const ClientProcess& other) {
  const std::string uid = other.some_job();
  if (uid.empty() || !around_.server.is_up() || other.person_.tenant == person_.tenant) return;
  if (around_.server.world().engine.store().find_job(scope(), uid))
    around_.judge.report_violation("I15", "a person of another tenant finds the job " + uid);
  const std::string set = other.some_set();
  const bool reaches_for_set = !set.empty() && around_.dice.one_in(2);
  command(
      "CancelJobs",
      server::CancelJobs{.scope = scope(),
                         .request_id = {},
                         .body_sha256 = {},
                         .uids = reaches_for_set ? std::vector<std::string>() : std::vector{uid},
                         .reason = "not mine",
                         .set_uid = reaches_for_set ? set : ""},
      [this, uid](const grpc::Status& status, const server::Cancelled&) {
        if (status.ok())
          around_.judge.report_violation(
              "I15", "a person of another tenant cancels the job " + uid + " or its set");
      });
}

void ClientProcess::kill() {
  around_.timeline.record("the commands of person " + std::to_string(person_.id) + " are killed");
  alive_ = std::make_shared<bool>(true);
}

}  // namespace quasi::sim
