#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "client/input/deck.hpp"
#include "quasi/v1/job.pb.h"

namespace quasi::client {

/// One job as asked for on the command line: its spec but for the inputs, and the files to bring.
struct JobRequest {
  std::string source;             ///< how it was named on the command line
  v1::JobSpec spec;               ///< `inputs` holds only those that a job file gives by digest
  std::vector<LocalInput> files;  ///< to be hashed, uploaded and added to `inputs`
  std::filesystem::path deck;     ///< local deck, for checking it here; empty if there is none
};

/// What a deck says of its job, without looking at the files it needs: for running it where it is.
JobRequest deck_settings(const std::string& kind, const std::filesystem::path& path);

/// The kind that a TOML deck states at its top; "" if the file is a job file.
std::string kind_of_toml(const std::filesystem::path& path);

/// A deck of a kind: directory or TOML file. The job's name is the deck's; a TOML deck's [job]
/// table sets any field of JobSpec, and `device` and `exports` of DeckWork.
JobRequest job_from_deck(const std::string& kind, const std::filesystem::path& path);

/// A file given without a kind: a TOML deck (it has `kind` at its top), or one or several job specs
/// in TOML or JSON: the fields of JobSpec by their names in job.proto. For people,
///
///     [KIND]
///     deck = "silicon"           # a deck beside this file; it is uploaded
///     settings = { key = 300 }   # or a list of { key = "key", value = "300" }
///     [files]                    # further inputs: slot = path
///
/// durations may be written "2h" and enumerations "cuda"; several jobs are [[jobs]], or a list.
///
/// @throws Failure (kInvalidInput) naming file, line (TOML) and field; unknown fields with the
///         nearest known.
std::vector<JobRequest> jobs_from_file(const std::filesystem::path& path);

}  // namespace quasi::client
