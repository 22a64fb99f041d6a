#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <cstdint>
#include <string>
#include <vector>

#include "client/views/console.hpp"
#include "quasi/v1/job.pb.h"

namespace quasi::client {

/// Jobs as words, colours and JSON. The names of states and reasons come from the proto's
/// enumerations, so a new one needs no change here. A number that this client does not know becomes
/// "UNKNOWN(n)".

std::string state_word(v1::JobState state);      ///< "running"
std::string reason_word(v1::FailureReason why);  ///< "WORKER_LOST"
/// The lower-case word of any enumerator, without the prefix of its type.
std::string enum_word(const google::protobuf::EnumDescriptor& type, int number);

/// The state for a word of --state; UNSPECIFIED if there is none.
v1::JobState state_of_word(const std::string& word);
std::vector<std::string> state_words();

bool is_final(v1::JobState state);
Colour colour_of(v1::JobState state);

std::int64_t unix_ms(const google::protobuf::Timestamp& time);

/// The failure in one line, e.g. "WORKER_LOST: the worker was silent for 60 s".
std::string failure_text(const v1::Failure& failure);

enum class Detail { kRow, kFull };

/// A job in the documents of quasi.cli.v1. kFull adds spec, attempts, artefacts and summary.
Json job_json(const v1::Job& job, Detail detail);
Json progress_json(const v1::Progress& progress);
Json failure_json(const v1::Failure& failure);
Json artifact_json(const v1::Artifact& artifact);

/// The prefixes of ids that tables show: 12 characters, or more if two ids would be equal.
std::vector<std::string> short_ids(const std::vector<std::string>& ids);

}  // namespace quasi::client
