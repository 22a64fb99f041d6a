#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/kernels/four_phonon/tables_4ph.hpp"
#include "workers/thermal/model/precision.hpp"

namespace quasi::thermal {

/// Computes steps 2 and 3 of ContractionPlan4ph (docs/theory/thermal.md 11.4) for one CPU thread,
/// several processes at a time in the lanes of vector registers. Only this file is compiled with
/// fused multiply-add; all threads use it.
class Evaluator4phCpu {
 public:
  /// @param precision  kMixed: step 3 in FP32
  explicit Evaluator4phCpu(const Tables4ph& tables, Precision precision = Precision::kDouble);

  /// Step 2: contracts C of the row with λ' = mode1. `conjugate`: λ' is created.
  void set_pair(std::int64_t row, std::int32_t mode1, bool conjugate);

  /// Step 3: computes |V|² in eV²/(Å⁸ amu⁴) of processes with the last set_pair. `conjugate`: λ''
  /// is created.
  void squared_elements(const Found4ph* found, std::int64_t n, bool conjugate,
                        double* squared) const;

  /// E' and A of the last set_pair: [n_triples][3] and [n_pairs][9].
  const std::vector<Complex<double>>& site() const { return site_; }
  const std::vector<Complex<double>>& pair() const { return pair_; }

 private:
  template <typename Real, int kLanes>
  void squared_elements_in(const std::vector<Complex<Real>>& pairs, const Found4ph* found,
                           std::int64_t n, bool conjugate, double* squared) const;

  Tables4ph tables_;
  std::vector<Complex<double>> site_;   ///< [n_triples][3] E' of step 2
  std::vector<Complex<double>> pair_;   ///< [n_pairs][9] A
  std::vector<Complex<float>> pair32_;  ///< A rounded to single precision, with mixed precision
};

}  // namespace quasi::thermal
