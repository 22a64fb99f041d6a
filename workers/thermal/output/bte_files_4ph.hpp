#pragma once

#include "workers/thermal/output/bte_text.hpp"
#include "workers/thermal/solver/four_phonon/scattering_4ph.hpp"

namespace quasi::thermal {

/// Writes BTE.P4*, BTE.Numprocess_4ph, and for each temperature BTE.w_4ph*, BTE.WP4*
/// (docs/theory/thermal.md 1.7). FourPhonon spells one of these names "BTE.P4_plusmius"; here it is
/// BTE.P4_plusminus.
void write_bte_files_4ph(const BteExport& x, const Rates4ph& rates);

}  // namespace quasi::thermal
