#pragma once

#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

/// The words and options of `quasi plot` and `quasi report`.
struct PlotOptions {
  std::vector<std::string> words;   ///< results, folders or jobs; the last may name a figure
  std::string output;               ///< file to write; "": the name of the figure
  std::vector<std::string> labels;  ///< names of the results in the legend
  bool list = false;                ///< only print the names of the figures
};

/// `quasi plot` draws figures of results. Jobs are fetched first, into the state directory. The
/// Python module `quasi`, which this program starts, draws the figures.
///
/// @throws Failure (kEngineUnavailable) that says how to install the module if it is missing.
ExitStatus plot(Session& session, const PlotOptions& options);

/// Says why the Python module that draws cannot be loaded; "" if it can.
std::string drawing_problem();

/// `quasi report` writes one HTML page about a result, with the same Python module.
ExitStatus report(Session& session, const PlotOptions& options);

}  // namespace quasi::client
