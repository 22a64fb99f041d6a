// Tests what belongs to whom: jobs, logs, results, files and answers of one principal and others.

#include <map>
#include <set>

#include "proto/wire/digest.hpp"
#include "server/access/rules.hpp"
#include "tests/service/support/people/access_fixture.hpp"
#include "tests/service/support/people/person.hpp"

namespace quasi::server {
namespace {

using grpc::StatusCode;

/// Two users of one group, one of another, and the people who serve them all.
class Owners : public Access {
 protected:
  Person person(const std::string& name, v1::Role role, const std::string& tenant) {
    return {wire::open_channel(tcp()), token_of(name, role, 3'600, tenant)};
  }
  Person ada_ = person("ada", v1::ROLE_USER, "phonons");
  Person bo_ = person("bo", v1::ROLE_USER, "phonons");
  Person cy_ = person("cy", v1::ROLE_USER, "devices");
  Person vera_ = person("vera", v1::ROLE_VIEWER, "phonons");
  Person otto_ = person("otto", v1::ROLE_OPERATOR, "staff");
  Person root_admin_ = person("root2", v1::ROLE_ADMIN, "staff");
  Person worker_ = person("willi", v1::ROLE_WORKER, "staff");

  /// Registers a worker with one slot that takes the job.
  v1::Grant take(const std::string& id);
  /// Runs one job on a worker of this test, with a log and a result. @return the result's digest
  std::string run_on_worker(const std::string& id);
};

void expect_ok(const grpc::Status& status) { EXPECT_TRUE(status.ok()) << status.error_message(); }

v1::Grant Owners::take(const std::string& id) {
  using Stub = v1::WorkerService::Stub;
  v1::RegisterRequest hello;
  hello.set_worker_id("w_" + std::string(26, 'A'));
  hello.set_incarnation(wire::make_uuid());
  hello.set_version("0.1.0");
  hello.add_kinds("test");
  v1::Device& device = *hello.add_devices();
  device.set_id("cpu0");
  device.set_backend(v1::DEVICE_BACKEND_CPU);
  device.set_slots(1);
  v1::RegisterResponse known;
  expect_ok(worker_.call(worker_.workers(), &Stub::Register, hello, &known));
  v1::AcquireLeasesRequest acquire;
  acquire.set_worker_id(hello.worker_id());
  acquire.set_incarnation(hello.incarnation());
  acquire.set_acquire_id(wire::make_uuid());
  acquire.add_slots()->set_device_id("cpu0");
  v1::AcquireLeasesResponse granted;
  expect_ok(worker_.call(worker_.workers(), &Stub::AcquireLeases, acquire, &granted));
  if (granted.grants_size() != 1 || granted.grants(0).job_id() != id) {
    ADD_FAILURE() << "the worker was not granted " << id;
    return {};
  }
  return granted.grants(0);
}

std::string Owners::run_on_worker(const std::string& id) {
  using Stub = v1::WorkerService::Stub;
  const v1::AttemptRef attempt = take(id).attempt();
  v1::StartAttemptRequest start;
  *start.mutable_attempt() = attempt;
  v1::StartAttemptResponse started;
  expect_ok(worker_.call(worker_.workers(), &Stub::StartAttempt, start, &started));
  v1::AppendLogRequest log;
  *log.mutable_attempt() = attempt;
  log.set_data("private words\n");
  v1::AppendLogResponse appended;
  expect_ok(worker_.call(worker_.workers(), &Stub::AppendLog, log, &appended));
  const std::string digest = worker_.send("result of " + id);
  v1::CompleteAttemptRequest complete;
  *complete.mutable_attempt() = attempt;
  v1::Artifact& artifact = *complete.mutable_succeeded()->add_artifacts();
  artifact.set_name("result.h5");
  artifact.set_digest(digest);
  artifact.set_size_bytes(("result of " + id).size());
  v1::CompleteAttemptResponse completed;
  expect_ok(worker_.call(worker_.workers(), &Stub::CompleteAttempt, complete, &completed));
  return digest;
}

/// Checks that a call says of a job exactly what it says of one that never was.
void expect_absent(const grpc::Status& foreign, const std::string& id, const grpc::Status& absent,
                   const std::string& never) {
  EXPECT_EQ(foreign.error_code(), StatusCode::NOT_FOUND);
  std::string text = foreign.error_message();
  const std::size_t at = text.find(id);
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, id.size(), never);
  EXPECT_EQ(text, absent.error_message());
  EXPECT_EQ(wire::reason_of(foreign), wire::reason_of(absent));
}

const std::string kNever = "j_00000000000000000000000000";

// Only operators and admins put jobs before those of others. A user may put own jobs behind them.
TEST_F(Owners, APriorityAboveZeroNeedsAnOperator) {
  const auto request_of = [](int priority) {
    v1::SubmitJobsRequest request;
    for (const int each : {0, priority}) {
      v1::JobSpec& spec = *request.add_jobs();
      spec.set_name("noop");
      spec.mutable_test()->mutable_noop();
      spec.set_priority(each);
    }
    return request;
  };
  const auto problems = [](const Person& person, const v1::SubmitJobsRequest& request) {
    v1::ValidateJobsRequest question;
    *question.mutable_jobs() = request.jobs();
    v1::ValidateJobsResponse answer;
    expect_ok(person.call(person.jobs(), &v1::JobService::Stub::ValidateJobs, question, &answer));
    return answer;
  };
  std::string id;
  const grpc::Status refused = ada_.submit(request_of(1), &id);
  EXPECT_EQ(refused.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(refused.error_message(),
            "jobs[1].priority: is 1, and the limit of the role user is 0; choose a value of "
            "-100...0, or ask an operator to submit the job");
  EXPECT_TRUE(ada_.listed().empty());
  ASSERT_EQ(problems(ada_, request_of(1)).problems_size(), 1);
  EXPECT_EQ(problems(ada_, request_of(1)).problems(0).field(), "jobs[1].priority");
  expect_ok(ada_.submit(request_of(-100), &id));
  EXPECT_EQ(problems(ada_, request_of(-100)).problems_size(), 0);
  for (const Person* one : {&otto_, &root_admin_}) {
    expect_ok(one->submit(request_of(100), &id));
    EXPECT_EQ(problems(*one, request_of(100)).problems_size(), 0);
  }
}

// The owner of a waiting job may lower its priority. Only operators and admins raise it, and the
// job shows the present value.
TEST_F(Owners, RaisingAPriorityNeedsAnOperator) {
  const std::string id = ada_.submit();
  const auto priority = [&] {
    v1::GetJobResponse job;
    expect_ok(ada_.get(id, &job));
    EXPECT_EQ(job.job().spec().priority(), 0) << "the specification was changed";
    return job.job().priority();
  };
  EXPECT_EQ(priority(), 0);
  expect_ok(ada_.reprioritise(id, -7));
  EXPECT_EQ(priority(), -7);
  const grpc::Status refused = ada_.reprioritise(id, -6);
  EXPECT_EQ(refused.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(refused.error_message(),
            "priority: is -6, and job " + id +
                " has -7, the limit of your role; choose a lower value, or ask an operator to "
                "raise it");
  EXPECT_EQ(priority(), -7);
  expect_ok(otto_.reprioritise(id, 5));
  EXPECT_EQ(priority(), 5);
  expect_ok(root_admin_.reprioritise(id, 100));
  EXPECT_EQ(priority(), 100);
  EXPECT_EQ(otto_.reprioritise(id, 101).error_code(), StatusCode::INVALID_ARGUMENT);
}

// A job is its owner's: another user, of the same group or not, cannot tell it from a job that
// never was, by any call. An operator and an admin see it.
TEST_F(Owners, APrivateJobIsAbsentForOthers) {
  const std::string id = ada_.submit();
  const std::string digest = run_on_worker(id);
  for (const Person* other : {&bo_, &cy_, &vera_}) {
    v1::GetJobResponse job;
    expect_absent(other->get(id, &job), id, other->get(kNever, &job), kNever);
    v1::ListArtifactsResponse artifacts;
    expect_absent(other->artifacts(id, &artifacts), id, other->artifacts(kNever, &artifacts),
                  kNever);
    expect_absent(other->log(id), id, other->log(kNever), kNever);
    const std::string unknown(64, 'f');
    expect_absent(other->read(digest), digest, other->read(unknown), unknown);
    EXPECT_TRUE(other->listed().empty());
    EXPECT_TRUE(other->listed("noo").empty());
    EXPECT_TRUE(other->watched().empty());
  }
  for (const Person* other : {&bo_, &cy_}) {
    EXPECT_FALSE(other->has(digest));
    expect_absent(other->cancel(id), id, other->cancel(kNever), kNever);
    v1::GetJobResponse job;
    expect_absent(other->get(id.substr(0, 8), &job), id.substr(0, 8), other->get("j_000000", &job),
                  "j_000000");
  }
  for (const Person* one : {&ada_, &otto_, &root_admin_}) {
    v1::GetJobResponse job;
    ASSERT_TRUE(one->get(id, &job).ok());
    EXPECT_EQ(job.job().owner(), "ada");
    EXPECT_EQ(job.job().tenant(), "phonons");
    std::string text, bytes;
    EXPECT_TRUE(one->log(id, &text).ok());
    EXPECT_EQ(text, "private words\n");
    EXPECT_TRUE(one->read(digest, &bytes).ok());
    EXPECT_EQ(bytes, "result of " + id);
    EXPECT_EQ(one->listed(), std::set<std::string>{id});
    EXPECT_EQ(one->watched(), std::set<std::string>{id});
  }
}

// A job that is visible to the group is read by its members, not changed by them, and absent for
// other groups.
TEST_F(Owners, AJobOfTheGroupIsReadByItsMembersAlone) {
  const std::string id = ada_.submit(v1::VISIBILITY_TENANT);
  const std::string digest = run_on_worker(id);
  for (const Person* member : {&bo_, &vera_}) {
    v1::GetJobResponse job;
    EXPECT_TRUE(member->get(id, &job).ok());
    std::string text, bytes;
    EXPECT_TRUE(member->log(id, &text).ok());
    EXPECT_TRUE(member->read(digest, &bytes).ok());
    EXPECT_EQ(bytes, "result of " + id);
    EXPECT_EQ(member->listed(), std::set<std::string>{id});
  }
  const grpc::Status refused = bo_.cancel(id);
  EXPECT_EQ(refused.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_NE(refused.error_message().find("only its owner or an operator"), std::string::npos);
  v1::GetJobResponse job;
  EXPECT_EQ(cy_.get(id, &job).error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(cy_.read(digest).error_code(), StatusCode::NOT_FOUND);
  EXPECT_TRUE(cy_.listed().empty());
  EXPECT_TRUE(otto_.cancel(id).ok());
}

/// A call that names a job, and what it is about: reading or changing it.
struct JobCall {
  const char* method;
  bool changes;
  grpc::Status (*make)(const Person&, const std::string& id);
};
const JobCall kJobCalls[] = {
    {"GetJob", false,
     [](const Person& person, const std::string& id) {
       v1::GetJobResponse response;
       return person.get(id, &response);
     }},
    {"ListArtifacts", false,
     [](const Person& person, const std::string& id) {
       v1::ListArtifactsResponse response;
       return person.artifacts(id, &response);
     }},
    {"ReadLogs", false, [](const Person& person, const std::string& id) { return person.log(id); }},
    {"CancelJobs", true,
     [](const Person& person, const std::string& id) { return person.cancel(id); }},
    {"DeleteJobs", true,
     [](const Person& person, const std::string& id) { return person.erase(id); }},
    {"ExplainJob", false,
     [](const Person& person, const std::string& id) {
       v1::ExplainJobResponse response;
       return person.explain(id, &response);
     }},
    {"HoldJobs", true, [](const Person& person, const std::string& id) { return person.hold(id); }},
    {"ReleaseJobs", true,
     [](const Person& person, const std::string& id) { return person.release(id); }},
    {"ReprioritiseJobs", true,
     [](const Person& person, const std::string& id) { return person.reprioritise(id, -1); }},
};
/// Calls without the id of a job, a blob or an upload in their request, those of workers, whose
/// rights are their leases, and those of admins. Listings, watches, blobs and uploads have tests of
/// their own above and below.
const std::set<std::string> kOtherCalls{
    "GetCapabilities",  "SubmitJobs",       "ValidateJobs", "ListJobs",      "WatchJobs",
    "ListPools",        "FindMissingBlobs", "WriteBlob",    "QueryUpload",   "ReadBlob",
    "Register",         "AcquireLeases",    "Heartbeat",    "StartAttempt",  "AppendLog",
    "RecordCheckpoint", "CompleteAttempt",  "ReleaseLease", "SavePrincipal", "ListPrincipals",
    "CreateToken",      "RevokeToken",      "RedeemCode",   "CreateCode",    "RenewToken",
    "GetUsage",         "SaveQuotas",       "GetJobSet",    "ListJobSets",   "DrainWorker",
    "CordonDevice",     "PreemptJobs"};

// The matrix: every call that names a job, by every role, about one's own job, one of the group and
// a foreign one. A call that is added to the protos must be added to one of the two lists.
TEST_F(Owners, EveryCallByEveryRoleAboutEveryJob) {
  std::set<std::string> listed = kOtherCalls;
  for (const JobCall& call : kJobCalls) listed.insert(call.method);
  std::set<std::string> methods;
  for (const pb::MethodDescriptor* method : all_methods()) methods.insert(method->name());
  EXPECT_EQ(listed, methods) << "put a new call into kJobCalls or kOtherCalls";

  struct Reader {
    const char* name;
    const Person* person;
    Role role;
    const char* tenant;
  };
  const Reader readers[] = {
      {"ada", &ada_, Role::kUser, "phonons"},     {"bo", &bo_, Role::kUser, "phonons"},
      {"cy", &cy_, Role::kUser, "devices"},       {"vera", &vera_, Role::kViewer, "phonons"},
      {"otto", &otto_, Role::kOperator, "staff"}, {"root2", &root_admin_, Role::kAdmin, "staff"},
      {"willi", &worker_, Role::kWorker, "staff"}};
  for (const bool shared : {false, true})
    for (const JobCall& call : kJobCalls)
      for (const Reader& reader : readers) {
        SCOPED_TRACE(std::string(call.method) + " by " + reader.name +
                     (shared ? " of a shared job" : " of a private job"));
        const std::string id = ada_.submit(shared ? v1::VISIBILITY_TENANT : v1::VISIBILITY_PRIVATE);
        if (std::string(call.method) == "DeleteJobs") {
          EXPECT_TRUE(ada_.cancel(id).ok());
        }
        const bool owns = reader.person == &ada_;
        const bool sees_all = reader.role == Role::kOperator || reader.role == Role::kAdmin;
        const bool sees = owns || sees_all || (shared && reader.tenant == std::string("phonons"));
        const StatusCode expected =
            !may_call(reader.role, call.method)  ? StatusCode::PERMISSION_DENIED
            : !sees                              ? StatusCode::NOT_FOUND
            : call.changes && !owns && !sees_all ? StatusCode::PERMISSION_DENIED
                                                 : StatusCode::OK;
        const grpc::Status status = call.make(*reader.person, id);
        EXPECT_EQ(status.error_code(), expected) << status.error_message();
      }
}

// A blob is usable by those who sent it. Its digest alone opens nothing: neither is its presence
// told, nor can a job take it as an input. Sending the bytes oneself does.
TEST_F(Owners, ADigestIsNoKey) {
  const std::string digest = ada_.send("the deck of ada");
  EXPECT_TRUE(ada_.has(digest));
  EXPECT_FALSE(bo_.has(digest));
  EXPECT_EQ(bo_.read(digest).error_code(), StatusCode::NOT_FOUND);
  v1::SubmitJobsRequest request;
  *request.add_jobs() = valid_spec();
  request.mutable_jobs(0)->mutable_resources()->set_gpus(0);
  request.mutable_jobs(0)->mutable_inputs(0)->set_digest(digest);
  request.mutable_jobs(0)->mutable_inputs(0)->set_size_bytes(15);
  std::string id;
  const grpc::Status stolen = bo_.submit(request, &id);
  EXPECT_EQ(stolen.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(wire::reason_of(stolen), "INPUTS_MISSING");
  EXPECT_TRUE(ada_.submit(request, &id).ok());
  EXPECT_EQ(bo_.send("the deck of ada"), digest);
  EXPECT_TRUE(bo_.has(digest));
  EXPECT_TRUE(bo_.submit(request, &id).ok());
}

// Each principal has request ids and upload ids of its own: neither reveals nor disturbs another's.
TEST_F(Owners, IdsOfRequestsAndUploadsAreOnesOwn) {
  const std::string request_id = wire::make_uuid();
  v1::SubmitJobsRequest request;
  request.set_request_id(request_id);
  request.add_jobs()->mutable_test()->mutable_noop();
  std::string of_ada, of_bo, again;
  ASSERT_TRUE(ada_.submit(request, &of_ada).ok());
  ASSERT_TRUE(bo_.submit(request, &of_bo).ok());
  EXPECT_NE(of_ada, of_bo);
  ASSERT_TRUE(ada_.submit(request, &again).ok());
  EXPECT_EQ(again, of_ada);

  // Ada's upload stops after its first bytes. Bo asks for its id and uses it.
  const std::string upload_id = wire::make_uuid();
  {
    grpc::ClientContext context;
    ada_.admit(context);
    v1::WriteBlobResponse response;
    const auto stream = ada_.blobs().WriteBlob(&context, &response);
    v1::WriteBlobRequest message;
    message.mutable_header()->set_upload_id(upload_id);
    message.mutable_header()->set_digest(wire::sha256_hex("half and half"));
    message.mutable_header()->set_size_bytes(13);
    stream->Write(message);
    message.mutable_data()->set_data("half and");
    stream->Write(message);
    stream->WritesDone();
    EXPECT_EQ(stream->Finish().error_code(), StatusCode::ABORTED);
  }
  v1::QueryUploadRequest query;
  query.set_upload_id(upload_id);
  v1::QueryUploadResponse answer;
  const auto query_upload = &v1::BlobService::Stub::QueryUpload;
  EXPECT_EQ(bo_.call(bo_.blobs(), query_upload, query, &answer).error_code(),
            StatusCode::NOT_FOUND);
  bo_.send("another blob", upload_id);
  ASSERT_TRUE(ada_.call(ada_.blobs(), query_upload, query, &answer).ok());
  EXPECT_EQ(answer.committed_bytes(), 8u);
}

// The devices' page counts the jobs of others and does not name them.
TEST_F(Owners, RunningJobsOfOthersAreCountedNotNamed) {
  const std::string id = ada_.submit();
  take(id);
  const auto named = [](const Person& person) {
    v1::ListPoolsResponse pools;
    EXPECT_TRUE(
        person.call(person.jobs(), &v1::JobService::Stub::ListPools, v1::ListPoolsRequest{}, &pools)
            .ok());
    const v1::Device& shown = pools.pools(0).workers(0).devices(0);
    EXPECT_EQ(shown.busy_slots(), 1u);
    return std::vector<std::string>(shown.running_job_ids().begin(), shown.running_job_ids().end());
  };
  EXPECT_EQ(named(ada_), std::vector<std::string>{id});
  EXPECT_EQ(named(otto_), std::vector<std::string>{id});
  EXPECT_TRUE(named(bo_).empty());
  EXPECT_TRUE(named(cy_).empty());
}

}  // namespace
}  // namespace quasi::server
