#include <set>

#include "proto/wire/checks.hpp"
#include "proto/wire/limits.hpp"
#include "proto/wire/validate.hpp"

namespace quasi::wire {
namespace {

using checks::at;
using checks::shown;

void check_ref(const v1::AttemptRef& ref, const std::string& path, Violations& violations) {
  checks::id(ref.worker_id(), 'w', at(path, "worker_id"), violations);
  checks::id(ref.attempt_id(), 'a', at(path, "attempt_id"), violations);
  if (ref.fence() == 0 || ref.fence() > (std::uint64_t{1} << 62))
    violations.add(at(path, "fence"),
                   "must be the fence of a grant, got " + std::to_string(ref.fence()));
}

void check_worker(const std::string& worker_id, const std::string& incarnation,
                  Violations& violations) {
  checks::id(worker_id, 'w', "worker_id", violations);
  checks::uuid(incarnation, "incarnation", violations);
}

void check_device_id(std::string_view id, const std::string& field, Violations& violations) {
  if (id.empty()) violations.add(field, "must not be empty");
  checks::text(id, limits::kNameBytes, field, violations);
}

enum class DeviceCheck { kWhole, kUpdate };

void check_devices(const google::protobuf::RepeatedPtrField<v1::Device>& devices, DeviceCheck check,
                   Violations& violations) {
  checks::count(static_cast<std::uint64_t>(devices.size()), limits::kDevices, "entries", "devices",
                violations);
  std::set<std::string> seen;
  std::uint64_t slots = 0;
  for (int i = 0; i < devices.size(); ++i) {
    const v1::Device& device = devices[i];
    const std::string field = at("", "devices", i);
    check_device_id(device.id(), at(field, "id"), violations);
    if (!seen.insert(device.id()).second)
      violations.add(at(field, "id"), shown(device.id()) + " is already another device's id");
    if (check == DeviceCheck::kWhole)
      checks::known(device.backend(), v1::DeviceBackend_IsValid, "CPU, CUDA", at(field, "backend"),
                    violations);
    checks::text(device.model(), limits::kNameBytes, at(field, "model"), violations);
    checks::at_most(device.memory_bytes(), limits::kMemoryBytes, at(field, "memory_bytes"),
                    violations);
    checks::at_most(device.free_bytes(), limits::kMemoryBytes, at(field, "free_bytes"), violations);
    slots += device.slots();
    if (!v1::DeviceState_IsValid(device.state()) || device.state() == v1::DEVICE_STATE_CORDONED)
      violations.add(at(field, "state"),
                     "must be READY, BUSY_FOREIGN, QUARANTINED or LOST, got number " +
                         std::to_string(static_cast<int>(device.state())));
    checks::text(device.state_reason(), limits::kReasonBytes, at(field, "state_reason"),
                 violations);
    const std::string telemetry = at(field, "telemetry");
    checks::finite(device.telemetry().utilization(), at(telemetry, "utilization"), violations);
    checks::finite(device.telemetry().temperature_c(), at(telemetry, "temperature_c"), violations);
    checks::finite(device.telemetry().power_watts(), at(telemetry, "power_watts"), violations);
  }
  checks::count(slots, limits::kSlots, "slots in all", "devices", violations);
}

}  // namespace

void validate(const v1::RegisterRequest& request, Violations& violations) {
  check_worker(request.worker_id(), request.incarnation(), violations);
  checks::text(request.name(), limits::kNameBytes, "name", violations);
  checks::text(request.version(), limits::kNameBytes, "version", violations);
  checks::pool(request.pool(), "pool", violations);
  check_devices(request.devices(), DeviceCheck::kWhole, violations);
  checks::count(static_cast<std::uint64_t>(request.kinds_size()), limits::kKinds, "entries",
                "kinds", violations);
  for (int i = 0; i < request.kinds_size(); ++i) {
    if (!is_file_name(request.kinds(i)))
      violations.add(at("", "kinds", i),
                     "must be the name of a kind, got " + shown(request.kinds(i)));
  }
  checks::count(static_cast<std::uint64_t>(request.salvage_size()), limits::kAttemptsPerHeartbeat,
                "entries", "salvage", violations);
  for (int i = 0; i < request.salvage_size(); ++i)
    check_ref(request.salvage(i), at("", "salvage", i), violations);
}

void validate(const v1::AcquireLeasesRequest& request, Violations& violations) {
  check_worker(request.worker_id(), request.incarnation(), violations);
  checks::uuid(request.acquire_id(), "acquire_id", violations);
  const auto slots = static_cast<std::uint64_t>(request.slots_size());
  if (slots == 0 || slots > limits::kSlots)
    violations.add("slots", "must have 1..." + std::to_string(limits::kSlots) + " entries, got " +
                                std::to_string(slots));
  for (int i = 0; i < request.slots_size(); ++i) {
    const std::string field = at("", "slots", i);
    check_device_id(request.slots(i).device_id(), at(field, "device_id"), violations);
    checks::at_most(request.slots(i).free_bytes(), limits::kMemoryBytes, at(field, "free_bytes"),
                    violations);
  }
  checks::duration(request.wait(), "wait", violations);
  if (request.wait().seconds() > static_cast<std::int64_t>(limits::kAcquireWaitSeconds))
    violations.add("wait", "must be at most " + std::to_string(limits::kAcquireWaitSeconds) +
                               " s, got " + std::to_string(request.wait().seconds()) + " s");
  checks::duration(request.time_left(), "time_left", violations);
}

void validate(const v1::HeartbeatRequest& request, Violations& violations) {
  check_worker(request.worker_id(), request.incarnation(), violations);
  checks::count(static_cast<std::uint64_t>(request.attempts_size()), limits::kAttemptsPerHeartbeat,
                "entries", "attempts", violations);
  for (int i = 0; i < request.attempts_size(); ++i) {
    const std::string field = at("", "attempts", i);
    checks::id(request.attempts(i).attempt_id(), 'a', at(field, "attempt_id"), violations);
    if (request.attempts(i).fence() == 0 || request.attempts(i).fence() > (std::uint64_t{1} << 62))
      violations.add(at(field, "fence"), "must be the fence of a grant, got " +
                                             std::to_string(request.attempts(i).fence()));
    checks::progress(request.attempts(i).progress(), at(field, "progress"), violations);
    checks::at_most(request.attempts(i).gpu_bytes(), limits::kMemoryBytes, at(field, "gpu_bytes"),
                    violations);
  }
  check_devices(request.devices(), DeviceCheck::kUpdate, violations);
}

void validate(const v1::StartAttemptRequest& request, Violations& violations) {
  check_ref(request.attempt(), "attempt", violations);
  checks::text(request.isolation().walls(), limits::kWallsBytes, "isolation.walls", violations);
}

void validate(const v1::AppendLogRequest& request, Violations& violations) {
  check_ref(request.attempt(), "attempt", violations);
  checks::at_most(request.offset(), limits::kLogBytes, "offset", violations);
  checks::count(request.data().size(), limits::kLogChunkBytes, "bytes", "data", violations);
}

void validate(const v1::RecordCheckpointRequest& request, Violations& violations) {
  check_ref(request.attempt(), "attempt", violations);
  if (request.sequence() == 0 || request.sequence() > (std::uint64_t{1} << 62))
    violations.add("sequence", "must be 1 or more, got " + std::to_string(request.sequence()));
  if (request.step() < 0)
    violations.add("step", "must not be negative, got " + std::to_string(request.step()));
  checks::digest(request.digest(), "digest", violations);
  checks::at_most(request.size_bytes(), limits::kBlobBytes, "size_bytes", violations);
}

void validate(const v1::CompleteAttemptRequest& request, Violations& violations) {
  check_ref(request.attempt(), "attempt", violations);
  switch (request.outcome_case()) {
    case v1::CompleteAttemptRequest::kSucceeded: {
      const auto& succeeded = request.succeeded();
      checks::count(static_cast<std::uint64_t>(succeeded.artifacts_size()), limits::kArtifacts,
                    "entries", "succeeded.artifacts", violations);
      std::set<std::string> names;
      for (int i = 0; i < succeeded.artifacts_size(); ++i) {
        const v1::Artifact& artifact = succeeded.artifacts(i);
        const std::string field = at("succeeded", "artifacts", i);
        if (!is_relative_path(artifact.name(), limits::kArtifactNameBytes))
          violations.add(at(field, "name"),
                         "must be a relative path of 1...8 names of [A-Za-z0-9._-]{1,128} that do "
                         "not start with a dot, "
                         "256 bytes in all, got " +
                             shown(artifact.name()));
        else if (!names.insert(artifact.name()).second)
          violations.add(at(field, "name"),
                         shown(artifact.name()) + " is already another artefact's name");
        checks::digest(artifact.digest(), at(field, "digest"), violations);
        checks::at_most(artifact.size_bytes(), limits::kBlobBytes, at(field, "size_bytes"),
                        violations);
        checks::text(artifact.media_type(), limits::kMediaTypeBytes, at(field, "media_type"),
                     violations);
      }
      checks::text(succeeded.summary_json(), limits::kSummaryBytes, "succeeded.summary_json",
                   violations, checks::Lines::kMany);
      break;
    }
    case v1::CompleteAttemptRequest::kFailed:
      checks::failure(request.failed(), "failed", violations);
      break;
    case v1::CompleteAttemptRequest::kCancelled:
      break;
    case v1::CompleteAttemptRequest::OUTCOME_NOT_SET:
      violations.add("outcome", "must be one of succeeded, failed, cancelled");
      break;
  }
  checks::not_negative(request.usage().wall_seconds(), "usage.wall_seconds", violations);
  checks::not_negative(request.usage().gpu_seconds(), "usage.gpu_seconds", violations);
  checks::not_negative(request.usage().energy_joules(), "usage.energy_joules", violations);
  checks::at_most(request.usage().peak_gpu_bytes(), limits::kMemoryBytes, "usage.peak_gpu_bytes",
                  violations);
  checks::at_most(request.usage().peak_ram_bytes(), limits::kMemoryBytes, "usage.peak_ram_bytes",
                  violations);
}

void validate(const v1::ReleaseLeaseRequest& request, Violations& violations) {
  check_ref(request.attempt(), "attempt", violations);
  checks::known(request.reason(), v1::ReleaseReason_IsValid,
                "DRAIN, RESTART, BUSY_FOREIGN, STAGE_TIMEOUT, UNWANTED", "reason", violations);
  checks::text(request.message(), limits::kReasonBytes, "message", violations);
}

void validate(const v1::FindMissingBlobsRequest& request, Violations& violations) {
  checks::count(static_cast<std::uint64_t>(request.digests_size()), limits::kDigestsPerCall,
                "entries", "digests", violations);
  for (int i = 0; i < request.digests_size(); ++i)
    checks::digest(request.digests(i), at("", "digests", i), violations);
}

void validate(const v1::WriteBlobRequest::Header& header, Violations& violations) {
  checks::digest(header.digest(), "header.digest", violations);
  checks::at_most(header.size_bytes(), limits::kBlobBytes, "header.size_bytes", violations);
  checks::uuid(header.upload_id(), "header.upload_id", violations);
}

void validate(const v1::QueryUploadRequest& request, Violations& violations) {
  checks::uuid(request.upload_id(), "upload_id", violations);
}

void validate(const v1::ReadBlobRequest& request, Violations& violations) {
  checks::digest(request.digest(), "digest", violations);
}

}  // namespace quasi::wire
