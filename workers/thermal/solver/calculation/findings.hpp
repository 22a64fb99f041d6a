#pragma once

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "workers/backend/error.hpp"
#include "workers/thermal/model/check_options.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {

/// How grave a finding of a check is.
enum class Severity { kNone, kWarning, kError };

/// Returns kError above `error`, kWarning above `warning`, else kNone.
inline Severity severity_above(double value, double warning, double error) {
  if (value > error) return Severity::kError;
  return value > warning ? Severity::kWarning : Severity::kNone;
}

/// Receives the findings of the checks of a case.
struct Findings {
  const CheckOptions& options;
  ConductivityRun& run;    ///< gets the warnings
  nlohmann::json& checks;  ///< {name: {"ok", numbers and limits}}

  void store(const std::string& name, bool ok, nlohmann::json numbers) {
    numbers["ok"] = ok;
    checks[name] = std::move(numbers);
  }
  /// Ends the job for an error that is not allowed, and adds a warning otherwise.
  /// @param key  the key of the deck that allows the error
  /// @throws InvalidInput naming the key
  void report(Severity severity, const std::string& text, bool allowed, const char* key) {
    if (severity == Severity::kNone) return;
    if (severity == Severity::kError && !allowed && !options.compat)
      throw InvalidInput(text + "; correct the deck, or set " + key +
                         " = .true. to run it as it is");
    run.warnings.push_back(text);
  }
  /// Adds a warning.
  void warn(const std::string& text) { run.warnings.push_back(text); }
};

/// Returns a number with three digits for a message.
std::string check_number(double value);

/// Checks that the second and third order describe a crystal: sound speeds, elastic energy,
/// Grüneisen parameters, and empty space in a bulk crystal (docs/theory/thermal.md 12.4).
void check_plausibility(const LatticeModel& model, const CaseOptions& options, Findings& findings);

}  // namespace quasi::thermal
