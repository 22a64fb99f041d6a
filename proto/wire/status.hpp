#pragma once

#include <grpcpp/support/status.h>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Errors between processes: a gRPC code, a sentence with the remedy, and details in the standard
/// wire form (google.rpc, in the trailer `grpc-status-details-bin`).
namespace quasi::wire {

/// Values of ErrorInfo.reason, by the gRPC code that they come with.
namespace reason {
// INVALID_ARGUMENT
inline constexpr std::string_view kFieldInvalid = "FIELD_INVALID";
inline constexpr std::string_view kSpecTooLarge = "SPEC_TOO_LARGE";
inline constexpr std::string_view kDigestMismatch = "DIGEST_MISMATCH";
inline constexpr std::string_view kSizeMismatch = "SIZE_MISMATCH";
inline constexpr std::string_view kPageTokenMismatch = "PAGE_TOKEN_MISMATCH";
inline constexpr std::string_view kResumeTokenInvalid = "RESUME_TOKEN_INVALID";
// NOT_FOUND
inline constexpr std::string_view kJob = "JOB";
inline constexpr std::string_view kJobSet = "JOB_SET";
inline constexpr std::string_view kBlob = "BLOB";
inline constexpr std::string_view kArtifact = "ARTIFACT";
inline constexpr std::string_view kAttempt = "ATTEMPT";
inline constexpr std::string_view kWorker = "WORKER";
inline constexpr std::string_view kDevice = "DEVICE";
inline constexpr std::string_view kUpload = "UPLOAD";
inline constexpr std::string_view kPrincipal = "PRINCIPAL";
inline constexpr std::string_view kToken = "TOKEN";
// ALREADY_EXISTS
inline constexpr std::string_view kRequestIdReused = "REQUEST_ID_REUSED";
// FAILED_PRECONDITION
inline constexpr std::string_view kInputsMissing = "INPUTS_MISSING";
inline constexpr std::string_view kUnschedulable = "UNSCHEDULABLE";
inline constexpr std::string_view kDependencyFailed = "DEPENDENCY_FAILED";
inline constexpr std::string_view kWrongState = "WRONG_STATE";
inline constexpr std::string_view kKindDisabled = "KIND_DISABLED";
inline constexpr std::string_view kMaintenance = "MAINTENANCE";
// ABORTED
inline constexpr std::string_view kFenced =
    "FENCED";  // with metadata future=true: above the newest fence
inline constexpr std::string_view kOffsetMismatch =
    "OFFSET_MISMATCH";  // with metadata committed or length
// OUT_OF_RANGE
inline constexpr std::string_view kResumeTokenExpired = "RESUME_TOKEN_EXPIRED";
inline constexpr std::string_view kOffsetPastEnd = "OFFSET_PAST_END";
// RESOURCE_EXHAUSTED
inline constexpr std::string_view kRateLimited = "RATE_LIMITED";
inline constexpr std::string_view kServerBusy = "SERVER_BUSY";
inline constexpr std::string_view kStorageLow = "STORAGE_LOW";
inline constexpr std::string_view kQuotaQueued = "QUOTA_QUEUED";
inline constexpr std::string_view kQuotaGpus = "QUOTA_GPUS";
inline constexpr std::string_view kQuotaGpuHours = "QUOTA_GPU_HOURS";
inline constexpr std::string_view kQuotaBytes = "QUOTA_BYTES";
// UNAVAILABLE
inline constexpr std::string_view kStarting = "STARTING";
inline constexpr std::string_view kDraining = "DRAINING";
inline constexpr std::string_view kStorageFull = "STORAGE_FULL";
inline constexpr std::string_view kRightsChanged = "RIGHTS_CHANGED";
// DEADLINE_EXCEEDED
inline constexpr std::string_view kSlowReader = "SLOW_READER";
inline constexpr std::string_view kDeadline = "DEADLINE";
// UNAUTHENTICATED; with metadata admitted=true if the call had been admitted and was ended later
inline constexpr std::string_view kTokenMissing = "TOKEN_MISSING";
inline constexpr std::string_view kTokenInvalid = "TOKEN_INVALID";
inline constexpr std::string_view kTokenExpired = "TOKEN_EXPIRED";
// PERMISSION_DENIED
inline constexpr std::string_view kRoleRequired = "ROLE_REQUIRED";
inline constexpr std::string_view kScopeRequired = "SCOPE_REQUIRED";
inline constexpr std::string_view kPoolRequired = "POOL_REQUIRED";
// DATA_LOSS
inline constexpr std::string_view kBlobCorrupt = "BLOB_CORRUPT";
// INTERNAL: a bug in the program; metadata incident=<id in the server's log>.
inline constexpr std::string_view kInternal = "INTERNAL";
}  // namespace reason

struct FieldViolation {
  std::string field;        ///< e.g. "jobs[3].spec.resources.gpus"
  std::string description;  ///< value, limit and remedy
};

struct PreconditionViolation {
  std::string type;     ///< e.g. "INPUTS_MISSING"
  std::string subject;  ///< e.g. a digest
  std::string description;
};

/// The details that travel beside code and message.
struct ErrorDetails {
  std::string reason;
  std::map<std::string, std::string> metadata;
  std::vector<FieldViolation> fields;
  std::vector<PreconditionViolation> preconditions;
  std::optional<std::chrono::milliseconds> retry_after;
};

/// Makes a status with details. Lists are cut so that the details stay under 4 KiB; the metadata
/// `violations` then holds the full count.
grpc::Status make_status(grpc::StatusCode code, const std::string& message,
                         const ErrorDetails& details);

/// Reads the details of a status. The reason is empty if the status has no details of this program.
ErrorDetails parse_details(const grpc::Status& status);

/// Equals parse_details(status).reason.
std::string reason_of(const grpc::Status& status);

/// True if a server ended an admitted call because its token had expired. Another call continues it
/// if the caller has a newer token by now, as callers on a Unix socket do.
bool token_ran_out(const grpc::Status& status);

/// The name of a code, e.g. "INVALID_ARGUMENT".
std::string_view code_name(grpc::StatusCode code);

}  // namespace quasi::wire
