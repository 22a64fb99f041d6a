#pragma once

#include <map>
#include <string>

#include "workers/gw/input/inp_file.hpp"

namespace quasi::gw {

/// Energies at which sigma.inp asks for Σ(E) of a full-frequency calculation, with the defaults of
/// BerkeleyGW.
struct EvaluationGrid {
  int shift = 2;  ///< origin: 0 the zero of the mean field, 1 the Fermi energy, 2 each state
  double first_ev = 0.0, step_ev = 0.2, largest_ev = 2.0;
  int points = 0;
  bool asked = false;   ///< a keyword of the grid is there
  bool listed = false;  ///< the first energy or their number is there

  /// Adds the actions of the grid's keywords. They refer to this object.
  void add_actions(InpActions& actions);
  /// Returns the keys of the table [sigma] and their values, none without a keyword.
  /// @throws InvalidInput if the keywords contradict each other
  std::map<std::string, std::string> sigma_keys() const;
};

}  // namespace quasi::gw
