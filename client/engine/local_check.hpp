#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/input/job_file.hpp"
#include "client/views/console.hpp"

namespace quasi::client {

/// What quasi-engine says of a deck before anything is sent.
struct DeckReport {
  bool checked = false;  ///< false: no engine here, or no deck of this machine
  std::string why_not;   ///< then: the reason, for a note
  Json report;           ///< the engine's document: "ok", "warnings", "plan", …
};

/// Runs `quasi-engine validate` on the deck of a job with its settings.
/// @param device  "cpu", "auto" or "cuda:N": where the plan is made for
/// @throws Failure (kInvalidInput, …) with the engine's sentence.
DeckReport check_deck(const JobRequest& request, const std::string& device);

/// The limits of the service, with field paths as the server gives them ("jobs[0].spec.…").
/// @throws Failure (kInvalidInput) with every violation.
void check_limits(const std::vector<JobRequest>& requests);

/// A field path of the wire as a person reads it: "jobs[2].spec.name" as "jobs[2].name", or "name"
/// of a single job.
std::string readable_field(std::string field, int n_jobs);

/// The report for people: warnings, then the plan as "name  value" lines.
std::string report_text(const Console& console, const Json& report);

/// A number with the unit that its key's name ends in: bytes as "1.2 GiB", seconds as "3 min".
std::string readable_quantity(const std::string& key, const Json& value);

}  // namespace quasi::client
