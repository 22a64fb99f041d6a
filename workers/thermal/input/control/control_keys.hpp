#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "workers/thermal/input/control/control.hpp"
#include "workers/thermal/input/control/key_table.hpp"

namespace quasi::thermal {

constexpr std::size_t kMaxTemperatures = 10000;

/// The values of a CONTROL before they are checked against each other, in the words of the deck.
struct RawControl {
  Control control;
  std::map<std::string, double> temperature_range_k;  ///< by key: t_min, t_max, t_step
  std::vector<double> temperature_list_k;
  std::string compat = "none";
  std::string broadening = "symmetric";
  std::string solver = "auto";
  std::string sampling = "auto";
  std::string precision = "double";
  std::string fc3_centres = "mean";
  std::string nac_method = "auto";
  std::string sum_rule = "check";
  std::string nac_damping = "auto";
};

/// Marks numbers that no assignment has set.
inline constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();

/// Every key of CONTROL (docs/theory/thermal.md 1.1) and of the extensions. The keys store their
/// values in `raw`, which must outlive the table.
KeyTable control_key_table(RawControl& raw);

/// Gives the arrays of the crystal the extents that nelements, natoms and norientations name.
/// @throws InvalidInput where an extent is not set.
void allocate_arrays(Control& control);

/// @throws InvalidInput saying that the deck must set `key`.
[[noreturn]] void throw_missing_key(const Control& control, const std::string& key);

}  // namespace quasi::thermal
