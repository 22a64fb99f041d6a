#pragma once

#include <vector>

#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {

/// κ over isotope contents, grain sizes and temperatures, from matrix elements that are computed
/// once.
struct Sweep {
  std::vector<double> isotope_factor;    ///< {1} when not swept
  std::vector<double> grain_size_nm;     ///< {0} (no grains) when not swept
  std::vector<Mat3> kappa_rta_w_per_mk;  ///< [isotope][grain][nT]
  std::vector<Mat3> kappa_w_per_mk;      ///< the same; empty when the BTE is not iterated

  bool empty() const { return kappa_rta_w_per_mk.empty(); }
};

/// Solves the BTE again for every entry of `isotope_factors` × `grain_sizes_nm` of SweepOptions.
/// Isotope scattering is linear in the variances g, so that a factor scales the rates (0: pure).
/// @param run  of add_scattering, with the kernels' list of processes kept; unchanged on return
/// @return     empty without factors and sizes
Sweep run_sweep(const BteTerms& terms, ConductivityRun& run, const RunSite& site);

}  // namespace quasi::thermal
