#pragma once

#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

/// Words of `quasi plot` and `quasi report`.
struct PlotOptions {
  std::vector<std::string> words;   ///< results, folders or jobs; the last may name a figure
  std::string output;               ///< file to write; "": named after the figure
  std::vector<std::string> labels;  ///< names of the results in the legend
  bool list = false;                ///< print the names of the figures instead
};

/// `quasi plot`: draws figures of results. Jobs are fetched first, into the state directory. The
/// drawing is done by the Python module `quasi`, which this program starts.
///
/// @throws Failure (kEngineUnavailable) that says how to install the module where it is missing.
ExitStatus plot(Session& session, const PlotOptions& options);

/// `quasi report`: writes one HTML page about a result, by the same module.
ExitStatus report(Session& session, const PlotOptions& options);

}  // namespace quasi::client
