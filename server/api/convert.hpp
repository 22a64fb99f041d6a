#pragma once

#include <string>

#include "proto/wire/validate.hpp"
#include "server/access/principal.hpp"
#include "server/queue/queue_core.hpp"
#include "server/store/read_store.hpp"

/// Conversions between the messages of the wire and the plain values of the queue.
namespace quasi::server {

google::protobuf::Timestamp to_timestamp(std::int64_t milliseconds);
google::protobuf::Duration to_duration(std::int64_t milliseconds);
std::int64_t to_milliseconds(const google::protobuf::Timestamp& time);
/// The duration in milliseconds, rounded up, so that a limit of 1 ns does not become 0.
std::int64_t to_milliseconds(const google::protobuf::Duration& duration);

/// Appends the numbers of scopes, ascending.
void add_scopes(const TokenScopes& scopes, google::protobuf::RepeatedField<int>& numbers);

/// @param path  of the job in its request, for refusals, e.g. "jobs[3]"
NewJob to_new_job(const v1::JobSpec& spec, const std::string& path);
/// Sets digest and size of the inputs of these slots.
void fill_inputs(const std::vector<JobInput>& inputs, v1::JobSpec& spec);
/// Digest of the action of a job with these inputs (proto/wire/action). `spec` is serialised.
std::string action_of(const std::string& spec, const std::vector<JobInput>& inputs);
/// The options of a queue that finds the actions of jobs by this function.
QueueOptions with_actions(QueueOptions options);
JobQuery to_query(const v1::JobFilter& filter);
AttemptKey to_key(const v1::AttemptRef& ref);
FailureInfo to_failure(const v1::Failure& failure);
UsageInfo to_usage(const v1::Usage& usage);
DeviceStatus to_device(const v1::Device& device);

v1::Job to_job(const JobView& view);
v1::Failure to_message(const FailureInfo& failure);
v1::Attempt to_message(const AttemptRow& attempt);
v1::Artifact to_message(const ArtifactRow& artifact);
v1::Checkpoint to_message(const CheckpointRow& checkpoint);
v1::Device to_message(const DeviceStatus& status);
v1::WatchEvent to_message(const EventRow& event, const std::string& job_uid);

/// A serialisation that is equal for equal messages of this program. It serves to compare repeated
/// requests.
std::string canonical_bytes(const google::protobuf::Message& message);

}  // namespace quasi::server
