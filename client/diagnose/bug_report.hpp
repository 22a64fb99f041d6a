#pragma once

#include <string>

#include "client/session/session.hpp"

namespace quasi::client {

struct BugReportOptions {
  std::string job;     ///< a job to include; "": none
  std::string output;  ///< file to write; "": quasi-bug-report-TIME.json
};

/// `quasi bug-report` writes one JSON file with everything that a maintainer asks for: the findings
/// of `quasi doctor`, the system, and a job with the end of its log. It holds no input file, no
/// label, no value of an environment variable and no home folder.
///
/// @throws Failure (kConflict) if the file exists
ExitStatus bug_report(Session& session, const BugReportOptions& options);

/// Replaces the home folder in text by "~". It is public for tests.
std::string without_home(std::string text, std::string home);

}  // namespace quasi::client
