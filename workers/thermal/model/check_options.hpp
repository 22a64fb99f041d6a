#pragma once

namespace quasi::thermal {

/// Findings of the checks that warn where they would end the job (docs/theory/thermal.md 12.4).
struct CheckOptions {
  bool compat = false;  ///< every finding that FourPhonon would not refuse is a warning
  bool allow_inconsistent_position = false;
  bool allow_broken_sum_rule = false;
  bool allow_broken_permutation = false;
  bool allow_charge = false;
  bool allow_implausible = false;
  bool allow_few_processes = false;
  bool bulk = true;  ///< no thickness of a sheet is given
};

}  // namespace quasi::thermal
