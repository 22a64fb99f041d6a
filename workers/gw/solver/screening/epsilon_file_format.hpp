#pragma once

namespace quasi::gw {

/// Values of freq_dep in eps0mat.h5 and epsmat.h5 of BerkeleyGW (docs/theory/gw.md 1.4).
enum FrequencyDependence : int { kStatic = 0, kFullFrequency = 2, kTwoFrequencies = 3 };

}  // namespace quasi::gw
