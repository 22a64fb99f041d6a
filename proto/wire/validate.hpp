#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quasi/v1/admin_service.pb.h"
#include "quasi/v1/blob_service.pb.h"
#include "quasi/v1/job.pb.h"
#include "quasi/v1/job_service.pb.h"
#include "quasi/v1/worker_service.pb.h"

/// Checks requests against the limits. All violations of a request are found in one pass; each
/// names its field, the value, the limit and the remedy.
namespace quasi::wire {

struct Violation {
  std::string field;  ///< e.g. "jobs[3].spec.resources.gpus"
  std::string description;
  std::string reason;  ///< ErrorInfo.reason: FIELD_INVALID, SPEC_TOO_LARGE, KIND_DISABLED
};

class Violations {
 public:
  void add(std::string field, std::string description, std::string_view reason = "FIELD_INVALID");
  bool empty() const { return list_.empty(); }
  const std::vector<Violation>& list() const { return list_; }

 private:
  std::vector<Violation> list_;
};

struct ValidationOptions {
  bool enable_test_work = true;
};

/// Checks one job, with `path` before its fields. The client calls it before it uploads anything.
void validate_spec(const v1::JobSpec& spec, const std::string& path,
                   const ValidationOptions& options, Violations& violations);

void validate(const v1::SubmitJobsRequest&, const ValidationOptions&, Violations&);
void validate(const v1::ValidateJobsRequest&, const ValidationOptions&, Violations&);
void validate(const v1::GetCapabilitiesRequest&, Violations&);
void validate(const v1::GetJobRequest&, Violations&);
void validate(const v1::ListJobsRequest&, Violations&);
void validate(const v1::GetJobSetRequest&, Violations&);
void validate(const v1::ListJobSetsRequest&, Violations&);
void validate(const v1::CancelJobsRequest&, Violations&);
void validate(const v1::DeleteJobsRequest&, Violations&);
void validate(const v1::HoldJobsRequest&, Violations&);
void validate(const v1::ReleaseJobsRequest&, Violations&);
void validate(const v1::ReprioritiseJobsRequest&, Violations&);
void validate(const v1::ExplainJobRequest&, Violations&);
void validate(const v1::GetUsageRequest&, Violations&);
void validate(const v1::WatchJobsRequest&, Violations&);
void validate(const v1::ReadLogsRequest&, Violations&);
void validate(const v1::ListArtifactsRequest&, Violations&);
void validate(const v1::ListPoolsRequest&, Violations&);

void validate(const v1::FindMissingBlobsRequest&, Violations&);
void validate(const v1::WriteBlobRequest::Header&, Violations&);
void validate(const v1::QueryUploadRequest&, Violations&);
void validate(const v1::ReadBlobRequest&, Violations&);

void validate(const v1::RegisterRequest&, Violations&);
void validate(const v1::AcquireLeasesRequest&, Violations&);
void validate(const v1::HeartbeatRequest&, Violations&);
void validate(const v1::StartAttemptRequest&, Violations&);
void validate(const v1::AppendLogRequest&, Violations&);
void validate(const v1::RecordCheckpointRequest&, Violations&);
void validate(const v1::CompleteAttemptRequest&, Violations&);
void validate(const v1::ReleaseLeaseRequest&, Violations&);

void validate(const v1::SavePrincipalRequest&, Violations&);
void validate(const v1::ListPrincipalsRequest&, Violations&);
void validate(const v1::CreateTokenRequest&, Violations&);
void validate(const v1::RevokeTokenRequest&, Violations&);
void validate(const v1::SaveQuotasRequest&, Violations&);
void validate(const v1::DrainWorkerRequest&, Violations&);
void validate(const v1::CordonDeviceRequest&, Violations&);
void validate(const v1::PreemptJobsRequest&, Violations&);

/// Name of the set field of JobSpec.work, which is the job's kind; "" if none is set.
std::string_view kind_of(const v1::JobSpec& spec);
/// Every name that kind_of can return.
const std::vector<std::string>& all_kinds();
/// Every kind that takes a deck: all but "test", which a server must enable.
const std::vector<std::string>& offered_kinds();
/// The deck of the spec's work, whatever its kind; nullptr for work without a deck.
const v1::DeckWork* deck_of(const v1::JobSpec& spec);
v1::DeckWork* mutable_deck_of(v1::JobSpec& spec);
/// The processor that the job's work requests; AUTO if it states none.
v1::DevicePreference device_of(const v1::JobSpec& spec);

/// True for `prefix`, '_' and 26 base32 characters. The prefixes are 'j', 'w' and 'a'.
bool is_id(std::string_view text, char prefix);
/// True for one component of a path: [A-Za-z0-9._-]{1,128} without a leading dot.
bool is_file_name(std::string_view text);
/// True for 1…8 file names joined by '/', the form of slots and artefact names. Such a path cannot
/// leave the directory that it is put into.
bool is_relative_path(std::string_view text, std::size_t most_bytes);

}  // namespace quasi::wire
