#pragma once

#include <optional>
#include <string>
#include <vector>

namespace quasi::gw {

struct Calculation;
struct ConvergenceStudy;

/// One named error of all energies of a job (docs/theory/gw.md 9.6).
struct ErrorRow {
  std::string name;  ///< key in the results, for example "window_width"
  /// "95 % interval", "bound", "estimate", "spread", or "no random vectors" for an error that is 0
  /// because the job has none.
  std::string kind;
  std::vector<double> value_ev;  ///< absolute errors, [n_quasiparticles]; empty: not examined
  std::optional<double> gap_ev;  ///< error of the gap; absent: not examined, or there is no gap

  bool examined() const { return !value_ev.empty(); }
  /// True for every error but the statistical interval.
  bool systematic() const { return name != "stochastic"; }
};

/// Every named error of the energies E_qp1, or of Σ where V_xc is unknown.
struct ErrorTable {
  std::vector<ErrorRow> rows;         ///< empty: the job has no energies
  std::vector<double> systematic_ev;  ///< sum of the examined systematic rows, [n_quasiparticles]
  std::optional<double> systematic_gap_ev;  ///< absent: an examined row has no gap
};

/// Makes the table of errors of a job from what it has calculated.
/// @param study  convergence study of the job; null: none
ErrorTable error_table(const Calculation& run, const ConvergenceStudy* study);

}  // namespace quasi::gw
