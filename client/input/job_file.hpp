#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "client/input/deck.hpp"
#include "quasi/v1/job.pb.h"

namespace quasi::client {

/// One job of the command line: its spec without the inputs, and the files to send.
struct JobRequest {
  std::string source;             ///< its name on the command line
  v1::JobSpec spec;               ///< `inputs` holds only those that a job file gives by digest
  std::vector<LocalInput> files;  ///< to be hashed, uploaded and added to `inputs`
  std::filesystem::path deck;     ///< local deck for the check on this machine; empty if none
};

/// The job settings in a deck, without collecting its files. `quasi run` uses it.
JobRequest deck_settings(const std::string& kind, const std::filesystem::path& path);

/// The kind that a TOML deck states at its top; "" if the file is a job file.
std::string kind_of_toml(const std::filesystem::path& path);

/// A job from a deck (directory or TOML file) of a kind. The job has the deck's name. The [job]
/// table of a TOML deck sets any field of JobSpec, and `device` and `exports` of DeckWork.
JobRequest job_from_deck(const std::string& kind, const std::filesystem::path& path);

/// Jobs from a file given without a kind. The file is a TOML deck with `kind` at its top, or it
/// holds one or several job specs in TOML or JSON. A spec has the fields of JobSpec by their names
/// in job.proto:
///
///     [KIND]
///     deck = "silicon"           # a deck beside this file; it is uploaded
///     settings = { key = 300 }   # or a list of { key = "key", value = "300" }
///     [files]                    # further inputs: slot = path
///
/// Durations may be written "2h" and enumerations "cuda". Several jobs are [[jobs]], or a list.
///
/// @throws Failure (kInvalidInput) naming file, line (TOML) and field; an unknown field with the
/// nearest known field.
std::vector<JobRequest> jobs_from_file(const std::filesystem::path& path);

}  // namespace quasi::client
