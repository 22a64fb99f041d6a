#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/input/job_file.hpp"
#include "client/views/console.hpp"

namespace quasi::client {

/// The answer of quasi-engine about a deck, obtained before submission.
struct DeckReport {
  bool checked = false;  ///< false: no engine, or no deck on this machine
  std::string why_not;   ///< the reason if `checked` is false
  Json report;           ///< the engine's document: "ok", "warnings", "plan", …
};

/// Runs `quasi-engine validate` on the deck of a job with its settings.
/// @param device  "cpu", "auto" or "cuda:N": the device of the plan
/// @throws Failure (kInvalidInput, …) with the engine's sentence.
DeckReport check_deck(const JobRequest& request, const std::string& device);

/// Checks the limits of the service, with field paths in the form of the server ("jobs[0].spec.…").
/// @throws Failure (kInvalidInput) with every violation.
void check_limits(const std::vector<JobRequest>& requests);

/// A field path in short form: "jobs[2].spec.name" becomes "jobs[2].name", or "name" for a single
/// job.
std::string readable_field(std::string field, int n_jobs);

/// The report as text: warnings, then the plan as "name  value" lines.
std::string report_text(const Console& console, const Json& report);

/// A number with the unit that ends its key: bytes as "1.2 GiB", seconds as "3 min".
std::string readable_quantity(const std::string& key, const Json& value);

}  // namespace quasi::client
